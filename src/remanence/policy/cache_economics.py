"""The lifetime of prompt caches, and the cost and savings of an activation with a warm cache.

Activation replaces raw messages with notes, so the prompt changes from there on: the rest is
written to the cache again, and every later call reads less.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from remanence.types import Message
from remanence.types.usage import CachePrices


@dataclass(frozen=True, slots=True, kw_only=True)
class BreakEven:
    """The cost of an activation, the savings per later call, and the calls to break even.

    Amounts are in US dollars. `calls` is None if later calls save nothing, 0 if activation is free.
    """

    cost: float
    saved_per_call: float
    calls: float | None


def is_cold(
    tail: Sequence[Message], *, lifetime: float, now: datetime, warmed_at: datetime | None = None
) -> bool:
    """Return whether the prompt cache has expired since the model's last answer.

    *warmed_at* is the time of the latest context; its answer may not be on the tape yet.
    """
    for message in reversed(tail):
        if message.role == "assistant" and message.created_at is not None:
            latest = max(message.created_at, warmed_at or message.created_at)
            return (now - latest).total_seconds() > lifetime
    return False


def break_even(
    prices: CachePrices, *, tail_tokens: int, kept_tokens: int, note_tokens: int, warm: bool = True
) -> BreakEven:
    """Calculate the cost and savings of one activation, in US dollars.

    Of the *tail_tokens*, *kept_tokens* stay raw, and notes of *note_tokens* replace the rest. Unless
    the tail is *warm*, in the cache, activation is free.
    """
    after = kept_tokens + note_tokens
    before_price = prices.read if warm else prices.write
    cost = (after * prices.write - tail_tokens * before_price) / 1e6
    saved = (tail_tokens - after) * prices.read / 1e6
    if cost <= 0:
        return BreakEven(cost=cost, saved_per_call=saved, calls=0.0)
    return BreakEven(cost=cost, saved_per_call=saved, calls=cost / saved if saved > 0 else None)
