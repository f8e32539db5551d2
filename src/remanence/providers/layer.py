"""Layers around a model's calls, both whole and streamed."""

from abc import ABC, abstractmethod
from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import Any, Generic, Protocol, TypeAlias, TypeVar

from remanence.types import ConversationRef, Purpose, Usage


class Request(Protocol):
    """The owner and purpose of a call."""

    @property
    def purpose(self) -> Purpose: ...

    @property
    def conversation(self) -> ConversationRef | None: ...

    @property
    def user(self) -> str | None: ...


class Answer(Protocol):
    """The end of a call."""

    @property
    def usage(self) -> Usage: ...


RequestT = TypeVar("RequestT", bound=Request)
RequestContraT = TypeVar("RequestContraT", bound=Request, contravariant=True)
AnswerT = TypeVar("AnswerT", bound=Answer)
AnswerCoT = TypeVar("AnswerCoT", bound=Answer, covariant=True)

Pieces: TypeAlias = AsyncGenerator[str | Usage | AnswerT, None]
"""Pieces of text, then the answer. A usage in between counts if the call is closed at that point."""


class Link(Protocol[RequestContraT, AnswerCoT]):
    """A model of a chain: a `Model`, a `ChatModel` or a layer around one."""

    @property
    def name(self) -> str: ...

    async def complete(self, request: RequestContraT, /) -> AnswerCoT: ...


class Layer(ABC, Generic[RequestT, AnswerT]):
    """A layer of a model's call, which `pieces` implements; `complete` returns only the answer."""

    name: str

    @abstractmethod
    def pieces(self, request: RequestT, *, streaming: bool) -> Pieces[AnswerT]: ...

    async def complete(self, request: RequestT, /) -> AnswerT:
        answer: AnswerT | None = None
        async with aclosing(self.pieces(request, streaming=False)) as pieces:
            async for piece in pieces:
                if not isinstance(piece, str | Usage):
                    answer = piece
        assert answer is not None, "a call ends with its answer or an error"
        return answer


class Wrapper(Layer[RequestT, AnswerT]):
    """A layer around one model, with its name."""

    def __init__(self, model: Link[RequestT, AnswerT]) -> None:
        self.name = model.name
        self._model = model


def pieces_of(
    model: Link[RequestT, AnswerT], request: RequestT, *, streaming: bool
) -> "aclosing[Pieces[AnswerT]]":
    """Call a model for its pieces, which without streaming are only the answer."""
    if isinstance(model, Layer):
        return aclosing(model.pieces(request, streaming=streaming))
    streamed: Any = model  # only chat models can stream
    return aclosing(streamed.stream(request) if streaming else _answer(model, request))


async def _answer(model: Link[RequestT, AnswerT], request: RequestT) -> Pieces[AnswerT]:
    yield await model.complete(request)
