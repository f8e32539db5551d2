"""Export of everything stored about a user, as JSON Lines; docs/howto/forget.md has the format."""

import dataclasses
import json
from collections.abc import AsyncGenerator
from datetime import datetime
from typing import Any

from remanence.forgetting import conversations_of, read_tape
from remanence.runtime import Runtime
from remanence.stores.rows import encode_content
from remanence.types import Message, Owner


async def export_user(runtime: Runtime, owner: Owner) -> AsyncGenerator[str, None]:
    """Yield a line for each conversation, message, segment, fact, repetition, usage and file."""
    yield _line("user", {"tenant": owner.tenant, "user": owner.user, "at": runtime.clock.now()})
    async for ref in conversations_of(runtime, owner):
        state = await runtime.store.state(ref)
        if state is None:
            continue
        fields = dataclasses.asdict(state)
        del fields["key"]  # row keys would reveal how many conversations other tenants have
        yield _line("conversation", {"id": ref.id, **fields})
        async for message in read_tape(runtime, ref):
            yield _line("message", {"conversation": ref.id, **_message(message)})
        for segment in await runtime.store.segments(ref, live=False):
            yield _line("segment", {"conversation": ref.id, **dataclasses.asdict(segment)})
    for fact in await runtime.store.facts(owner, history=True):
        yield _line("fact", dataclasses.asdict(fact))
    for fact_id, fact in await runtime.store.repetitions(owner):
        yield _line("repetition", {"repeats": fact_id, **dataclasses.asdict(fact)})
    for total in await runtime.ledger.usage(tenant=owner.tenant, user=owner.user):
        yield _line("usage", dataclasses.asdict(total))
    if runtime.daily is not None:
        for file, text in await runtime.daily.read_all(owner):
            yield _line("daily_notes", {"file": file, "text": text})


def _message(message: Message) -> dict[str, Any]:  # values of many types
    fields = {field.name: getattr(message, field.name) for field in dataclasses.fields(message)}
    return {**fields, "content": json.loads(encode_content(message.content))}


def _line(kind: str, values: dict[str, Any]) -> str:  # as above
    return json.dumps({"line": kind, **values}, ensure_ascii=False, default=datetime.isoformat)
