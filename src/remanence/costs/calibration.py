"""Correction factors for our token counts, learned from the usage that providers report."""

from collections.abc import Iterable, Mapping
from typing import Final

from remanence.types import Usage

MIN_TOKENS: Final = 500
"""Smaller requests are mostly framing, whose error does not predict that of large requests."""

MIN_REPORTED_TOKENS: Final = 50
SMOOTHING: Final = 0.2
LOWEST: Final = 0.5
HIGHEST: Final = 2.0

STEP: Final = 0.05
"""The difference at which the observed factor replaces the one in use.

Each change moves the place where an overfull tail is cut.
"""


class Calibrator:
    """Compares reported usage with our estimates. Not persisted; for one event loop."""

    def __init__(self) -> None:
        self._factors: dict[str, float] = {}
        self._in_use: dict[str, float] = {}

    @property
    def factors(self) -> Mapping[str, float]:
        """The factors to multiply estimates by, by model."""
        return dict(self._factors)

    def compare(self, usage: Usage, estimated_tokens: int) -> None:
        """Move the model's factor towards the ratio of reported to estimated tokens."""
        model, reported = usage.model, usage.input_tokens
        is_small = estimated_tokens < MIN_TOKENS or reported < MIN_REPORTED_TOKENS
        if usage.estimated or is_small:
            return
        ratio = min(max(reported / estimated_tokens, LOWEST), HIGHEST)
        known = self._factors.get(model, 1.0)
        factor = self._factors[model] = known + SMOOTHING * (ratio - known)
        if abs(factor - self._in_use.get(model, 1.0)) >= STEP:
            self._in_use[model] = factor

    def window_factor(self, models: Iterable[str]) -> float:
        """Return the factor for comparing a context with the window.

        It is the largest of *models*, as any of them may be called, and at least 1.0, so that a model
        that counted fewer tokens does not get a fuller window.
        """
        return max((1.0, *(self._in_use.get(model, 1.0) for model in models)))
