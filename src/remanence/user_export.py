"""Export of everything stored about a user, as JSON Lines; docs/howto/forget.md has the format."""

import dataclasses
import json
from collections.abc import AsyncGenerator, AsyncIterator, Collection
from datetime import datetime
from typing import Any

from remanence.forgetting import PAGE, conversations_of, read_tape
from remanence.runtime import Runtime
from remanence.stores.rows import encode_content
from remanence.types import ConversationRef, Message, Owner


async def export_user(runtime: Runtime, owner: Owner) -> AsyncGenerator[str, None]:
    """Yield a line for each row of a user, for the sums of model calls, and for each file."""
    yield _line("user", {"tenant": owner.tenant, "user": owner.user, "at": runtime.clock.now()})
    conversations = set()
    async for ref in conversations_of(runtime, owner):
        conversations.add(ref.id)
        async for line in _conversation(runtime, ref):
            yield line
    for fact in await runtime.store.facts(owner, history=True):
        yield _line("fact", dataclasses.asdict(fact))
    for fact_id, fact in await runtime.store.repetitions(owner):
        yield _line("repetition", {"repeats": fact_id, **dataclasses.asdict(fact)})
    for total in await runtime.ledger.usage(tenant=owner.tenant, user=owner.user):
        yield _line("usage", dataclasses.asdict(total))
    for call in await runtime.store.model_calls(owner):
        named = {"conversation": call.conversation and call.conversation.id}
        yield _line("model_call", dataclasses.asdict(call) | named)
    async for event in _events(runtime, owner, conversations):
        yield _line("event", event)
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
    async for message in read_tape(runtime, ref):
        yield _line("message", {"conversation": ref.id, **_message(message)})
    for segment in await runtime.store.segments(ref, live=False):
        yield _line("segment", {"conversation": ref.id, **dataclasses.asdict(segment)})
    for entry in await runtime.store.log(ref):
        yield _line("log", {"conversation": ref.id, **dataclasses.asdict(entry)})


async def _events(
    runtime: Runtime, owner: Owner, conversations: Collection[str]
) -> AsyncIterator[dict[str, Any]]:  # values of many types
    """Yield the fields of the events of a user, and of those without one that name a conversation.

    A conversation may have the id of a deleted one of another user.
    """
    after = 0
    while (page := await runtime.store.events(owner.tenant, after=after, limit=PAGE)).events:
        for event in page.events:
            if event.user == owner.user or (
                event.user is None and event.conversation in conversations
            ):
                fields = dataclasses.asdict(event)
                del fields["id"]  # it would reveal how many events other users have
                yield fields
        after = page.last


def _message(message: Message) -> dict[str, Any]:  # values of many types
    fields = {field.name: getattr(message, field.name) for field in dataclasses.fields(message)}
    return {**fields, "content": json.loads(encode_content(message.content))}


def _line(kind: str, values: dict[str, Any]) -> str:  # as above
    return json.dumps({"line": kind, **values}, ensure_ascii=False, default=datetime.isoformat)
