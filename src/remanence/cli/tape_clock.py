"""The time of a replayed conversation."""

from datetime import UTC, datetime

from remanence.clock import SystemClock


class TapeClock(SystemClock):
    """Tells the time of the newest replayed message, so that pauses and caches are as they were.

    Without any timestamp on the tape it is the machine's clock.
    """

    def __init__(self) -> None:
        self._now: datetime | None = None

    def reach(self, at: datetime | None) -> None:
        """Move to the time of a message; never backwards."""
        if at is not None and (self._now is None or at > self._now):
            self._now = at.astimezone(UTC)

    def now(self) -> datetime:
        return self._now or super().now()
