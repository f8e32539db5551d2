"""Usage, prices and rate limits of model calls."""

from dataclasses import dataclass
from datetime import datetime
from typing import Final, Literal, NamedTuple, TypeAlias

from remanence.types.state import ConversationRef

Purpose: TypeAlias = Literal["observe", "reflect", "repair", "facts", "chat", "proxy"]

TURNS: Final = ("chat", "proxy")
"""The purposes of calls that answer a user, which no budget counts."""

ANSWERED: Final = ("ok", "cut_off", "paused")
"""The outcomes of calls that brought an answer."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Usage:
    """One model call: conversation, purpose, tokens, cost, duration and outcome.

    `input_tokens` counts all input, including tokens read from or written to the prompt cache.
    `cost_usd` is None if no price is known, `duration_seconds` 0 if the call was not timed.
    `outcome` is `ok`, `cut_off` or `paused` for an answer, or else an error code. `estimated` is
    True if the tokens are our own count, because the provider did not report them.
    """

    conversation: ConversationRef | None = None
    user: str | None = None
    purpose: Purpose = "chat"
    model: str
    input_tokens: int
    output_tokens: int
    cache_read_tokens: int = 0
    cache_write_tokens: int = 0
    cost_usd: float | None = None
    duration_seconds: float = 0.0
    outcome: str = "ok"
    at: datetime
    estimated: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class UsageTotal:
    """The total usage of one model for one purpose.

    `failed_calls` counts calls without an answer. `cost_usd` is the sum without the
    `unpriced_calls`, or None if no price is known.
    """

    purpose: Purpose
    model: str
    calls: int
    failed_calls: int
    input_tokens: int
    output_tokens: int
    cache_read_tokens: int
    cache_write_tokens: int
    cost_usd: float | None
    unpriced_calls: int
    duration_seconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class CachePrices:
    """Prices in US dollars per million tokens: plain input, cache reads, cache writes, output."""

    model: str
    plain: float
    read: float
    write: float
    output: float


class CallPermit(NamedTuple):
    """The permission to call a model now, or with `wait_until` the time to ask again.

    `tests_pause` is set if the call tests whether a pause is over: an answer ends the pause until
    that time.
    """

    wait_until: datetime | None = None
    tests_pause: datetime | None = None


class ModelPause(NamedTuple):
    """A pause in the calls of a model, which its provider asked for."""

    model: str
    until: datetime
