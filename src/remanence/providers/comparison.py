"""Comparison of the tokens that a provider reports with our estimate."""

import asyncio
from collections.abc import Callable
from typing import TypeAlias

from remanence.protocols import CountTokens, Model, ModelAnswer, ModelRequest
from remanence.types import Usage

CompareTokens: TypeAlias = Callable[[Usage, int], None]
"""Gets the usage of a call and the estimate of its input; never blocks and never raises."""


class ComparedModel:
    """Reports our estimate for each answer, except for a live prompt."""

    def __init__(self, model: Model, *, count: CountTokens, compare: CompareTokens) -> None:
        self._model = model
        self._count = count
        self._compare = compare

    @property
    def name(self) -> str:
        return self._model.name

    async def complete(self, request: ModelRequest) -> ModelAnswer:
        answer = await self._model.complete(request)
        if request.live is None and not answer.usage.estimated:
            # A request of an observer is long: counting it must not block the event loop.
            self._compare(answer.usage, await asyncio.to_thread(self._estimate, request))
        return answer

    def _estimate(self, request: ModelRequest) -> int:
        return self._count(request.stable) + self._count(request.prompt)
