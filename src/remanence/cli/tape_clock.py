"""The time of a replayed conversation."""

from datetime import UTC, datetime

from remanence.clock import SystemClock


class TapeClock(SystemClock):
    """Time of the newest replayed message, so that pauses and caches repeat as they were.

    It follows the machine's clock if no message has a timestamp.
    """

    def __init__(self) -> None:
        self._now: datetime | None = None

    def reach(self, at: datetime | None) -> None:
        """Advance to the time of a message; never back."""
        if at is not None and (self._now is None or at > self._now):
            self._now = at.astimezone(UTC)

    def now(self) -> datetime:
        return self._now or super().now()
