"""A clock that stands still until it is told otherwise."""

import itertools
from datetime import UTC, datetime, timedelta

START = datetime(2026, 3, 2, 9, 0, tzinfo=UTC)


class FixedClock:
    """Time that moves by `advance` alone, and ids that count up."""

    def __init__(self, now: datetime = START, *, prefix: str = "") -> None:
        self._now = now
        self._prefix = prefix
        self._numbers = itertools.count(1)

    def now(self) -> datetime:
        return self._now

    def new_id(self, kind: str) -> str:
        return f"{kind}_{self._prefix}{next(self._numbers):08d}"

    def advance(self, seconds: float) -> None:
        """Let *seconds* pass."""
        self._now += timedelta(seconds=seconds)
