"""A clock that moves only when a test advances it."""

import itertools
from datetime import UTC, datetime, timedelta

from remanence.arguments import require_moment

START = datetime(2026, 3, 2, 9, 0, tzinfo=UTC)


class FixedClock:
    """A clock with ids that count up, and time that only `advance` moves."""

    def __init__(self, now: datetime = START, *, prefix: str = "") -> None:
        require_moment(now=now)
        self._now = now
        self._prefix = prefix
        self._numbers = itertools.count(1)

    def now(self) -> datetime:
        """Return the time that was set; it does not pass by itself."""
        return self._now

    def new_id(self, kind: str) -> str:
        """Return *kind* with the next number."""
        return f"{kind}_{self._prefix}{next(self._numbers):08d}"

    def advance(self, seconds: float) -> None:
        """Move the time forward by *seconds*."""
        self._now += timedelta(seconds=seconds)
