"""How far our token counts are off for each model that a memory meets, by what providers report."""

from collections.abc import Mapping
from typing import Final

from remanence.tokens import Calibration
from remanence.types import Usage

LEAST_TOKENS: Final = 500
"""Below this a request is mostly frame, and its error says nothing of a large one."""

STEP: Final = 0.05
"""A factor in use rests until the observed one is so far from it: with each move the place where
an overfull tail is cut moves too."""


class Calibrator:
    """Compares calls with their estimates. Nothing is kept on disk. For one event loop."""

    def __init__(self) -> None:
        self._observed = Calibration()
        self._in_use: dict[str, float] = {}

    @property
    def factors(self) -> Mapping[str, float]:
        """What an estimate is multiplied with for each model that was compared."""
        return self._observed.factors

    def compare(self, usage: Usage, estimated_tokens: int) -> None:
        """Learn from a call whose provider told its tokens."""
        if usage.estimated or estimated_tokens < LEAST_TOKENS:
            return
        model = usage.model
        self._observed = self._observed.observe(
            model, estimated=estimated_tokens, reported=usage.input_tokens
        )
        factor = self._observed.factor(model)
        if abs(factor - self._in_use.get(model, 1.0)) >= STEP:
            self._in_use[model] = factor

    def window_factor(self, model: str | None) -> float:
        """What a context for *model* is multiplied with before it is held against the window.

        At least 1.0: a window is never filled further because a model counted less so far.
        """
        return max(1.0, self._in_use.get(model, 1.0)) if model else 1.0
