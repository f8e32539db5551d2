"""Retries of a chat's call after a transient failure."""

import asyncio
import random
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import aclosing
from typing import Final

from remanence.chat.meter import MeteredChatModel
from remanence.chat.requests import ChatAnswer, ChatRequest
from remanence.errors import ModelError
from remanence.providers.retry import RETRYABLE

FIRST_WAIT_SECONDS: Final = 0.5
MAX_WAIT_SECONDS: Final = 4.0
"""A person is waiting: if the provider asks for a longer pause, its error is raised."""


class RetryingChatModel:
    """Calls a model at most `attempts` times; retries a stream only if it has yielded nothing."""

    def __init__(
        self,
        model: MeteredChatModel,
        *,
        attempts: int,
        jitter: Callable[[], float] = random.random,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self._model = model
        self._attempts = attempts
        self._jitter = jitter
        self._sleep = sleep

    @property
    def name(self) -> str:
        return self._model.name

    async def complete(self, request: ChatRequest) -> ChatAnswer:
        for attempt in range(1, self._attempts):
            try:
                return await self._model.complete(request)
            except ModelError as error:
                seconds = self._wait_seconds(error, attempt)
                if seconds is None:
                    raise
            await self._sleep(seconds)
        return await self._model.complete(request)

    async def stream(self, request: ChatRequest) -> AsyncGenerator[str | ChatAnswer, None]:
        for attempt in range(1, self._attempts + 1):
            begun = False
            try:
                async with aclosing(self._model.stream(request)) as pieces:
                    async for piece in pieces:
                        begun = True
                        yield piece
                return
            except ModelError as error:
                seconds = self._wait_seconds(error, attempt)
                if begun or seconds is None or attempt == self._attempts:
                    raise
            await self._sleep(seconds)

    def _wait_seconds(self, error: ModelError, attempt: int) -> float | None:
        """Return the pause before the next attempt; None if there is none."""
        provider_wait = error.retry_after_seconds or 0.0
        if error.reason not in RETRYABLE or provider_wait > MAX_WAIT_SECONDS:
            return None
        ceiling = min(MAX_WAIT_SECONDS, FIRST_WAIT_SECONDS * 2.0 ** min(attempt - 1, 30))
        return max(provider_wait, ceiling * (0.5 + 0.5 * self._jitter()))
