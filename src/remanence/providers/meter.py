"""Recording the usage of each call of a model."""

import asyncio
from collections.abc import Callable
from datetime import datetime
from typing import TypeAlias

from remanence.clock import Clock
from remanence.errors import ModelError
from remanence.protocols import Model, ModelAnswer, ModelRequest
from remanence.types import ConversationRef, Purpose, Usage

RecordUsage: TypeAlias = Callable[[Usage], None]
"""Records a model call; never blocks and never raises."""


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


class MeteredModel:
    """Records the usage of each call, including one that failed or was cancelled.

    A failed call has the tokens of its error, if any.
    """

    def __init__(self, model: Model, *, record: RecordUsage, clock: Clock) -> None:
        self._model = model
        self._record = record
        self._clock = clock

    @property
    def name(self) -> str:
        return self._model.name

    async def complete(self, request: ModelRequest) -> ModelAnswer:
        loop = asyncio.get_running_loop()
        started = loop.time()
        try:
            answer = await self._model.complete(request)
        except BaseException as error:
            self._record(
                usage_of_failure(
                    error,
                    conversation=request.conversation,
                    user=request.user,
                    purpose=request.purpose,
                    model=self.name,
                    duration_seconds=loop.time() - started,
                    at=self._clock.now(),
                )
            )
            raise
        self._record(answer.usage)
        return answer


def usage_of_failure(
    error: BaseException,
    *,
    conversation: ConversationRef | None,
    user: str | None,
    purpose: Purpose,
    model: str,
    duration_seconds: float,
    at: datetime,
) -> Usage:
    """Return the usage of a call that ended with *error*: the tokens of the error, if any."""
    if isinstance(error, UnusableAnswer):
        return error.usage
    return Usage(
        conversation=conversation,
        user=user,
        purpose=purpose,
        model=model,
        input_tokens=0,
        output_tokens=0,
        cache_read_tokens=0,
        cache_write_tokens=0,
        cost_usd=None,
        duration_seconds=duration_seconds,
        outcome=_outcome(error),
        at=at,
    )


def _outcome(error: BaseException) -> str:
    """Return the outcome code of an error; a stream that was not read to its end is cancelled."""
    if isinstance(error, ModelError):
        return error.reason
    given_up = isinstance(error, asyncio.CancelledError | GeneratorExit)
    return "cancelled" if given_up else "failed"
