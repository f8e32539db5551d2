"""Rate limits of a provider, within this process."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from datetime import datetime

from remanence.clock import Clock
from remanence.protocols import Model, ModelAnswer, ModelRequest
from remanence.providers.layer import Pieces, Wrapper, pieces_of
from remanence.tokens import count_tokens
from remanence.types import Usage


class Bucket:
    """A token bucket that fills evenly, up to one minute's worth.

    Units are taken at once, even below zero. The caller then waits until the bucket is back at zero,
    so that calls are served in order of arrival.
    """

    def __init__(self, per_minute: float, now: datetime) -> None:
        self._per_minute = per_minute
        self._units = per_minute
        self._filled_at = now

    def take(self, units: float, now: datetime) -> float:
        """Take *units*, at most a minute's worth, and return the seconds to wait."""
        self._fill(now)
        self._units -= min(units, self._per_minute)
        return max(0.0, -self._units * 60 / self._per_minute)

    def correct(self, taken: float, used: float, now: datetime) -> None:
        """Replace the units taken by the units used, each at most a minute's worth."""
        self._fill(now)
        unused = min(taken, self._per_minute) - min(used, self._per_minute)
        self._units = min(self._per_minute, self._units + unused)

    def _fill(self, now: datetime) -> None:
        seconds = max(0.0, (now - self._filled_at).total_seconds())
        self._units = min(self._per_minute, self._units + seconds * self._per_minute / 60)
        self._filled_at = now


class Limits:
    """Limits on requests and tokens per minute and on parallel calls, shared by users of this object."""

    def __init__(
        self,
        *,
        clock: Clock,
        requests_per_minute: float | None = None,
        tokens_per_minute: float | None = None,
        parallel: int = 8,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self._clock = clock
        self._sleep = sleep
        self._parallel = asyncio.Semaphore(parallel)
        now = clock.now()
        self._requests = Bucket(requests_per_minute, now) if requests_per_minute else None
        self._tokens = Bucket(tokens_per_minute, now) if tokens_per_minute else None

    @asynccontextmanager
    async def slot(self, tokens: int) -> AsyncIterator[None]:
        """Wait until a call of about *tokens* is within the limits, and count it as running."""
        async with self._parallel:
            now = self._clock.now()
            waits = [self._requests.take(1, now)] if self._requests else []
            waits += [self._tokens.take(tokens, now)] if self._tokens else []
            if any(waits):
                await self._sleep(max(waits))
            yield

    def settle(self, expected_tokens: int, used_tokens: int) -> None:
        """Replace the expected tokens of a call by those it used."""
        if self._tokens:
            self._tokens.correct(expected_tokens, used_tokens, self._clock.now())


class LimitedModel(Wrapper[ModelRequest, ModelAnswer]):
    """Calls a model as soon as its provider's limits allow."""

    def __init__(self, model: Model, limits: Limits) -> None:
        super().__init__(model)
        self._limits = limits

    async def pieces(self, request: ModelRequest, *, streaming: bool) -> Pieces[ModelAnswer]:
        expected = count_tokens(request.stable) + count_tokens(request.prompt)
        expected += request.max_output_tokens
        async with (
            self._limits.slot(expected),
            pieces_of(self._model, request, streaming=streaming) as pieces,
        ):
            async for piece in pieces:
                if not isinstance(piece, str | Usage):
                    used = piece.usage.input_tokens + piece.usage.output_tokens
                    self._limits.settle(expected, used)
                yield piece
