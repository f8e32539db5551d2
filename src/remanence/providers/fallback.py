"""Several models, tried in order; one that failed is skipped for a while."""

from collections.abc import Callable, Sequence
from contextlib import aclosing
from copy import copy
from datetime import datetime, timedelta
from typing import Final, Self

from remanence.clock import Clock
from remanence.errors import InvalidArgument, ModelError
from remanence.providers.layer import AnswerT, Layer, Link, Pieces, RequestT, pieces_of
from remanence.types import Usage

OF_THE_REQUEST: Final = frozenset({"bad_request", "refused", "too_long"})
"""Failures due to the request itself: they start no cooldown."""


class FallbackModel(Layer[RequestT, AnswerT]):
    """Asks the first model that is not cooling down after a failure; when it fails, the next.

    A stream that has yielded text is not restarted with another model.

    Raises:
        ModelError: the error of the last model called; `cooling` if none was called, with
            `retry_after_seconds` until the first is available again.
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
        self._models = tuple(models)
        self._cooldowns = Cooldowns(clock=clock, seconds=cooldown_seconds)

    @property
    def name(self) -> str:
        return " > ".join(model.name for model in self._models)

    def wrap(self, wrap: Callable[[Link[RequestT, AnswerT]], Link[RequestT, AnswerT]]) -> Self:
        """Return the chain with each model wrapped; the two share their cooldowns."""
        chain = copy(self)
        chain._models = tuple(wrap(model) for model in self._models)
        return chain

    async def pieces(self, request: RequestT, *, streaming: bool) -> Pieces[AnswerT]:
        failure: ModelError | None = None
        for link, model in enumerate(self._models):
            if self._cooldowns.is_cooling(link):
                continue
            begun = False
            try:
                async with aclosing(pieces_of(model, request, streaming=streaming)) as pieces:
                    async for piece in pieces:
                        begun = begun or not isinstance(piece, Usage)
                        yield piece
            except ModelError as error:
                failure = error
                self._cooldowns.begin(link, error)
                if begun:
                    raise
            else:
                self._cooldowns.end(link)
                return
        raise failure or self._cooldowns.error(self.name)


class Cooldowns:
    """The end of each link's cooldown, by its number in the chain."""

    def __init__(self, *, clock: Clock, seconds: float) -> None:
        self._clock = clock
        self._seconds = seconds
        self._cool_at: dict[int, datetime] = {}

    def is_cooling(self, link: int) -> bool:
        """Return whether a link is cooling down."""
        cool_at = self._cool_at.get(link)
        return cool_at is not None and self._clock.now() < cool_at

    def begin(self, link: int, error: ModelError) -> None:
        """Start the cooldown of a failed link, at least as long as its provider asks for."""
        if error.reason in OF_THE_REQUEST:
            return
        seconds = max(self._seconds, error.retry_after_seconds or 0.0)
        self._cool_at[link] = self._clock.now() + timedelta(seconds=seconds)

    def end(self, link: int) -> None:
        """End the cooldown of a link that answered."""
        self._cool_at.pop(link, None)

    def error(self, name: str) -> ModelError:
        """Return the error of a chain whose links are all cooling down."""
        first = min(self._cool_at.values())
        seconds = max(0.0, (first - self._clock.now()).total_seconds())
        return ModelError(
            "cooling",
            f"every model of {name} failed lately; the next try is at {first:%H:%M:%S} UTC",
            retry_after_seconds=seconds,
        )
