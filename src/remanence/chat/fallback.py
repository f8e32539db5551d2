"""Several models of a chat, tried in order."""

from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import aclosing
from typing import Protocol

from remanence.chat.requests import ChatAnswer, ChatRequest
from remanence.errors import InvalidArgument, ModelError
from remanence.providers.cooldowns import Cooldowns
from remanence.types import Usage


class Link(Protocol):
    """One model of a chain."""

    @property
    def name(self) -> str: ...

    async def complete(self, request: ChatRequest) -> ChatAnswer: ...

    def stream(self, request: ChatRequest) -> AsyncGenerator[str | Usage | ChatAnswer, None]: ...


class FallbackChatModel:
    """Asks the first model that is not cooling down after a failure; when it fails, the next.

    A stream that has yielded text is not restarted with another model.

    Raises:
        ModelError: the error of the last model called; `cooling` if none was called, with
            `retry_after_seconds` until the first is available again.
        InvalidArgument: the chain is empty.
    """

    def __init__(self, models: Sequence[Link], *, cooldowns: Cooldowns) -> None:
        if not models:
            raise InvalidArgument("model=[] is impossible: name at least one model")
        self._models = tuple(models)
        self._cooldowns = cooldowns

    @property
    def name(self) -> str:
        return " > ".join(model.name for model in self._models)

    def wrap(self, wrap: Callable[[Link], Link]) -> "FallbackChatModel":
        """Return the chain with each model wrapped; the two share their cooldowns."""
        return FallbackChatModel([wrap(model) for model in self._models], cooldowns=self._cooldowns)

    async def complete(self, request: ChatRequest) -> ChatAnswer:
        failure: ModelError | None = None
        for link, model in enumerate(self._models):
            if self._cooldowns.is_cooling(link):
                continue
            try:
                answer = await model.complete(request)
            except ModelError as error:
                failure = error
                self._cooldowns.begin(link, error)
            else:
                self._cooldowns.end(link)
                return answer
        raise failure or self._cooldowns.error(self.name)

    async def stream(self, request: ChatRequest) -> AsyncGenerator[str | Usage | ChatAnswer, None]:
        failure: ModelError | None = None
        for link, model in enumerate(self._models):
            if self._cooldowns.is_cooling(link):
                continue
            begun = False
            try:
                async with aclosing(model.stream(request)) as pieces:
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
