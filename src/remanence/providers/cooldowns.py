"""Cooldowns of the models of a chain after a failure."""

from datetime import datetime, timedelta
from typing import Final

from remanence.clock import Clock
from remanence.errors import ModelError

OF_THE_REQUEST: Final = frozenset({"bad_request", "refused", "too_long"})
"""Failures due to the request itself: they start no cooldown."""


class Cooldowns:
    """The end of each link's cooldown, by its number in the chain."""

    def __init__(self, *, clock: Clock, seconds: float) -> None:
        self._clock = clock
        self._seconds = seconds
        self._cool_at: dict[int, datetime] = {}

    def is_cooling(self, link: int) -> bool:
        """Return whether a link is cooling down."""
        cool_at = self._cool_at.get(link)
        return cool_at is not None and self._clock.now() < cool_at

    def begin(self, link: int, error: ModelError) -> None:
        """Start the cooldown of a failed link, at least as long as its provider asks for."""
        if error.reason in OF_THE_REQUEST:
            return
        seconds = max(self._seconds, error.retry_after_seconds or 0.0)
        self._cool_at[link] = self._clock.now() + timedelta(seconds=seconds)

    def end(self, link: int) -> None:
        """End the cooldown of a link that answered."""
        self._cool_at.pop(link, None)

    def error(self, name: str) -> ModelError:
        """Return the error of a chain whose links are all cooling down."""
        first = min(self._cool_at.values())
        seconds = max(0.0, (first - self._clock.now()).total_seconds())
        return ModelError(
            "cooling",
            f"every model of {name} failed lately; the next try is at {first:%H:%M:%S} UTC",
            retry_after_seconds=seconds,
        )
