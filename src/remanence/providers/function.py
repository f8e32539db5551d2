"""Models and embedders that are async functions."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import TypeAlias

from remanence.clock import Clock
from remanence.errors import ModelError
from remanence.protocols import ModelAnswer, ModelRequest
from remanence.providers.meter import Call, UnusableAnswer
from remanence.providers.redact import MESSAGE_LENGTH, without_keys
from remanence.providers.requests import Tokens
from remanence.tokens import count_tokens

MAX_ANSWER_CHARACTERS = 8_000_000
"""Today's models write at most half a million."""


EmbedFunction: TypeAlias = Callable[[Sequence[str]], Awaitable[Sequence[Sequence[float]]]]


class FunctionModel:
    """Calls a function from a request to a text; its tokens are estimated, its price unknown."""

    def __init__(
        self,
        function: Callable[[ModelRequest], Awaitable[str]],
        *,
        clock: Clock,
        timeout_seconds: float,
    ) -> None:
        self.name = _name(function)
        self._function = function
        self._clock = clock
        self._timeout_seconds = timeout_seconds

    async def complete(self, request: ModelRequest) -> ModelAnswer:
        call = Call(self.name, request, self._clock)
        text = await self._call(request)
        stable, prompt = count_tokens(request.stable), count_tokens(request.prompt)
        tokens = Tokens(input_tokens=stable + prompt, output_tokens=count_tokens(text))
        if not text.strip():
            failure = ModelError("empty", f"{self.name} returned no text")
            raise UnusableAnswer(failure, call.usage("empty", tokens, estimated=True))
        usage = call.usage("ok", tokens, estimated=True)
        return ModelAnswer(text=text, complete=True, usage=usage)

    async def _call(self, request: ModelRequest) -> str:
        deadline = asyncio.timeout(self._timeout_seconds)
        try:
            async with deadline:
                return self._check_answer(await self._function(request))
        except ModelError:
            raise
        except Exception as error:
            if deadline.expired():
                message = f"{self.name} took longer than {self._timeout_seconds:g} s"
                raise ModelError("timeout", message) from error
            if isinstance(error, TypeError) and "await" in str(error):
                raise ModelError("failed", f"{self.name} is not async: use async def") from error
            reason = f"{type(error).__name__}: {without_keys(str(error))}"[:MESSAGE_LENGTH]
            raise ModelError("failed", f"{self.name} raised {reason}") from error

    def _check_answer(self, answer: object) -> str:
        if not isinstance(answer, str):
            kind = type(answer).__name__
            raise ModelError("bad_answer", f"{self.name} returned a {kind}: return a str")
        if len(answer) > MAX_ANSWER_CHARACTERS:
            raise ModelError(
                "bad_answer",
                f"{self.name} returned {len(answer):,} characters, more than the "
                f"{MAX_ANSWER_CHARACTERS:,} that an answer may have: return what the model wrote",
            )
        return answer


class FunctionEmbedder:
    """Calls a function from texts to vectors; its name identifies its vectors."""

    dimensions = None

    def __init__(self, function: EmbedFunction) -> None:
        self.name = _name(function)
        self._function = function

    async def embed(self, texts: Sequence[str]) -> Sequence[Sequence[float]]:
        return await self._function(texts)


def _name(function: object) -> str:
    return f"function:{getattr(function, '__qualname__', type(function).__name__)}"
