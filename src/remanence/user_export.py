"""Export of everything stored about a user, as JSON Lines; docs/howto/forget.md has the format."""

import asyncio
import dataclasses
import json
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Collection, Sequence
from datetime import datetime
from typing import Any, TypeVar

from remanence.forgetting import PAGE, conversations_of, read_pages
from remanence.runtime import Runtime
from remanence.stores.rows import encode_content
from remanence.types import ConversationRef, Event, Message, Owner, Repetition, Usage

T = TypeVar("T")


async def export_user(runtime: Runtime, owner: Owner) -> AsyncGenerator[str, None]:
    """Yield a line for each row of a user, for the sums of model calls, and for each file."""
    yield _line("user", {"tenant": owner.tenant, "user": owner.user, "at": runtime.clock.now()})
    conversations = set()
    async for ref in conversations_of(runtime, owner):
        conversations.add(ref.id)
        async for line in _conversation(runtime, ref):
            yield line
    async for line in _facts(runtime, owner):
        yield line
    for total in await runtime.ledger.usage(tenant=owner.tenant, user=owner.user):
        yield _line("usage", dataclasses.asdict(total))
    async for line in _lines("model_call", await runtime.store.model_calls(owner), _call):
        yield line
    async for events in _events(runtime, owner, conversations):
        async for line in _lines("event", events, _event):
            yield line
    if runtime.daily is not None:
        for file, text in await runtime.daily.read_all(owner):
            yield _line("daily_notes", {"file": file, "text": text})


async def _conversation(runtime: Runtime, ref: ConversationRef) -> AsyncIterator[str]:
    state = await runtime.store.state(ref)
    if state is None:
        return
    fields = dataclasses.asdict(state)
    del fields["key"]  # row keys would reveal how many conversations other tenants have
    yield _line("conversation", {"id": ref.id, **fields})
    of = {"conversation": ref.id}
    async for page in read_pages(runtime, ref):
        async for line in _lines("message", page, lambda message: of | _message(message)):
            yield line
    segments = await runtime.store.segments(ref, live=False)
    async for line in _lines("segment", segments, lambda row: of | dataclasses.asdict(row)):
        yield line
    log = await runtime.store.log(ref)
    async for line in _lines("log", log, lambda row: of | dataclasses.asdict(row)):
        yield line


async def _facts(runtime: Runtime, owner: Owner) -> AsyncIterator[str]:
    facts = await runtime.store.facts(owner, history=True)
    async for line in _lines("fact", facts, dataclasses.asdict):
        yield line
    async for line in _lines("repetition", await runtime.store.repetitions(owner), _repetition):
        yield line


async def _lines(
    kind: str, rows: Sequence[T], fields: Callable[[T], dict[str, Any]]
) -> AsyncIterator[str]:
    """Yield a line for each row; they are made in threads, as there may be many."""
    for start in range(0, len(rows), PAGE):
        page = rows[start : start + PAGE]
        for line in await asyncio.to_thread(_page_lines, kind, page, fields):
            yield line


def _page_lines(
    kind: str, rows: Sequence[T], fields: Callable[[T], dict[str, Any]]
) -> Sequence[str]:
    return [_line(kind, fields(row)) for row in rows]


async def _events(
    runtime: Runtime, owner: Owner, conversations: Collection[str]
) -> AsyncIterator[Sequence[Event]]:
    """Yield pages of the events of a user, and of those without one that name a conversation.

    A conversation may have the id of a deleted one of another user.
    """
    after = 0
    while (page := await runtime.store.events(owner.tenant, after=after, limit=PAGE)).events:
        yield [
            event
            for event in page.events
            if event.user == owner.user
            or (event.user is None and event.conversation in conversations)
        ]
        after = page.last


def _repetition(repetition: Repetition) -> dict[str, Any]:  # values of many types
    return {"repeats": repetition.repeats, **dataclasses.asdict(repetition.fact)}


def _call(call: Usage) -> dict[str, Any]:  # as above
    named = {"conversation": call.conversation and call.conversation.id}
    return dataclasses.asdict(call) | named


def _event(event: Event) -> dict[str, Any]:  # as above
    fields = dataclasses.asdict(event)
    del fields["id"]  # it would reveal how many events other users have
    return fields


def _message(message: Message) -> dict[str, Any]:  # as above
    fields = {field.name: getattr(message, field.name) for field in dataclasses.fields(message)}
    return {**fields, "content": json.loads(encode_content(message.content))}


def _line(kind: str, values: dict[str, Any]) -> str:  # as above
    return json.dumps({"line": kind, **values}, ensure_ascii=False, default=datetime.isoformat)
