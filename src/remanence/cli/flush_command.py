"""`remanence flush`: run the background work of a conversation now."""

from typing import Annotated

import typer

from remanence.cli import documents, output
from remanence.cli.options import AsJson, ConversationId, Database, Tenant
from remanence.cli.output import quantity
from remanence.cli.settings import load, open_conversation


async def run(
    conversation: ConversationId,
    *,
    db: Database = None,
    tenant: Tenant = "default",
    everything: Annotated[
        bool,
        typer.Option(
            "--everything", help="Include work that is not due yet: observe all messages."
        ),
    ] = False,
    retry: Annotated[
        bool, typer.Option("--retry", help="Include failed steps that wait for their next attempt.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Do the due background work of a conversation now.

    Failures are shown; failed steps are tried again later, or with --retry.
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
