"""What a model's tokens cost."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class CachePrices:
    """US dollars for a million tokens of plain input, input read from and written to the cache."""

    model: str
    plain: float
    read: float
    write: float
    output: float
