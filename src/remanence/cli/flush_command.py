"""`remanence flush`: the background work of a conversation, at once."""

from typing import Annotated

import typer

from remanence.cli import documents, output
from remanence.cli.options import AsJson, ConversationId, Database, Tenant
from remanence.cli.quantity import quantity
from remanence.cli.settings import load, open_conversation


async def run(
    conversation: ConversationId,
    *,
    db: Database = None,
    tenant: Tenant = "default",
    everything: Annotated[
        bool, typer.Option("--everything", help="Also work that is not due: observe all messages.")
    ] = False,
    retry: Annotated[
        bool, typer.Option("--retry", help="Also steps that failed and wait for their next try.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Do the background work of a conversation at once.

    It is that which is due; what fails is shown, and tried again later or with --retry.
    """
    settings = load(url=db).settings
    async with open_conversation(settings, conversation, tenant=tenant, access="work") as chat:
        state = await chat.flush(everything=everything, retry=retry)
    if as_json:
        output.write_json(documents.state(state))
        return
    output.line(
        f"{conversation}: observed {state.observed_seq} of {quantity(state.last_seq, 'message')}"
    )
    if state.last_error is not None:
        again = f"next try at {state.next_attempt_at:%Y-%m-%d %H:%M} UTC, or with --retry"
        output.line(f"{state.last_error}; {again}", style="yellow")
