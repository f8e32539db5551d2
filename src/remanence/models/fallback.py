"""Several models, tried in order."""

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Final

from remanence.clock import Clock
from remanence.errors import ModelError
from remanence.protocols import Model, ModelAnswer, ModelRequest

OF_THE_REQUEST: Final = frozenset({"bad_request", "refused", "too_long"})
"""Failures that say nothing of the next request: the model is not left alone for them."""


class FallbackModel:
    """Asks the first model that is not cooling down after a failure; when it fails, the next.

    Raises:
        ModelError: that of the last model asked; `cooling` where none was asked, with
            `retry_after_seconds` until the first may be asked again.
    """

    def __init__(
        self, models: Sequence[Model], *, clock: Clock, cooldown_seconds: float = 60
    ) -> None:
        if not models:
            raise ValueError("a chain needs at least one model")
        self._models = tuple(models)
        self._clock = clock
        self._cooldown_seconds = cooldown_seconds
        self._cool_at: dict[int, datetime] = {}

    @property
    def name(self) -> str:
        return " > ".join(model.name for model in self._models)

    async def complete(self, request: ModelRequest) -> ModelAnswer:
        failure: ModelError | None = None
        for link, model in enumerate(self._models):
            if self._is_cooling(link):
                continue
            try:
                answer = await model.complete(request)
            except ModelError as error:
                failure = error
                self._let_cool(link, error)
            else:
                self._cool_at.pop(link, None)
                return answer
        raise failure or self._all_cooling()

    def _is_cooling(self, link: int) -> bool:
        cool_at = self._cool_at.get(link)
        return cool_at is not None and self._clock.now() < cool_at

    def _let_cool(self, link: int, error: ModelError) -> None:
        if error.reason in OF_THE_REQUEST:
            return
        seconds = max(self._cooldown_seconds, error.retry_after_seconds or 0.0)
        self._cool_at[link] = self._clock.now() + timedelta(seconds=seconds)

    def _all_cooling(self) -> ModelError:
        first = min(self._cool_at.values())
        seconds = max(0.0, (first - self._clock.now()).total_seconds())
        return ModelError(
            "cooling",
            f"every model of {self.name} failed lately; the next try is at {first:%H:%M:%S} UTC",
            retry_after_seconds=seconds,
        )
