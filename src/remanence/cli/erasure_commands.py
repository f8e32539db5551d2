"""`remanence delete` and `remanence forget`: erasing a conversation, messages, facts or a user.

They ask outside of the event loop, which Ctrl-C would not leave while it waits for an answer.
"""

import asyncio
from collections.abc import Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from typing import Annotated

import typer

from remanence.cli import FAILED, output
from remanence.cli.options import AsJson, ConversationId, Database, Tenant
from remanence.cli.output import quantity
from remanence.cli.settings import load, open_conversation, open_existing
from remanence.conversation import Conversation
from remanence.errors import ConversationNotFound
from remanence.settings import Settings
from remanence.stores import open_store
from remanence.types import Receipt

Yes = Annotated[bool, typer.Option("--yes", help="Do not ask.")]


def delete(
    *,
    conversation: ConversationId,
    yes: Yes = False,
    db: Database = None,
    tenant: Tenant = "default",
) -> int:
    """Erase a conversation with its notes and facts."""
    settings = load(url=db).settings
    try:
        asyncio.run(_require(settings, conversation, tenant))
    except ConversationNotFound:
        if not asyncio.run(_finish_erasure(settings)):
            raise
        output.line("what an earlier command had to leave is erased from the files")
        return 0
    what = f"all messages, notes and facts of conversation {conversation!r}"
    if not yes and not output.confirm(f"Delete {what} of tenant {tenant!r}?"):
        output.warn("nothing was deleted: answer 'yes', or pass --yes")
        return FAILED
    asyncio.run(_delete(settings, conversation, tenant))
    output.line(f"deleted {conversation} of tenant {tenant}")
    return 0


def forget(
    *,
    conversation: Annotated[str | None, typer.Argument(help="Its id.")] = None,
    user: Annotated[str | None, typer.Option(help="Forget everything about this user.")] = None,
    message: Annotated[
        list[str] | None,
        typer.Option(metavar="ID", help="The id of a message; may be repeated."),
    ] = None,
    fact: Annotated[
        list[str] | None, typer.Option(metavar="ID", help="The id of a fact; may be repeated.")
    ] = None,
    query: Annotated[
        str | None, typer.Option(metavar="WORDS", help="List matches, erase nothing.")
    ] = None,
    everywhere: Annotated[
        bool,
        typer.Option("--everywhere", help="Also list matches in the user's other conversations."),
    ] = False,
    verbose: Annotated[bool, typer.Option("--verbose", help="List all that was erased.")] = False,
    yes: Yes = False,
    db: Database = None,
    tenant: Tenant = "default",
    as_json: AsJson = False,
) -> int:
    """Erase messages, facts or a user, and all derived from them."""
    if (conversation is None) == (user is None) or (user and (message or fact or query)):
        raise typer.BadParameter("name a conversation, or a user with --user alone")
    _require_query(query, ids=[*(message or ()), *(fact or ())], everywhere=everywhere)
    if conversation is not None and not (message or fact or query):
        raise typer.BadParameter("name what to forget by --message or --fact; --query finds it")
    settings = load(url=db).settings
    messages, facts = message or (), fact or ()
    ids = ", ".join([*messages, *facts])
    what = f"user {user!r}" if user is not None else f"{ids} of {conversation!r}"
    asks = query is None and not yes
    if asks and conversation is not None:
        asyncio.run(_require(settings, conversation, tenant))
    if asks and not output.confirm(f"Forget {what} of tenant {tenant!r}?"):
        output.warn("nothing was forgotten: answer 'yes', or pass --yes")
        return FAILED
    texts: dict[tuple[str, str], str] = {}
    if user is not None:
        receipt = asyncio.run(_forget_user(settings, user, tenant))
    else:
        chat = open_conversation(settings, conversation or "", tenant=tenant, access="write")
        forgetting = _forget(chat, messages, facts, query=query, everywhere=everywhere)
        receipt, texts = asyncio.run(forgetting)
    if as_json:
        output.write_json(receipt)
        return 0
    if not (receipt.conversations or receipt.messages or receipt.facts or receipt.files):
        _report_nothing(user, tenant)
    elif receipt.erased and not verbose:
        _print_counts(receipt)
    else:
        _print_places(receipt, texts)
    for file in receipt.still_in:
        output.warn(f"{file} was left alone: edit or delete it")
    return 0


