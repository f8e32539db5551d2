"""Correction factors of our token counts, by model, learned from the usage of providers."""

from collections.abc import Iterable, Mapping
from typing import Final

from remanence.types import Usage

MIN_TOKENS: Final = 500
"""Smaller requests are mostly framing, and their error does not predict that of a large one."""

MIN_REPORTED_TOKENS: Final = 50
SMOOTHING: Final = 0.2
LOWEST: Final = 0.5
HIGHEST: Final = 2.0

STEP: Final = 0.05
"""Difference at which the observed factor replaces the one in use.

Each change moves the place where an overfull tail is cut.
"""


class Calibrator:
    """Compares reported usage with our estimates. In memory only; for one event loop."""

    def __init__(self) -> None:
        self._factors: dict[str, float] = {}
        self._in_use: dict[str, float] = {}

    @property
    def factors(self) -> Mapping[str, float]:
        """Factors by which estimates are multiplied, by model."""
        return dict(self._factors)

    def compare(self, usage: Usage, estimated_tokens: int) -> None:
        """Learn from a call whose provider reported its tokens: the factor moves towards theirs."""
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
        """Return the factor for a context before it is compared with the window.

        It is the largest of *models*, as any of them may be asked, and at least 1.0: a model that
        counted fewer tokens so far does not get a fuller window.
        """
        return max((1.0, *(self._in_use.get(model, 1.0) for model in models)))
