"""Recording the usage of each model call, with or without an answer."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import asdict, dataclass, field, replace
from typing import TypeAlias

from remanence.clock import Clock
from remanence.errors import ModelError
from remanence.providers.layer import AnswerT, Link, Pieces, Request, RequestT, Wrapper, pieces_of
from remanence.providers.requests import Tokens
from remanence.telemetry.spans import begin_call, end_call
from remanence.types import Usage

Record: TypeAlias = Callable[[RequestT, Usage], Awaitable[None]]
"""Records a call; never blocks and never raises."""


class UnusableAnswer(ModelError):
    """The model returned no usable answer, such as a refusal; `usage` is the call's usage."""

    def __init__(self, failure: ModelError, usage: Usage) -> None:
        super().__init__(
            failure.reason,
            str(failure),
            retry_after_seconds=failure.retry_after_seconds,
            public=failure.public,
            log_text=failure.log_text,
        )
        self.usage = usage


@dataclass(frozen=True, slots=True)
class Call:
    """A model call in progress."""

    model: str
    request: Request
    clock: Clock
    started: float = field(default_factory=lambda: asyncio.get_running_loop().time())

    def usage(self, outcome: str, tokens: Tokens, *, estimated: bool = False) -> Usage:
        """Return the usage of the call if it ends now; its input is at least its cached tokens."""
        cached = tokens.cache_read_tokens + tokens.cache_write_tokens
        tokens = replace(tokens, input_tokens=max(tokens.input_tokens, cached))
        return Usage(
            conversation=self.request.conversation,
            user=self.request.user,
            purpose=self.request.purpose,
            model=self.model,
            **asdict(tokens),
            duration_seconds=asyncio.get_running_loop().time() - self.started,
            outcome=outcome,
            at=self.clock.now(),
            estimated=estimated,
        )


class MeteredModel(Wrapper[RequestT, AnswerT]):
    """Records the usage of each call, including failed and abandoned ones, dated by the clock.

    The tokens of such a call come from its error, or from what its stream reported before the end.
    """

    def __init__(
        self, model: Link[RequestT, AnswerT], *, record: Record[RequestT], clock: Clock
    ) -> None:
        super().__init__(model)
        self._record = record
        self._clock = clock

    async def pieces(self, request: RequestT, *, streaming: bool) -> Pieces[AnswerT]:
        call = Call(self.name, request, self._clock)
        span = begin_call(self.name, request.purpose, request.conversation)
        answered, known = False, None
        try:
            async with pieces_of(self._model, request, streaming=streaming) as pieces:
                async for piece in pieces:
                    if isinstance(piece, Usage):
                        known = piece
                        continue
                    if not isinstance(piece, str):
                        answered = True
                        end_call(span, piece.usage)
                        usage = replace(piece.usage, at=self._clock.now())
                        await self._record(request, usage)
                    yield piece
        except BaseException as error:
            if not answered:
                usage = _failed_usage(call, error, known)
                end_call(span, usage)
                await self._record(request, usage)
            raise


def _failed_usage(call: Call, error: BaseException, known: Usage | None) -> Usage:
    """Return the usage of a failed call; an abandoned stream counts as cancelled."""
    if isinstance(error, UnusableAnswer):
        return error.usage
    is_cancelled = isinstance(error, asyncio.CancelledError | GeneratorExit)
    outcome = error.reason if isinstance(error, ModelError) else "failed"
    usage = call.usage("cancelled" if is_cancelled else outcome, Tokens())
    if known is not None and usage.outcome == known.outcome:
        return replace(known, duration_seconds=usage.duration_seconds)
    return usage
