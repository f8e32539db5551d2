"""Correction of estimates by the counts that providers report."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType

_MIN_OBSERVED_TOKENS = 50


@dataclass(frozen=True, slots=True, kw_only=True)
class Calibration:
    """Smoothed correction factors by model; multiply an estimate by `factor`."""

    factors: Mapping[str, float] = field(default_factory=lambda: MappingProxyType({}))
    smoothing: float = 0.2
    lowest: float = 0.5
    highest: float = 2.0

    def __post_init__(self) -> None:
        """Reject bounds that would forbid an uncorrected estimate."""
        if not 0.0 < self.lowest <= 1.0 <= self.highest:
            raise ValueError(
                f"calibration bounds {self.lowest!r}..{self.highest!r} must enclose 1.0"
            )
        if not 0.0 < self.smoothing <= 1.0:
            raise ValueError(f"smoothing {self.smoothing!r} must be in (0, 1]")

    def factor(self, model: str) -> float:
        """Return the factor for `model`, 1.0 before the first observation."""
        return self.factors.get(model, 1.0)

    def observe(self, model: str, *, estimated: int, reported: int) -> "Calibration":
        """Return a calibration moved towards `reported / estimated`, both in uncorrected tokens.

        Small requests are ignored, because rounding dominates their error.
        """
        if estimated < _MIN_OBSERVED_TOKENS or reported < _MIN_OBSERVED_TOKENS:
            return self
        ratio = min(max(reported / estimated, self.lowest), self.highest)
        known = self.factor(model)
        moved = known + self.smoothing * (ratio - known)
        return replace(self, factors=MappingProxyType({**self.factors, model: moved}))
