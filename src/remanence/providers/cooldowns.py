"""Which models of a chain failed lately and are left alone."""

from datetime import datetime, timedelta
from typing import Final

from remanence.clock import Clock
from remanence.errors import ModelError

OF_THE_REQUEST: Final = frozenset({"bad_request", "refused", "too_long"})
"""Failures that say nothing of the next request: the model is not left alone for them."""


class Cooldowns:
    """Times until which the links of a chain, by their numbers, are not asked."""

    def __init__(self, *, clock: Clock, seconds: float) -> None:
        self._clock = clock
        self._seconds = seconds
        self._cool_at: dict[int, datetime] = {}

    def is_cooling(self, link: int) -> bool:
        """Whether a link failed within its time."""
        cool_at = self._cool_at.get(link)
        return cool_at is not None and self._clock.now() < cool_at

    def begin(self, link: int, error: ModelError) -> None:
        """Leave a link alone that failed, for as long as its provider asks for, at least."""
        if error.reason in OF_THE_REQUEST:
            return
        seconds = max(self._seconds, error.retry_after_seconds or 0.0)
        self._cool_at[link] = self._clock.now() + timedelta(seconds=seconds)

    def end(self, link: int) -> None:
        """Ask a link again that answered."""
        self._cool_at.pop(link, None)

    def error(self, name: str) -> ModelError:
        """The failure of a chain of this name whose links are all cooling."""
        first = min(self._cool_at.values())
        seconds = max(0.0, (first - self._clock.now()).total_seconds())
        return ModelError(
            "cooling",
            f"every model of {name} failed lately; the next try is at {first:%H:%M:%S} UTC",
            retry_after_seconds=seconds,
        )
