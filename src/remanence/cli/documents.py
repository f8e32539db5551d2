"""JSON documents shared by several commands; docs/reference/cli.md lists their keys."""

import dataclasses

from remanence.context.context import Context
from remanence.types import Failure, MemoryState, Message, Segment
from remanence.wire.json_value import JsonObject

_NOTE = ("text", "first_seq", "last_seq", "observed_at", "referenced_at", "priority", "tag")
_SEGMENT = (
    *("id", "generation", "first_seq", "last_seq", "tokens", "source_tokens", "text", "notes"),
    *("lost", "dropped", "failed", "made_by", "created_at"),
)
_CURSORS = ("last_seq", "observed_seq", "active_seq", "reflected_seq", "tail_seq")


def segment(segment: Segment) -> JsonObject:
    """Return a segment with its notes and lost literals."""
    return {
        **_fields(segment, *_SEGMENT),
        "notes": [_fields(note, *_NOTE) for note in segment.notes],
        "failed": [stretch._asdict() for stretch in segment.failed],
    }


def state(state: MemoryState) -> JsonObject:
    """Return the cursors, token accounts and failures."""
    return {
        "tenant": state.ref.tenant,
        "conversation": state.ref.id,
        "user": state.user,
        **cursors(state),
        "tokens": {
            "history": state.last_sum_tokens,
            "unobserved": state.unobserved_tokens,
            "tail": state.tail_tokens,
        },
        "failures": state.failures,
        "observe_failure": _failure(state.observe_failure),
        "reflect_failure": _failure(state.reflect_failure),
        "lock_version": state.lock_version,
    }


def cursors(state: MemoryState) -> JsonObject:
    """Return the positions of the cursors on the tape."""
    return _fields(state, *_CURSORS)


def context(context: Context) -> JsonObject:
    """Return the request for Anthropic's Messages API, with an empty `system` if it has none."""
    return {"system": [], **context.to_anthropic()}


def stats(context: Context) -> JsonObject:
    """Return the tokens by tier, and the omitted messages with reasons."""
    return {
        **dataclasses.asdict(context.stats),
        "context_tokens": context.stats.context_tokens,
        "omitted": context.omitted,
    }


def message(message: Message) -> JsonObject:
    """Return a message as text, with its position on the tape."""
    names = ("seq", "role", "name", "kind", "created_at", "tokens")
    return {**_fields(message, *names), "text": message.full_text}


def _failure(failure: Failure | None) -> JsonObject | None:
    names = ("reason", "message", "at", "next_attempt_at", "failures", "skips", "deferrals")
    return _fields(failure, *names) if failure else None


def _fields(value: object, *names: str) -> JsonObject:
    return {name: getattr(value, name) for name in names}
