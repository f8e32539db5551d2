"""Scores of sentences by the fitted weights, and the features that made them."""

from collections import defaultdict
from collections.abc import Generator, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import pairwise
from math import sqrt
from typing import NamedTuple

from remanence.observers.learned.features import (
    Features,
    Line,
    features,
    reading,
    word_grams,
)
from remanence.observers.learned.weights import PackedRows, Weights, bucket, load, unpack
from remanence.pacing import at_once

STEPS = 16
"""Steps of a first score per unit, when it is an input of the second."""
_MAX_STEPS = 127
ABSENT = -3 * STEPS
"""Input of a neighbour that does not exist."""
NEIGHBOURS = ("own", "previous", "next", "opening", "reply to", "reply")
_MAX_CACHED = 1 << 17
_DIGITS = 3


class Contribution(NamedTuple):
    """A feature and its share of a score."""

    feature: str
    amount: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Explanation:
    """Scores of a line by head, and the strongest features of one of them."""

    line: Line
    scores: dict[str, float]
    strongest: tuple[Contribution, ...]


class Scorer:
    """Scores lines; one is safe to share between tasks, not between threads."""

    def __init__(self, weights: Weights) -> None:
        self.weights = weights
        self._rows = PackedRows(weights.text)
        self._words: dict[str, tuple[int, int]] = {}
        self._context = tuple(map(weights.context.packed_row, range(len(weights.context))))

    def score(self, lines: Sequence[Line]) -> list[dict[str, float]]:
        """Log-odds of each head for the lines of one conversation, in order.

        0 is an even chance under the fit; `Weights.cutoffs` says from where a head should be believed.
        """
        return at_once(self.scoring(lines))

    def scoring(self, lines: Sequence[Line]) -> Generator[None, None, list[dict[str, float]]]:
        """Return what `score` does; yields after each small step."""
        found = yield from reading(lines)
        steps = []
        for one in found:
            steps.append(self._steps(one))
            yield
        return self._second(lines, steps)

    def explain(self, lines: Sequence[Line], *, head: str, limit: int) -> list[Explanation]:
        """Scores of the lines with the *limit* strongest features of *head*.

        Raises:
            ValueError: the weights have no such head.
        """
        heads = self.weights.heads
        if head not in heads:
            raise ValueError(f"{head!r} is not a head: choose one of {', '.join(heads)}")
        found = features(lines)
        steps = [self._steps(one) for one in found]
        explanations = []
        neighbours = list(neighbours_of(lines))
        for at, scores in enumerate(self._second(lines, steps)):
            parts = [*self._own(found[at], head), *self._around(neighbours[at], steps, head)]
            parts.sort(key=lambda part: (-abs(part.amount), part.feature))
            explanations.append(
                Explanation(line=lines[at], scores=scores, strongest=tuple(parts[:limit]))
            )
        return explanations

    def _steps(self, found: Features) -> tuple[int, ...]:
        """First scores of a line in `STEPS`, in the order of the heads."""
        for known in (self._rows, self._words):
            if len(known) > _MAX_CACHED:
                known.clear()
        layer, width = self.weights.text, len(self.weights.heads)
        totals = [0.0] * width
        for packed, size in self._groups(found):
            if size:
                root = sqrt(size)
                for head, number in enumerate(unpack(packed, width)):
                    totals[head] += number / root
        scores = (b + s * t for b, s, t in zip(layer.biases, layer.scales, totals, strict=True))
        return tuple(max(-_MAX_STEPS, min(_MAX_STEPS, round(score * STEPS))) for score in scores)

    def _groups(self, found: Features) -> Iterator[tuple[int, int]]:
        """Sum of the rows of each group of features, and its size."""
        packed, size = self._rows.total(found.edges), len(found.edges)
        for word in found.words:
            row, grams = self._word(word)
            packed += row
            size += grams
        yield packed, size
        yield self._rows.total(found.grammar), len(found.grammar)
        yield self._rows.total(found.place), len(found.place)

    def _word(self, word: str) -> tuple[int, int]:
        known = self._words.get(word)
        if known is None:
            grams = word_grams(word)
            known = self._words[word] = self._rows.total(grams), len(grams)
        return known

    def _second(
        self, lines: Sequence[Line], steps: Sequence[tuple[int, ...]]
    ) -> list[dict[str, float]]:
        layer, heads = self.weights.context, self.weights.heads
        # A line's scores weigh the same in each line of its message that looks at it.
        sums: dict[tuple[int, int], int] = {}
        result = []
        for around in neighbours_of(lines):
            packed = 0
            for part, at in enumerate(around):
                if (part, at) not in sums:
                    sums[part, at] = self._context_sum(part, _inputs(steps, at, len(heads)))
                packed += sums[part, at]
            numbers = unpack(packed, len(heads))
            scores = (
                b + s * n for b, s, n in zip(layer.biases, layer.scales, numbers, strict=True)
            )
            result.append(
                {h: round(score, _DIGITS) for h, score in zip(heads, scores, strict=True)}
            )
        return result

    def _context_sum(self, part: int, inputs: Sequence[int]) -> int:
        rows = self._context[part * len(inputs) : (part + 1) * len(inputs)]
        return sum(map(int.__mul__, rows, inputs))

    def _own(self, found: Features, head: str) -> Iterator[Contribution]:
        """Return the share of each feature in a line's score, through the line's own first scores."""
        factors, layer = self._factors(0, head), self.weights.text
        names = [*found.edges, *(gram for word in sorted(found.words) for gram in word_grams(word))]
        for group in (names, found.grammar, found.place):
            amounts: dict[str, float] = defaultdict(float)
            for name in group:
                row = layer.row(bucket(name, len(layer)))
                amounts[name] += sum(f * n for f, n in zip(factors, row, strict=True)) / sqrt(
                    len(group)
                )
            yield from (Contribution(name, round(a, _DIGITS)) for name, a in amounts.items())

    def _factors(self, part: int, head: str) -> list[float]:
        """Return the share of one unit of a number in `text` in *head*, by head of the first scores."""
        layer, heads = self.weights.context, self.weights.heads
        to = heads.index(head)
        rows = (layer.row(part * len(heads) + at) for at in range(len(heads)))
        return [
            row[to] * layer.scales[to] * STEPS * scale
            for row, scale in zip(rows, self.weights.text.scales, strict=True)
        ]

    def _around(
        self, around: Sequence[int], steps: Sequence[tuple[int, ...]], head: str
    ) -> Iterator[Contribution]:
        """Return the share of each neighbour in the score of a line."""
        layer, heads = self.weights.context, self.weights.heads
        to = heads.index(head)
        for part, at in enumerate(around):
            if part and at >= 0:
                inputs = _inputs(steps, at, len(heads))
                rows = (layer.row(part * len(heads) + head_at) for head_at in range(len(heads)))
                amount = layer.scales[to] * sum(
                    r[to] * i for r, i in zip(rows, inputs, strict=True)
                )
                yield Contribution(f"sentence: {NEIGHBOURS[part]}", round(amount, _DIGITS))


def neighbours_of(lines: Sequence[Line]) -> Iterator[tuple[int, ...]]:
    """For each line the index of each of `NEIGHBOURS`, -1 where there is none."""
    starts = [at for at, line in enumerate(lines) if at == 0 or line.start == "message"]
    for start, end in pairwise([*starts, len(lines)]):
        after = end if end < len(lines) else -1
        for at in range(start, end):
            following = at + 1 if at + 1 < len(lines) else -1
            yield (at, at - 1, following, start, start - 1, after)


def _inputs(steps: Sequence[tuple[int, ...]], at: int, width: int) -> tuple[int, ...]:
    return steps[at] if at >= 0 else (ABSENT,) * width


@cache
def scorer() -> Scorer:
    """The scorer with the weights that ship with the package."""
    return Scorer(load())
