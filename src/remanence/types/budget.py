"""Budgets for the model calls of a memory, and their state."""

import math
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Literal, TypeAlias

from remanence.errors import InvalidPolicy
from remanence.validation import NonNegativeFloat, NonNegativeInt, check_fields

BudgetScope: TypeAlias = Literal["conversation", "user", "day"]
BudgetLevel: TypeAlias = Literal["ok", "soft", "hard"]

_LIMITS = ("soft_usd", "hard_usd", "soft_tokens", "hard_tokens")


@dataclass(frozen=True, slots=True, kw_only=True)
class Budget:
    """A limit on the cost of observers, reflectors and extractors, not of chats and embedders.

    A call counts when it ends, so calls in progress may exceed a hard limit. Beyond it, the
    extraction of facts waits until the budget starts over.

    Attributes:
        scope: per conversation, per user of a tenant, or for everything in a UTC day.
        daily: whether the budget of a conversation or user starts over each UTC day; that of a day
            always does.
        soft_usd: the cost from which a warning is logged.
        hard_usd: the cost from which no model is called. Calls of unknown price count as 0.
        soft_tokens: like `soft_usd`, for input and output tokens together.
        hard_tokens: like `hard_usd`, for input and output tokens together.
    """

    scope: BudgetScope
    daily: bool = False
    soft_usd: NonNegativeFloat | None = None
    hard_usd: NonNegativeFloat | None = None
    soft_tokens: NonNegativeInt | None = None
    hard_tokens: NonNegativeInt | None = None

    def __post_init__(self) -> None:
        check_fields(self)
        fields = {name: getattr(self, name) for name in _LIMITS}
        limits = {name: limit for name, limit in fields.items() if limit is not None}
        if not limits:
            raise InvalidPolicy(f"a budget of each {self.scope} has no limit: set {_LIMITS[1]!r}")
        for soft, hard in (("soft_usd", "hard_usd"), ("soft_tokens", "hard_tokens")):
            if limits.get(soft, 0) > limits.get(hard, math.inf):
                raise InvalidPolicy(
                    f"budget {soft}={limits[soft]!r} is above {hard}={limits[hard]!r}, so that it would "
                    "never warn"
                )

    def since(self, now: datetime) -> datetime | None:
        """Return the time from which calls count; None: from the first call."""
        if not (self.daily or self.scope == "day"):
            return None
        return now.astimezone(UTC).replace(hour=0, minute=0, second=0, microsecond=0)

    def level(self, *, usd: float, tokens: int) -> BudgetLevel:
        """Return the level that this much spending has reached."""
        if _is_reached(self.hard_usd, usd) or _is_reached(self.hard_tokens, tokens):
            return "hard"
        if _is_reached(self.soft_usd, usd) or _is_reached(self.soft_tokens, tokens):
            return "soft"
        return "ok"


@dataclass(frozen=True, slots=True, kw_only=True)
class BudgetState:
    """The spending of a budget; at level `hard`, no model is called."""

    budget: Budget
    spent_usd: float
    spent_tokens: int
    level: BudgetLevel


def _is_reached(limit: float | None, spent: float) -> bool:
    return limit is not None and spent >= limit
