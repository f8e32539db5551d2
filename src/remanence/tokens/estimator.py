"""Token estimates from weighted features of a text."""

import json
from collections.abc import Callable, Mapping
from functools import cache
from importlib.resources import files
from math import ceil
from typing import NamedTuple, TypeAlias

from remanence.catalog import Family
from remanence.tokens.features import features
from remanence.tokens.pieces import cutter

TextCount: TypeAlias = Callable[[str], int]
Weights: TypeAlias = Mapping[str, Mapping[str, float]]
"""Tokens by feature kind and detail; the detail `*` applies to details that are not listed."""

OTHERS = "*"
"""The detail for everything that a table does not list."""

_MIN_PER_PIECE = 0.1
_MAX_PER_BYTE = 0.75  # the rate of text without any pattern
_MAX_CACHED = 100_000
_TEXT_STEP = 1 << 14  # bounds how long a regex holds the GIL
_MAX_STEPS = 64
"""Steps of a text that are counted; a megabyte of base64, of which no piece repeats, takes a second."""

_GOLDEN_RATIO = (5**0.5 - 1) / 2
"""Multiples of it spread over each stride, so that the steps of no periodic text are all alike."""


class PieceTokens(dict[str, float]):
    """The tokens of each piece, calculated on first use."""

    def __init__(self, weights: Weights) -> None:
        super().__init__()
        self._weights = weights

    def __missing__(self, piece: str) -> float:
        """Calculate the tokens of `piece` and cache them, within a bound on memory."""
        tokens = 0.0
        for kind, detail, times in features(piece):
            known = self._weights.get(kind, {})
            tokens += times * known.get(detail, known.get(OTHERS, 0.0))
        if len(self) >= _MAX_CACHED:
            self.clear()
        most = 1 + _MAX_PER_BYTE * len(piece.encode(errors="replace"))
        self[piece] = tokens = min(max(tokens, _MIN_PER_PIECE), most)
        return tokens


@cache
def estimator(family: Family) -> TextCount:
    """Return the estimator of `family`, which counts 0 for empty text and otherwise at least 1.

    Of a text of more than a million characters, it counts a sample of steps.
    """
    table = _table()
    column = table.families.index(family)
    weights = {
        kind: {detail: row[column] * table.unit for detail, row in details.items()}
        for kind, details in table.weights.items()
    }
    piece_tokens = PieceTokens(weights).__getitem__
    cut = cutter()

    def count(text: str) -> int:
        if not text:
            return 0
        tokens, counted = 0.0, 0
        starts = range(0, len(text), _TEXT_STEP)
        stride = ceil(len(starts) / _MAX_STEPS)
        for number, first in enumerate(starts[::stride]):
            offset = int(number * _GOLDEN_RATIO % 1 * stride) * _TEXT_STEP
            start = min(first + offset, starts[-1])
            step = text[start : start + _TEXT_STEP]
            tokens += sum(map(piece_tokens, cut(step)))
            counted += len(step)
        return max(1, round(tokens * len(text) / counted))

    return count


class _Table(NamedTuple):
    """The file of weights: whole numbers of `unit` tokens, one per family."""

    families: list[str]
    unit: float
    weights: dict[str, dict[str, list[int]]]


@cache
def _table() -> _Table:
    source = files("remanence.tokens").joinpath("coefficients.json")
    return _Table(**json.loads(source.read_text(encoding="utf-8")))
