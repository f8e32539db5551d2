"""Rate limits of models, shared by all processes on a database."""

import asyncio
from dataclasses import dataclass
from datetime import timedelta
from typing import Final

from remanence.background import write_if_possible
from remanence.clock import Clock, render_time
from remanence.engine.waits import has_waited
from remanence.errors import ModelError
from remanence.policy.schedule import DEFERRED, MAX_ASKED_SECONDS
from remanence.protocols import CallLimits, Model, ModelAnswer, ModelRequest
from remanence.providers.layer import AnswerT, Link, Pieces, RequestT, Wrapper, pieces_of
from remanence.tokens import count_tokens
from remanence.types import CallPermit

_PAUSES: Final = frozenset({"overloaded", "rate_limit"})


@dataclass(frozen=True, slots=True, kw_only=True)
class SharedLimit:
    """Limits on calls and input tokens per minute and model, counted in the database."""

    calls: CallLimits
    clock: Clock
    calls_per_minute: int | None = None
    input_tokens_per_minute: int | None = None

    async def take(self, model: str, request: ModelRequest) -> CallPermit:
        """Count a call of *model*.

        Raises:
            ModelError: `deferred`, with the time to wait; the call is not counted.
        """
        share, now = 0.0, self.clock.now()
        if self.calls_per_minute is not None:
            share = 1 / self.calls_per_minute
        if self.input_tokens_per_minute is not None:
            tokens = await asyncio.to_thread(count_tokens, request.stable + request.prompt)
            share = max(share, tokens / self.input_tokens_per_minute)
        permit = await self.calls.take_call(
            model, share=share, is_follow_up=request.is_follow_up, waited=has_waited(), now=now
        )
        if permit.wait_until is not None:
            raise ModelError(
                DEFERRED,
                f"{model} is not called before {render_time(permit.wait_until, now=now)}, because of "
                "its rate limit or a pause that its provider asked for",
                retry_after_seconds=(permit.wait_until - now).total_seconds(),
            )
        return permit

    async def pause(self, model: str, seconds: float) -> None:
        """Pause the calls of a model in all processes, for at most a day."""
        until = self.clock.now() + timedelta(seconds=min(seconds, MAX_ASKED_SECONDS))
        await self.calls.pause_calls(model, until=until)


class PauseReport(Wrapper[RequestT, AnswerT]):
    """Shares pauses that a model's provider asks for with all processes."""

    def __init__(self, model: Link[RequestT, AnswerT], limit: SharedLimit) -> None:
        super().__init__(model)
        self._limit = limit

    async def pieces(self, request: RequestT, *, streaming: bool) -> Pieces[AnswerT]:
        try:
            async with pieces_of(self._model, request, streaming=streaming) as pieces:
                async for piece in pieces:
                    yield piece
        except ModelError as error:
            if error.reason in _PAUSES and (seconds := error.retry_after_seconds):
                await write_if_possible(self._limit.pause(self.name, seconds))
            raise


class SharedLimitModel(Wrapper[ModelRequest, ModelAnswer]):
    """Calls a model within its limits, and shares pauses that its provider asks for."""

    def __init__(self, model: Model, limit: SharedLimit) -> None:
        super().__init__(PauseReport(model, limit))
        self._limit = limit

    async def pieces(self, request: ModelRequest, *, streaming: bool) -> Pieces[ModelAnswer]:
        permit = await self._limit.take(self.name, request)
        async with pieces_of(self._model, request, streaming=streaming) as pieces:
            async for piece in pieces:
                yield piece
        if permit.tests_pause is not None:
            await self._limit.calls.resume_calls(self.name, paused_until=permit.tests_pause)
