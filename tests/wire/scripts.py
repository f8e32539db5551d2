"""A model that does as it is told, and time that passes only by sleeping."""

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable

from remanence.errors import ModelError
from remanence.protocols import Model, ModelRequest
from remanence.providers.function import FunctionModel
from remanence.testing import FixedClock


class Script:
    """The answers of a model, one a call; an error is raised, and `ok` is for the calls beyond."""

    def __init__(self, *answers: str | ModelError) -> None:
        self.calls: list[ModelRequest] = []
        self._answers = deque(answers)

    async def __call__(self, request: ModelRequest) -> str:
        self.calls.append(request)
        answer = self._answers.popleft() if self._answers else "ok"
        if isinstance(answer, ModelError):
            raise answer
        return answer


class Sleeper:
    """Sleeps at once, on a clock that says that time has passed."""

    def __init__(self, clock: FixedClock) -> None:
        self.slept: list[float] = []
        self._clock = clock

    async def __call__(self, seconds: float) -> None:
        self.slept.append(seconds)
        self._clock.advance(seconds)
        await asyncio.sleep(0)


def model_of(function: Callable[[ModelRequest], Awaitable[str]]) -> Model:
    return FunctionModel(function, clock=FixedClock(), timeout_seconds=5)


def failed(reason: str, *, retry_after_seconds: float | None = None) -> ModelError:
    return ModelError(reason, f"it failed: {reason}", retry_after_seconds=retry_after_seconds)
