"""Events of a chat turn, and its reply."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

from remanence.types import Usage


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    """The model's answer to a turn.

    `calls` are the model calls of the turn, one more than its rounds of tools; `usage` is their sum.
    `complete` is false if the answer was cut off at the output limit, or paused by Anthropic.
    """

    text: str
    usage: Usage
    calls: tuple[Usage, ...]
    complete: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class TextDelta:
    """A piece of the answer's text, as it arrives."""

    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolCalled:
    """The model calls a tool; `arguments` is a JSON string as the model wrote it."""

    call_id: str
    name: str
    arguments: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolReturned:
    """The result of a tool call, already on the tape."""

    call_id: str
    name: str
    text: str
    is_error: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Done:
    """The end of a turn; its reply is on the tape."""

    reply: Reply


ChatEvent: TypeAlias = TextDelta | ToolCalled | ToolReturned | Done


def make_reply(text: str, calls: Sequence[Usage], *, complete: bool) -> Reply:
    """Return the reply of a turn; its cost is unknown if that of any call is."""
    costs = [call.cost_usd for call in calls]
    known = [cost for cost in costs if cost is not None]
    usage = replace(
        calls[-1],
        input_tokens=sum(call.input_tokens for call in calls),
        output_tokens=sum(call.output_tokens for call in calls),
        cache_read_tokens=sum(call.cache_read_tokens for call in calls),
        cache_write_tokens=sum(call.cache_write_tokens for call in calls),
        cost_usd=sum(known) if len(known) == len(costs) else None,
        duration_seconds=sum(call.duration_seconds for call in calls),
        estimated=any(call.estimated for call in calls),
    )
    return Reply(text=text, usage=usage, calls=tuple(calls), complete=complete)
