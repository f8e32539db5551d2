"""A model that follows a script."""

import asyncio
from collections.abc import Callable, Iterable
from datetime import UTC, datetime
from typing import TypeAlias

from remanence.errors import InvalidArgument
from remanence.protocols import ModelAnswer, ModelRequest
from remanence.types import Usage

ModelScript: TypeAlias = (
    str | ModelAnswer | BaseException | Callable[[ModelRequest], str | ModelAnswer]
)

AT = datetime(2026, 1, 1, tzinfo=UTC)
"""The time in the `Usage` of every answer; the ledger has that of the memory's clock."""


class ScriptedModel:
    """Returns one scripted answer per call, then *otherwise*; records its requests.

    An exception in the script is raised, and a function is called with the request. With `gate`, each
    call waits until that event is set; the first call sets `called`.
    """

    def __init__(
        self,
        script: Iterable[ModelScript] = (),
        *,
        otherwise: ModelScript = "NOTHING",
        name: str = "scripted-model",
        gate: asyncio.Event | None = None,
    ) -> None:
        if isinstance(script, str):
            raise InvalidArgument(f"script={script!r:.80} is impossible: use a list of answers")
        self.requests: list[ModelRequest] = []
        self.called = asyncio.Event()
        self._name = name
        self._script = list(script)
        self._otherwise = otherwise
        self._gate = gate

    @property
    def name(self) -> str:
        return self._name

    async def complete(self, request: ModelRequest) -> ModelAnswer:
        """Return the next answer of the script, or raise it if it is an exception."""
        self.requests.append(request)
        self.called.set()
        if self._gate is not None:
            await self._gate.wait()
        entry = self._script.pop(0) if self._script else self._otherwise
        if isinstance(entry, BaseException):
            raise entry
        answer = entry if isinstance(entry, str | ModelAnswer) else entry(request)
        if isinstance(answer, ModelAnswer):
            return answer
        return scripted_answer(answer, request, model=self._name)


def scripted_answer(
    text: str, request: ModelRequest, *, model: str = "scripted-model", complete: bool = True
) -> ModelAnswer:
    """Return an answer with *text*, and a usage of one token per four characters."""
    usage = Usage(
        conversation=request.conversation,
        user=request.user,
        purpose=request.purpose,
        model=model,
        input_tokens=(len(request.stable) + len(request.prompt)) // 4,
        output_tokens=len(text) // 4,
        cache_read_tokens=0,
        cache_write_tokens=0,
        cost_usd=None,
        duration_seconds=0.0,
        outcome="ok",
        at=AT,
    )
    return ModelAnswer(text=text, complete=complete, usage=usage)


def cut_off(text: str) -> Callable[[ModelRequest], ModelAnswer]:
    """Return a script entry: *text*, cut off at the output limit."""
    return lambda request: scripted_answer(text, request, complete=False)
