"""What one model call took."""

from dataclasses import dataclass
from datetime import datetime
from typing import Literal, TypeAlias

from remanence.types.state import ConversationRef

Purpose: TypeAlias = Literal["observe", "reflect", "repair", "facts", "chat"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Usage:
    """One model call: for whom and what, tokens, price, time and how it ended.

    `input_tokens` counts all input, also what was read from or written to the prompt cache
    (Anthropic reports the three apart, others report the sum). `cost_usd` is None where no price
    is known. `outcome` is `ok` or the code of what went wrong. `estimated` tells that the provider did
    not tell the tokens, and that they are our own count.
    """

    conversation: ConversationRef | None
    user: str | None
    purpose: Purpose
    model: str
    input_tokens: int
    output_tokens: int
    cache_read_tokens: int
    cache_write_tokens: int
    cost_usd: float | None
    duration_seconds: float
    outcome: str
    at: datetime
    estimated: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class UsageTotal:
    """What the calls of one purpose took of one model.

    `failed_calls` are those that brought no answer. `cost_usd` sums the known prices, of all but
    `unpriced_calls`; it is None where none is known.
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
