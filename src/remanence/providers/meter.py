"""Recording the usage of each call of a model, with or without an answer."""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import aclosing
from dataclasses import replace
from typing import TypeAlias

from remanence.clock import Clock
from remanence.errors import ModelError
from remanence.providers.layer import AnswerT, Link, Pieces, RequestT, Wrapper, pieces_of
from remanence.types import Usage

Record: TypeAlias = Callable[[RequestT, Usage], Awaitable[None]]
"""Records a call; never blocks and never raises."""


class UnusableAnswer(ModelError):
    """The model returned no usable answer, such as a refusal; `usage` is that of the call."""

    def __init__(
        self,
        reason: str,
        message: str,
        *,
        usage: Usage,
        retry_after_seconds: float | None = None,
    ) -> None:
        super().__init__(reason, message, retry_after_seconds=retry_after_seconds)
        self.usage = usage


class MeteredModel(Wrapper[RequestT, AnswerT]):
    """Records the usage of each call, including one that failed or was not read to its end.

    Such a call has the tokens of its error, or those that its stream reported before it ended.
    """

    def __init__(
        self, model: Link[RequestT, AnswerT], *, record: Record[RequestT], clock: Clock
    ) -> None:
        super().__init__(model)
        self._record = record
        self._clock = clock

    async def pieces(self, request: RequestT, *, streaming: bool) -> Pieces[AnswerT]:
        started = asyncio.get_running_loop().time()
        answered, known = False, None
        try:
            async with aclosing(pieces_of(self._model, request, streaming=streaming)) as pieces:
                async for piece in pieces:
                    if isinstance(piece, Usage):
                        known = piece
                        continue
                    if not isinstance(piece, str):
                        answered = True
                        await self._record(request, piece.usage)
                    yield piece
        except BaseException as error:
            if not answered:
                unanswered = self._failed_usage(request, error, started)
                if known is not None and unanswered.outcome == known.outcome:
                    unanswered = replace(known, duration_seconds=unanswered.duration_seconds)
                await self._record(request, unanswered)
            raise

    def _failed_usage(self, request: RequestT, error: BaseException, started: float) -> Usage:
        if isinstance(error, UnusableAnswer):
            return error.usage
        return Usage(
            conversation=request.conversation,
            user=request.user,
            purpose=request.purpose,
            model=self.name,
            input_tokens=0,
            output_tokens=0,
            cache_read_tokens=0,
            cache_write_tokens=0,
            cost_usd=None,
            duration_seconds=asyncio.get_running_loop().time() - started,
            outcome=_outcome(error),
            at=self._clock.now(),
        )


def _outcome(error: BaseException) -> str:
    """Return the outcome code of an error; a stream that was not read to its end is cancelled."""
    if isinstance(error, ModelError):
        return error.reason
    given_up = isinstance(error, asyncio.CancelledError | GeneratorExit)
    return "cancelled" if given_up else "failed"
