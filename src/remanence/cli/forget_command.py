"""`remanence forget`: messages and facts, or a user, and all that was made from them."""

import dataclasses
import sys
from typing import Annotated, Any

import typer

from remanence.cli import FAILED
from remanence.cli.options import AsJson, Database, Tenant
from remanence.cli.output import Printer, warn, write_json
from remanence.cli.settings import load, open_conversation, open_existing
from remanence.types import Receipt


async def run(
    *,
    conversation: Annotated[str | None, typer.Argument(help="Its id.")] = None,
    user: Annotated[str | None, typer.Option(help="Forget this user as a whole.")] = None,
    message: Annotated[list[str] | None, typer.Option(help="The id of a message.")] = None,
    fact: Annotated[list[str] | None, typer.Option(help="The id of a fact.")] = None,
    query: Annotated[str | None, typer.Option(help="List what it could mean.")] = None,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask.")] = False,
    db: Database = None,
    tenant: Tenant = "default",
    as_json: AsJson = False,
) -> int:
    """Forget messages and facts, or a user, with all that was made from them."""
    if (conversation is None) == (user is None) or (user and (message or fact or query)):
        raise typer.BadParameter("name a conversation, or a user with --user alone")
    settings = load(url=db).settings
    messages, facts = message or (), fact or ()
    what = f"user {user!r}" if user is not None else f"{[*messages, *facts]} of {conversation!r}"
    if query is None and not yes and not _confirm(f"Forget {what} of tenant {tenant!r}?"):
        warn("nothing was forgotten: answer 'yes', or give --yes")
        return FAILED
    if user is not None:
        async with open_existing(settings, access="write") as memory:
            receipt = await memory.forget_user(user, tenant=tenant)
    else:
        name = conversation or ""
        async with open_conversation(settings, name, tenant=tenant, access="write") as chat:
            receipt = await chat.forget(*messages, facts=facts, query=query)
    if as_json:
        write_json(_document(receipt))
    else:
        _print(Printer(), receipt)
    return 0


def _confirm(question: str) -> bool:
    print(f"{question} Type yes: ", end="", file=sys.stderr, flush=True)
    return sys.stdin.readline().strip().lower() == "yes"


def _document(receipt: Receipt) -> dict[str, Any]:  # values of many types
    fields = {f.name: getattr(receipt, f.name) for f in dataclasses.fields(receipt)}
    messages = [message._asdict() for message in receipt.messages]
    return {**fields, "at": receipt.at.isoformat(), "messages": messages}


def _print(printer: Printer, receipt: Receipt) -> None:
    if not receipt.erased:
        printer.line("nothing is forgotten yet; name what should go by --message and --fact:")
    for conversation in receipt.conversations:
        printer.line(f"conversation {conversation}")
    for message in receipt.messages:
        printer.line(f"message {message.id} ({message.conversation}, {message.seq})")
    for kind, ids in (("notes", receipt.segments), ("fact", receipt.facts)):
        for each in ids:
            printer.line(f"{kind} {each}")
    for file in receipt.files:
        printer.line(f"changed {file}")
    for file in receipt.still_in:
        warn(f"{file} has the text, and was left alone")
