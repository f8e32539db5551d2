"""Telling what each call of a chat took, also of one that brought no answer."""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import aclosing
from dataclasses import replace
from typing import TypeAlias

from remanence.chat.fallback import Link
from remanence.chat.requests import ChatAnswer, ChatRequest
from remanence.clock import Clock
from remanence.providers import usage_of_failure
from remanence.types import Usage

RecordCall: TypeAlias = Callable[[ChatRequest, Usage], Awaitable[None]]
"""Takes note of a call; never waits and never raises."""


class MeteredChatModel:
    """Hands on the usage of each call, also of one that failed, or that nobody read to its end.

    Such a call has the tokens that its error knows of, or that its stream told before it was left.
    """

    def __init__(self, model: Link, *, record: RecordCall, clock: Clock) -> None:
        self._model = model
        self._record = record
        self._clock = clock

    @property
    def name(self) -> str:
        return self._model.name

    async def complete(self, request: ChatRequest) -> ChatAnswer:
        started = asyncio.get_running_loop().time()
        try:
            answer = await self._model.complete(request)
        except BaseException as error:
            await self._record(request, self._record_failure(request, error, started))
            raise
        await self._record(request, answer.usage)
        return answer

    async def stream(self, request: ChatRequest) -> AsyncGenerator[str | ChatAnswer, None]:
        started = asyncio.get_running_loop().time()
        answered, known = False, None
        try:
            async with aclosing(self._model.stream(request)) as pieces:
                async for piece in pieces:
                    if isinstance(piece, Usage):
                        known = piece
                        continue
                    if isinstance(piece, ChatAnswer):
                        answered = True
                        await self._record(request, piece.usage)
                    yield piece
        except BaseException as error:
            if not answered:
                unanswered = self._record_failure(request, error, started)
                if known is not None and unanswered.outcome == known.outcome:
                    unanswered = replace(known, duration_seconds=unanswered.duration_seconds)
                await self._record(request, unanswered)
            raise

    def _record_failure(self, request: ChatRequest, error: BaseException, started: float) -> Usage:
        return usage_of_failure(
            error,
            conversation=request.conversation,
            user=request.user,
            purpose="chat",
            model=self.name,
            duration_seconds=asyncio.get_running_loop().time() - started,
            at=self._clock.now(),
        )