async def _delete(settings: Settings, conversation: str, tenant: str) -> None:
    async with open_conversation(settings, conversation, tenant=tenant, access="write") as chat:
        await chat.delete()


async def _finish_erasure(settings: Settings) -> bool:
    """Erase what an earlier command left in the files; return whether there was anything."""
    store = await open_store(settings.url)
    try:
        return await store.scrub(if_due=True)
    finally:
        await store.close()


async def _forget_user(settings: Settings, user: str, tenant: str) -> Receipt:
    async with open_existing(settings, access="write") as memory:
        return await memory.forget_user(user, tenant=tenant)


async def _forget(
    opening: AbstractAsyncContextManager[Conversation],
    messages: Sequence[str],
    facts: Sequence[str],
    *,
    query: str | None,
    everywhere: bool,
) -> tuple[Receipt, dict[tuple[str, str], str]]:
    """Return the receipt, and if nothing was erased, the whole texts of what a query found."""
    async with opening as chat:
        receipt = await chat.forget(*messages, facts=facts, query=query, everywhere=everywhere)
        return receipt, {} if receipt.erased else await _read_texts(chat, receipt)


def _report_nothing(user: str | None, tenant: str) -> None:
    if user is None:
        output.line(f"nothing to forget was found in tenant {tenant!r}")
    else:
        output.warn(
            f"nothing to forget was found of user {user!r:.80} in tenant {tenant!r}: check the name; "
            "'remanence inspect --json' lists the tenants and users of all conversations"
        )


def _require_query(query: str | None, *, ids: Sequence[str], everywhere: bool) -> None:
    if query is not None and ids:
        raise typer.BadParameter("--query only lists matches: leave out --message and --fact")
    if everywhere and query is None:
        raise typer.BadParameter(
            "--everywhere needs --query: forget messages by id in their own conversation"
        )


async def _require(settings: Settings, conversation: str, tenant: str) -> None:
    """Raise `ConversationNotFound` before anybody is asked."""
    async with open_conversation(settings, conversation, tenant=tenant):
        pass


async def _read_texts(chat: Conversation, found: Receipt) -> dict[tuple[str, str], str]:
    """Return the whole texts of what a query found, by conversation and id, facts by "" and id."""
    texts: dict[tuple[str, str], str] = {}
    for place in found.messages:
        of_place = chat.sibling(place.conversation)
        for message in await of_place.messages(after=place.seq - 1, limit=1):
            if message.id == place.id:  # it may have been erased meanwhile
                texts[place.conversation, place.id] = message.full_text
    if (owner := await chat.owner()) is not None:
        known = await chat.facts.list(user=owner.user, tenant=owner.tenant, history=True)
        texts |= {("", fact.id): fact.summary for fact in known}
    return texts


def _print_counts(receipt: Receipt) -> None:
    counts = {
        "conversation": len(receipt.conversations),
        "message": len(receipt.messages),
        "segment": len(receipt.segments),
        "fact": len(receipt.facts),
        "vector": receipt.vectors,
        "changed file": len(receipt.files),
    }
    some = ", ".join(quantity(number, noun) for noun, number in counts.items() if number)
    output.line(f"forgotten: {some} (--verbose lists them)")
    _print_remade(receipt)


def _print_places(receipt: Receipt, texts: Mapping[tuple[str, str], str]) -> None:
    if receipt.erased:
        output.line("forgotten:")
    else:
        output.line("nothing is forgotten yet; select what to forget with --message and --fact:")
    for conversation in receipt.conversations:
        output.line(f"conversation {conversation}")
    for message in receipt.messages:
        place = f"{message.id} ({message.conversation}, {message.seq})"
        text = texts.get((message.conversation, message.id), "")
        output.line(f"message {place}{_shown(text)}")
    for notes in receipt.segments:
        output.line(f"notes {notes}")
    _print_remade(receipt)
    for fact in receipt.facts:
        output.line(f"fact {fact}{_shown(texts.get(('', fact), ''))}")
    for file in receipt.files:
        output.line(f"changed {file}")


def _shown(text: str) -> str:
    return f": {' '.join(text.split())}" if text else ""


def _print_remade(receipt: Receipt) -> None:
    if receipt.remade:
        segments = quantity(len(receipt.remade), "segment")
        gone, new = quantity(receipt.notes_gone, "note"), receipt.notes_new
        output.line(f"remade from the other messages: {segments}; {gone} gone, {new} new")
