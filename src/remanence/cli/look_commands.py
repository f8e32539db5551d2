"""`remanence messages`, `recall`, `facts` and `delete`: the content of a memory."""

import asyncio
import json
import sys
from collections.abc import Iterator, Sequence
from typing import Any

from remanence.cli.documents import fact_document, hit_document, mask_password
from remanence.cli.output import Printer, warn, write_json
from remanence.cli.settings import existing, open_existing
from remanence.settings import Settings
from remanence.types import Fact, Hit, Message
from remanence.wire import anthropic, openai

PAGE = 200
FAILED = 1


def run_messages(settings: Settings, conversation: str, *, tenant: str, after: int) -> int:
    """Print the tape as JSON Lines for `remanence replay`."""

    async def write() -> None:
        async with open_existing(settings) as memory:
            chat = await existing(memory, conversation, tenant=tenant)
            last = after
            while page := await chat.messages(after=last, limit=PAGE):
                for line in _lines(page):
                    sys.stdout.write(f"{json.dumps(line, ensure_ascii=not _is_unicode())}\n")
                last = page[-1].seq

    asyncio.run(write())
    return 0


def run_recall(
    settings: Settings, conversation: str, query: str, *, tenant: str, limit: int, as_json: bool
) -> int:
    """Search a conversation and show the hits."""

    async def search() -> tuple[Hit, ...]:
        async with open_existing(settings) as memory:
            chat = await existing(memory, conversation, tenant=tenant)
            return await chat.recall(query, limit=limit)

    hits = asyncio.run(search())
    if as_json:
        write_json({"hits": [hit_document(hit) for hit in hits]})
    elif not hits:
        Printer().line(f"nothing in {conversation} matches {query!r}")
    else:
        _print_hits(Printer(), hits)
    return 0


def run_facts(
    settings: Settings,
    *,
    user: str,
    tenant: str,
    query: str | None,
    history: bool,
    limit: int,
    as_json: bool,
) -> int:
    """Show the facts of a user, all or those that match a query."""

    async def find() -> tuple[Fact, ...]:
        async with open_existing(settings) as memory:
            if query is not None:
                return await memory.facts.search(query, user=user, tenant=tenant, limit=limit)
            return await memory.facts.list(user=user, tenant=tenant, history=history, limit=limit)

    facts = asyncio.run(find())
    if as_json:
        write_json({"facts": [fact_document(fact) for fact in facts]})
    elif not facts:
        Printer().line(f"{mask_password(settings.url)} has no such fact of user {user!r}")
    else:
        _print_facts(Printer(), facts)
    return 0


def run_delete(settings: Settings, conversation: str, *, tenant: str, sure: bool) -> int:
    """Erase a conversation; return 1 if the user did not confirm."""
    if not sure and not _confirm(conversation, tenant):
        warn("nothing was deleted: answer 'yes', or give --yes")
        return FAILED

    async def delete() -> None:
        async with open_existing(settings, access="write") as memory:
            await (await existing(memory, conversation, tenant=tenant)).delete()

    asyncio.run(delete())
    Printer().line(f"deleted {conversation} of tenant {tenant}")
    return 0


def _confirm(conversation: str, tenant: str) -> bool:
    print(
        f"Delete all messages, notes and facts of conversation {conversation!r} of tenant "
        f"{tenant!r}? Type yes: ",
        end="",
        file=sys.stderr,
        flush=True,
    )
    return sys.stdin.readline().strip().lower() == "yes"


def _lines(messages: Sequence[Message]) -> Iterator[dict[str, Any]]:  # a provider's JSON
    for message in messages:
        rendered = openai.render(message.role, message.content, message.name)
        rendered = rendered or anthropic.render(message.role, message.content, message.name)
        at = {"created_at": message.created_at.isoformat()} if message.created_at else {}
        yield from ({**line, **at} for line in rendered)


def _is_unicode() -> bool:
    return (sys.stdout.encoding or "").lower().startswith("utf")


def _print_hits(printer: Printer, hits: Sequence[Hit]) -> None:
    printer.table(
        ("kind", "messages", "at (UTC)", "text~"),
        [
            (
                hit.kind,
                _place(hit),
                f"{hit.at:%Y-%m-%d %H:%M}" if hit.at else "",
                hit.snippet,
            )
            for hit in hits
        ],
    )


def _place(hit: Hit) -> str:
    if hit.kind == "fact":
        return ""
    return str(hit.first_seq) + (f"..{hit.last_seq}" if hit.last_seq != hit.first_seq else "")


def _print_facts(printer: Printer, facts: Sequence[Fact]) -> None:
    printer.table(
        ("id", "type", "since", "until", "fact~"),
        [
            (
                fact.id,
                fact.type,
                f"{fact.valid_from:%Y-%m-%d}",
                f"{fact.valid_to:%Y-%m-%d}" if fact.valid_to else "",
                fact.summary,
            )
            for fact in facts
        ],
    )
