"""`remanence forget`: messages and facts, or a user, and all that was made from them."""

import dataclasses
import textwrap
from collections.abc import Mapping
from typing import Annotated, Any, Final

import typer

from remanence.cli import FAILED
from remanence.cli.options import AsJson, Database, Tenant
from remanence.cli.output import Printer, confirm, warn, write_json
from remanence.cli.settings import (
    load,
    open_conversation,
    open_existing,
    require_conversation,
)
from remanence.conversation import Conversation
from remanence.types import Receipt

SHOWN: Final = 100
"""The most characters of a message or fact that a query found."""


async def run(
    *,
    conversation: Annotated[str | None, typer.Argument(help="Its id.")] = None,
    user: Annotated[str | None, typer.Option(help="Forget this user as a whole.")] = None,
    message: Annotated[list[str] | None, typer.Option(help="The id of a message.")] = None,
    fact: Annotated[list[str] | None, typer.Option(help="The id of a fact.")] = None,
    query: Annotated[str | None, typer.Option(help="List matches, erase nothing.")] = None,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask.")] = False,
    db: Database = None,
    tenant: Tenant = "default",
    as_json: AsJson = False,
) -> int:
    """Forget messages and facts, or a user, with all that was made from them."""
    if (conversation is None) == (user is None) or (user and (message or fact or query)):
        raise typer.BadParameter("name a conversation, or a user with --user alone")
    if conversation is not None and not (message or fact or query):
        raise typer.BadParameter("name what to forget by --message or --fact; --query finds it")
    settings = load(url=db).settings
    messages, facts = message or (), fact or ()
    ids = ", ".join([*messages, *facts])
    what = f"user {user!r}" if user is not None else f"{ids} of {conversation!r}"
    texts: dict[str, str] = {}
    if query is None and not yes:
        if conversation is not None:
            await require_conversation(settings, conversation, tenant=tenant)
        if not confirm(f"Forget {what} of tenant {tenant!r}?"):
            warn("nothing was forgotten: answer 'yes', or give --yes")
            return FAILED
    if user is not None:
        async with open_existing(settings, access="write") as memory:
            receipt = await memory.forget_user(user, tenant=tenant)
    else:
        name = conversation or ""
        async with open_conversation(settings, name, tenant=tenant, access="write") as chat:
            receipt = await chat.forget(*messages, facts=facts, query=query)
            if not receipt.erased:
                texts = await _texts(chat, receipt)
    if as_json:
        write_json(_document(receipt))
    else:
        _print(Printer(), receipt, texts)
    return 0


def _document(receipt: Receipt) -> dict[str, Any]:  # values of many types
    fields = {f.name: getattr(receipt, f.name) for f in dataclasses.fields(receipt)}
    messages = [message._asdict() for message in receipt.messages]
    return {**fields, "at": receipt.at.isoformat(), "messages": messages}


async def _texts(chat: Conversation, found: Receipt) -> dict[str, str]:
    """Return the beginning of each message and fact that a query found, by id."""
    texts: dict[str, str] = {}
    for place in found.messages:
        (message,) = await chat.messages(after=place.seq - 1, limit=1)
        texts[place.id] = message.full_text
    if (owner := await chat.owner()) is not None and found.facts:
        for fact_id in found.facts:
            fact = await chat.facts.get(fact_id, user=owner.user, tenant=owner.tenant)
            texts[fact_id] = fact.summary if fact is not None else ""
    return {each: textwrap.shorten(text, SHOWN, placeholder="...") for each, text in texts.items()}


def _print(printer: Printer, receipt: Receipt, texts: Mapping[str, str]) -> None:
    if not (receipt.conversations or receipt.messages or receipt.facts):
        printer.line("nothing to forget was found")
    elif receipt.erased:
        printer.line("forgotten:")
    else:
        printer.line("nothing is forgotten yet; name what should go by --message and --fact:")
    for conversation in receipt.conversations:
        printer.line(f"conversation {conversation}")
    for message in receipt.messages:
        text = f": {texts[message.id]}" if message.id in texts else ""
        printer.line(f"message {message.id} ({message.conversation}, {message.seq}){text}")
    for notes in receipt.segments:
        printer.line(f"notes {notes}")
    for fact in receipt.facts:
        printer.line(f"fact {fact}" + (f": {texts[fact]}" if fact in texts else ""))
    for file in receipt.files:
        printer.line(f"changed {file}")
    for file in receipt.still_in:
        warn(f"{file} has the text, and was left alone")
