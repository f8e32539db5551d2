"""Retries of a call after a transient failure."""

import asyncio
import random
from collections.abc import Awaitable, Callable
from typing import Final

from remanence.errors import ModelError
from remanence.protocols import Model, ModelAnswer, ModelRequest

RETRYABLE: Final = frozenset({"connection", "overloaded", "rate_limit", "server", "timeout"})


class RetryingModel:
    """Retries a model with exponential backoff and jitter.

    A call is made at most `attempts` times. If the provider asks for a longer pause than
    `max_wait_seconds`, its error is raised at once: it says when to call again.
    """

    def __init__(
        self,
        model: Model,
        *,
        attempts: int = 2,
        first_wait_seconds: float = 1,
        max_wait_seconds: float = 30,
        jitter: Callable[[], float] = random.random,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self._model = model
        self._attempts = attempts
        self._first_wait_seconds = first_wait_seconds
        self._max_wait_seconds = max_wait_seconds
        self._jitter = jitter
        self._sleep = sleep

    @property
    def name(self) -> str:
        return self._model.name

    async def complete(self, request: ModelRequest) -> ModelAnswer:
        for attempt in range(1, self._attempts):
            try:
                return await self._model.complete(request)
            except ModelError as error:
                wait_seconds = self._wait_seconds(error, attempt)
                if wait_seconds is None:
                    raise
            await self._sleep(wait_seconds)
        return await self._model.complete(request)

    def _wait_seconds(self, error: ModelError, attempt: int) -> float | None:
        """Return the pause before the next attempt; None if there is none."""
        if error.reason not in RETRYABLE:
            return None
        provider_wait = error.retry_after_seconds or 0.0
        if provider_wait > self._max_wait_seconds:
            return None
        # At most 30 doublings, so that the product stays finite.
        ceiling = min(
            self._max_wait_seconds, self._first_wait_seconds * 2.0 ** min(attempt - 1, 30)
        )
        return max(provider_wait, ceiling * (0.5 + 0.5 * self._jitter()))
