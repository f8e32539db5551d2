"""When a prompt cache is cold, and what activation costs and saves while it is warm.

Activation puts notes in the place of raw messages, so the prompt changes from there on: what
follows is written to the cache anew once, and every later call reads less.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from remanence.types import Message
from remanence.types.prices import CachePrices

_LIFETIMES = (("claude", 300.0), ("gpt", 600.0))
_OTHER_LIFETIME = 300.0
_LEAST_TOKENS = (
    ("opus-4-5", 4_096),
    ("opus-4-6", 4_096),
    ("haiku-4-5", 4_096),
    ("sonnet-4-6", 2_048),
    ("haiku-3", 2_048),
    ("3-5-haiku", 2_048),
)
_OTHER_LEAST = 1_024


@dataclass(frozen=True, slots=True, kw_only=True)
class BreakEven:
    """What an activation costs at once, what each later call saves, and when that is even.

    `calls` is None where no later call saves anything; 0 where activation is free.
    """

    cost: float
    saved_per_call: float
    calls: float | None


def lifetime_seconds(model: str) -> float:
    """How long a prompt cache of *model* is sure to live after its last use, as vendors state it."""
    name = model.lower()
    return next((seconds for part, seconds in _LIFETIMES if part in name), _OTHER_LIFETIME)


def least_cached_tokens(model: str) -> int:
    """The shortest prompt that *model* caches, as vendors state it."""
    name = model.lower()
    return next((tokens for part, tokens in _LEAST_TOKENS if part in name), _OTHER_LEAST)


def is_cold(
    tail: Sequence[Message], *, lifetime: float, now: datetime, warmed_at: datetime | None = None
) -> bool:
    """Whether the model's last answer is older than its prompt cache lives.

    *warmed_at* is when a context was made last that an answer may still be missing for.
    """
    for message in reversed(tail):
        if message.role == "assistant" and message.created_at is not None:
            latest = max(message.created_at, warmed_at or message.created_at)
            return (now - latest).total_seconds() > lifetime
    return False


def break_even(
    prices: CachePrices, *, tail_tokens: int, kept_tokens: int, note_tokens: int, warm: bool = True
) -> BreakEven:
    """The arithmetic of one activation, in US dollars.

    Args:
        prices: those of the model that reads the prompt.
        tail_tokens: the raw tail before.
        kept_tokens: what stays raw of it.
        note_tokens: the notes that take the place of the rest.
        warm: whether the tail is in the cache now; without, activation costs nothing.
    """
    after = kept_tokens + note_tokens
    before_price = prices.read if warm else prices.write
    cost = (after * prices.write - tail_tokens * before_price) / 1e6
    saved = (tail_tokens - after) * prices.read / 1e6
    if cost <= 0:
        return BreakEven(cost=cost, saved_per_call=saved, calls=0.0)
    return BreakEven(cost=cost, saved_per_call=saved, calls=cost / saved if saved > 0 else None)
