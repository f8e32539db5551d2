"""Prices of a model's tokens."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class CachePrices:
    """Prices in US dollars per million tokens: plain input, cache reads, cache writes, output."""

    model: str
    plain: float
    read: float
    write: float
    output: float
