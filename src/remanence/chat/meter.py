"""Recording the usage of each call of a chat, with or without an answer."""

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
"""Records a call; never blocks and never raises."""


class MeteredChatModel:
    """Records the usage of each call, including one that failed or was not read to its end.

    Such a call has the tokens of its error, or those that its stream reported before it ended.
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
