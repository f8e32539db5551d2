"""A chain of models, tried in order; a failed model is skipped for a while."""

from collections.abc import Callable, Sequence
from copy import copy
from datetime import datetime, timedelta
from typing import Final, Self

from remanence.catalog import chain_name
from remanence.clock import Clock, render_time
from remanence.errors import InvalidArgument, ModelError
from remanence.policy.schedule import DEFERRED
from remanence.providers.layer import AnswerT, Layer, Link, Pieces, RequestT, pieces_of
from remanence.types import Usage

OF_THE_REQUEST: Final = frozenset({"bad_request", "refused", "too_long"})
"""Failures caused by the request itself, which start no cooldown."""

_NO_COOLDOWN: Final = OF_THE_REQUEST | {DEFERRED}


class FallbackModel(Layer[RequestT, AnswerT]):
    """Calls the first model that is not cooling down after a failure, and on failure the next.

    A stream that has yielded text is not restarted with another model.

    Raises:
        ModelError: the error of the last model called; `cooling` if all are cooling down, with the
            seconds until one is available in `retry_after_seconds`.
        InvalidArgument: the chain is empty.
    """

    def __init__(
        self,
        models: Sequence[Link[RequestT, AnswerT]],
        *,
        clock: Clock,
        cooldown_seconds: float = 60,
    ) -> None:
        if not models:
            raise InvalidArgument("model=[] is impossible: name at least one model")
        self.name = chain_name(model.name for model in models)
        self._models = tuple(models)
        self._clock = clock
        self._cooldown_seconds = cooldown_seconds
        self._cool_at: dict[int, datetime] = {}

    def wrap(self, wrap: Callable[[Link[RequestT, AnswerT]], Link[RequestT, AnswerT]]) -> Self:
        """Return the chain with each model wrapped; both chains share the cooldowns."""
        chain = copy(self)
        chain._models = tuple(wrap(model) for model in self._models)
        return chain

    async def pieces(self, request: RequestT, *, streaming: bool) -> Pieces[AnswerT]:
        failure: ModelError | None = None
        for link, model in enumerate(self._models):
            if link in self._cool_at and self._clock.now() < self._cool_at[link]:
                continue
            begun = False
            try:
                async with pieces_of(model, request, streaming=streaming) as pieces:
                    async for piece in pieces:
                        begun = begun or not isinstance(piece, Usage)
                        yield piece
            except ModelError as error:
                failure = error
                if error.reason not in _NO_COOLDOWN:
                    seconds = max(self._cooldown_seconds, error.retry_after_seconds or 0.0)
                    self._cool_at[link] = self._clock.now() + timedelta(seconds=seconds)
                if begun:
                    raise
            else:
                self._cool_at.pop(link, None)
                return
        raise failure or self._cooling()

    def _cooling(self) -> ModelError:
        first, now = min(self._cool_at.values()), self._clock.now()
        seconds = max(0.0, (first - now).total_seconds())
        return ModelError(
            "cooling",
            f"every model of {self.name} failed recently; the next attempt is at "
            f"{render_time(first, now=now)}",
            retry_after_seconds=seconds,
        )
