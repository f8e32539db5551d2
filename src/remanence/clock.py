"""Time and ids, passed in so that a test can control them."""

import random
from datetime import UTC, datetime
from typing import Protocol


class Clock(Protocol):
    """The source of time and ids. Safe to call from any thread."""

    def now(self) -> datetime:
        """The current time, timezone-aware, in UTC."""

    def new_id(self, kind: str) -> str:
        """Return a new id that starts with *kind*, globally unique, sortable by time of creation."""


class SystemClock:
    """The machine's clock and random ids."""

    def now(self) -> datetime:
        return datetime.now(UTC)

    def new_id(self, kind: str) -> str:
        milliseconds = int(self.now().timestamp() * 1000)
        # Not a secret, and seeded anew in a forked process; a call to the system costs much more.
        return f"{kind}_{milliseconds:012x}{random.getrandbits(48):012x}"
