"""Models and embedders that are functions."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import aclosing
from contextvars import copy_context
from functools import partial
from typing import Final, TypeAlias

from remanence.arguments import is_async
from remanence.background import guard_host_code
from remanence.clock import Clock
from remanence.errors import ModelError
from remanence.protocols import ModelAnswer, ModelRequest
from remanence.providers.layer import Layer, Pieces
from remanence.providers.meter import Call, UnusableAnswer
from remanence.providers.redact import MESSAGE_LENGTH, without_keys
from remanence.providers.requests import Tokens
from remanence.tokens import count_tokens

MAX_ANSWER_CHARACTERS = 8_000_000
"""Far more than current models write, which is half a million at most."""


_END: Final = object()

ModelFunction: TypeAlias = Callable[[ModelRequest], Awaitable[str] | AsyncIterator[str]]
"""Returns a text, or yields the pieces of one."""

Vectors: TypeAlias = Sequence[Sequence[float]]
EmbedFunction: TypeAlias = Callable[[list[str]], Awaitable[Vectors] | Vectors]


class FunctionModel(Layer[ModelRequest, ModelAnswer]):
    """Calls a function from a request to a text; tokens are estimated, and the cost is unknown."""

    def __init__(self, function: ModelFunction, *, clock: Clock, timeout_seconds: float) -> None:
        self.name = _name(function)
        self._function = function
        self._clock = clock
        self._timeout_seconds = timeout_seconds

    async def pieces(self, request: ModelRequest, *, streaming: bool) -> Pieces[ModelAnswer]:
        call = Call(self.name, request, self._clock)
        deadline = asyncio.get_running_loop().time() + self._timeout_seconds
        parts: list[str] = []
        length = 0
        async with aclosing(self._texts(request)) as texts:
            while isinstance(piece := await self._next(texts, deadline), str):
                length += len(piece)
                self._check_length(length)
                parts.append(piece)
                if streaming:
                    yield piece
        text = "".join(parts)
        stable, prompt = count_tokens(request.stable), count_tokens(request.prompt)
        tokens = Tokens(input_tokens=stable + prompt, output_tokens=count_tokens(text))
        if not text.strip():
            failure = ModelError("empty", f"{self.name} returned no text")
            raise UnusableAnswer(failure, call.usage("empty", tokens, estimated=True))
        usage = call.usage("ok", tokens, estimated=True)
        yield ModelAnswer(text=text, complete=True, usage=usage)

    async def _texts(self, request: ModelRequest) -> AsyncGenerator[object, None]:
        answer = self._function(request)
        if not isinstance(answer, AsyncIterator):
            yield await answer
            return
        try:
            async for piece in answer:
                yield piece
        finally:
            if isinstance(answer, AsyncGenerator):
                await answer.aclose()

    async def _next(self, texts: AsyncGenerator[object, None], deadline: float) -> object:
        """Return the next piece of text, or `_END`."""
        limit = asyncio.timeout_at(deadline)
        try:
            async with limit:
                with guard_host_code():
                    text = await anext(texts, _END)
        except ModelError:
            raise
        except Exception as error:
            if limit.expired():
                message = f"{self.name} took longer than {self._timeout_seconds:g} s"
                raise ModelError("timeout", message, log_text=message) from error
            if isinstance(error, TypeError) and "await" in str(error):
                raise ModelError("failed", f"{self.name} is not async: use async def") from error
            reason = f"{type(error).__name__}: {without_keys(str(error))}"[:MESSAGE_LENGTH]
            raise ModelError(
                "failed",
                f"{self.name} raised {reason}",
                log_text=f"{self.name} raised {type(error).__name__}",
            ) from error
        if text is not _END and not isinstance(text, str):
            kind = type(text).__name__
            raise ModelError("bad_answer", f"{self.name} returned a {kind}: return a str")
        return text

    def _check_length(self, characters: int) -> None:
        if characters > MAX_ANSWER_CHARACTERS:
            raise ModelError(
                "bad_answer",
                f"{self.name} returned {characters:,} characters, more than the limit of "
                f"{MAX_ANSWER_CHARACTERS:,}: return only what the model wrote",
            )


class FunctionEmbedder:
    """Calls a function from texts to vectors, whose name identifies the vectors.

    A sync function runs in a thread of its own pool: calls that hang hold up no other work.
    """

    dimensions = None

    def __init__(self, function: EmbedFunction) -> None:
        self.name = _name(function)
        self._function = function
        self._threads = ThreadPoolExecutor(thread_name_prefix="remanence-embedder")

    async def embed(self, texts: Sequence[str]) -> Vectors:
        if is_async(self._function):
            vectors = self._function([*texts])
        else:
            call = partial(copy_context().run, self._function, [*texts])
            vectors = await asyncio.get_running_loop().run_in_executor(self._threads, call)
        return await vectors if isinstance(vectors, Awaitable) else vectors


def _name(function: object) -> str:
    return f"function:{getattr(function, '__qualname__', type(function).__name__)}"
