"""Retries of a call after a transient failure."""

import asyncio
import random
from collections.abc import Awaitable, Callable
from typing import Final

from remanence.errors import ModelError
from remanence.providers.layer import AnswerT, Link, Pieces, RequestT, Wrapper, pieces_of
from remanence.types import Usage

RETRYABLE: Final = frozenset({"connection", "overloaded", "rate_limit", "server", "timeout"})


class RetryingModel(Wrapper[RequestT, AnswerT]):
    """Retries a model with exponential backoff and jitter.

    A call is made at most `attempts` times, and a stream is not restarted once it has yielded text.
    If the provider asks for a longer pause than `max_wait_seconds`, its error is raised at once, with
    the time to call again.
    """

    def __init__(
        self,
        model: Link[RequestT, AnswerT],
        *,
        attempts: int = 2,
        first_wait_seconds: float = 1,
        max_wait_seconds: float = 30,
        jitter: Callable[[], float] = random.random,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        super().__init__(model)
        self._attempts = attempts
        self._first_wait_seconds = first_wait_seconds
        self._max_wait_seconds = max_wait_seconds
        self._jitter = jitter
        self._sleep = sleep

    async def pieces(self, request: RequestT, *, streaming: bool) -> Pieces[AnswerT]:
        for attempt in range(1, self._attempts + 1):
            begun = False
            try:
                async with pieces_of(self._model, request, streaming=streaming) as pieces:
                    async for piece in pieces:
                        begun = begun or not isinstance(piece, Usage)
                        yield piece
                return
            except ModelError as error:
                wait_seconds = self._wait_seconds(error, attempt)
                if begun or wait_seconds is None or attempt == self._attempts:
                    raise
            await self._sleep(wait_seconds)

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
