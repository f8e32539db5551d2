"""A chain of models, tried in order; a failed model is skipped for a while."""

import asyncio
from collections.abc import Callable, Iterator, Sequence
from contextlib import aclosing
from copy import copy
from datetime import datetime, timedelta
from typing import Final, NamedTuple, Self

from remanence.catalog import chain_name
from remanence.clock import Clock, render_time
from remanence.deadline import seconds_left
from remanence.errors import InvalidArgument, ModelError
from remanence.policy.schedule import DEFERRED
from remanence.providers.layer import AnswerT, Layer, Link, Pieces, RequestT, pieces_of
from remanence.types import Usage

OF_THE_REQUEST: Final = frozenset({"bad_request", "cut_off", "refused", "too_long"})
"""Failures caused by the request itself, which start no cooldown."""

_NO_COOLDOWN: Final = OF_THE_REQUEST | {DEFERRED}


class _Cooldown(NamedTuple):
    """The time until which a model is skipped, and the pause that its provider asks for."""

    end: datetime
    pause_end: datetime


class FallbackModel(Layer[RequestT, AnswerT]):
    """Calls the first model that is not cooling down after a failure, and on failure the next.

    A cooldown is at least as long as the provider asks for. If all models are cooling down, the one
    whose provider asks for no further pause is called all the same, and of several the first that is
    available again. In a step, each gets an equal share of the time left, so that the next can answer
    if one hangs. A stream has no such limit, and once it has yielded text it is not restarted with
    another model.

    Raises:
        ModelError: the error of the last model called; `cooling` if all providers ask for a further
            pause, with the seconds until the first one ends in `retry_after_seconds`.
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
        self._cooldowns: dict[int, _Cooldown] = {}
        self._first = 0

    def after(self, name: str) -> Self | None:
        """Return the chain behind the model of this name, with the same cooldowns; None at its end."""
        named = [link for link, model in enumerate(self._models) if model.name == name]
        if not named or named[-1] + 1 == len(self._models):
            return None
        rest = copy(self)
        rest._first = named[-1] + 1
        return rest

    def wrap(self, wrap: Callable[[Link[RequestT, AnswerT]], Link[RequestT, AnswerT]]) -> Self:
        """Return the chain with each model wrapped; both chains share the cooldowns."""
        chain = copy(self)
        chain._models = tuple(wrap(model) for model in self._models)
        return chain

    async def pieces(self, request: RequestT, *, streaming: bool) -> Pieces[AnswerT]:
        failure: ModelError | None = None
        for link in self._links():
            begun = False
            try:
                async with aclosing(self._call(link, request, streaming=streaming)) as pieces:
                    async for piece in pieces:
                        begun = begun or not isinstance(piece, Usage)
                        yield piece
            except ModelError as error:
                failure = error
                if error.reason not in _NO_COOLDOWN:
                    self._cooldowns[link] = self._cooldown(error.retry_after_seconds or 0.0)
                if begun:
                    raise
            else:
                self._cooldowns.pop(link, None)
                return
        raise failure or self._cooling()

    async def _call(self, link: int, request: RequestT, *, streaming: bool) -> Pieces[AnswerT]:
        """Call a model; unless it streams, it gets its share of the step's time."""
        model, seconds = self._models[link], None if streaming else self._share(link)
        end = None if seconds is None else asyncio.get_running_loop().time() + seconds
        async with pieces_of(model, request, streaming=streaming) as pieces:
            while True:
                try:
                    async with asyncio.timeout_at(end) as limit:
                        piece = await anext(pieces, None)
                except TimeoutError as error:
                    if not limit.expired():
                        raise
                    text = f"{model.name} gave no answer within {seconds:,.1f} s, its share of the time"
                    raise ModelError("timeout", text, log_text=text) from error
                if piece is None:
                    return
                yield piece

    def _share(self, link: int) -> float | None:
        """Return the seconds that leave as many to each later model; None for the last one."""
        later = sum(map(self._is_free, range(link + 1, len(self._models))))
        left = seconds_left()
        return left / (1 + later) if left is not None and later else None

    def _is_free(self, link: int) -> bool:
        return link not in self._cooldowns or self._cooldowns[link].end <= self._clock.now()

    def _links(self) -> Iterator[int]:
        """Yield the models to call; if all are cooling down, the first whose pause is over."""
        is_any_free = False
        for link in range(self._first, len(self._models)):
            if self._is_free(link):
                is_any_free = True
                yield link
        if not is_any_free:
            now = self._clock.now()
            ready = [
                link
                for link, one in self._cooldowns.items()
                if link >= self._first and one.pause_end <= now
            ]
            yield from sorted(ready, key=self._cooldowns.__getitem__)[:1]

    def _cooldown(self, pause_seconds: float) -> _Cooldown:
        now, seconds = self._clock.now(), max(self._cooldown_seconds, pause_seconds)
        return _Cooldown(now + timedelta(seconds=seconds), now + timedelta(seconds=pause_seconds))

    def _cooling(self) -> ModelError:
        first = min(cooldown.pause_end for cooldown in self._cooldowns.values())
        now = self._clock.now()
        seconds = max(0.0, (first - now).total_seconds())
        return ModelError(
            "cooling",
            f"every provider of {self.name} asks for a pause; the next attempt is at "
            f"{render_time(first, now=now)}",
            retry_after_seconds=seconds,
        )
