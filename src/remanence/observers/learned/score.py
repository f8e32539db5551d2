"""Scores of sentences by the fitted weights, and the features that made them."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cache
from math import sqrt
from typing import NamedTuple, TypeAlias

from remanence.observers.learned.features import Line, features, word_grams
from remanence.observers.learned.weights import FILE, PackedRows, Weights, load, unpack

Scores: TypeAlias = Mapping[str, float]

_MAX_CACHED = 1 << 17
_DIGITS = 3


MoreFeatures: TypeAlias = Callable[[Line], Iterable[Sequence[str]]]
"""Gives groups of features of a line beside those of `features`."""


def no_more(_: Line) -> tuple[()]:
    """Return no further features."""
    return ()


class Contribution(NamedTuple):
    """A feature and its share of a score."""

    feature: str
    amount: float


class Explanation(NamedTuple):
    """Scores of a line by head, and the strongest features of one of them.

    Its score is the sum of `bias`, which every line has, of the strongest features and the others.
    """

    line: Line
    scores: Scores
    strongest: tuple[Contribution, ...]
    others: float
    bias: float


class Scorer:
    """Scores lines; one is safe to share between tasks and threads.

    What it remembers of features and words is the same whoever computes it.
    """

    def __init__(self, weights: Weights, more: MoreFeatures = no_more) -> None:
        self.weights = weights
        self._more = more
        self._rows = PackedRows(weights)
        self._words: dict[str, tuple[int, int]] = {}

    def score(self, line: Line) -> dict[str, float]:
        """Log-odds of each head for a line.

        0 is an even chance under the fit; `Weights.cutoffs` says from where a head should be believed.
        """
        for known in (self._rows, self._words):
            if len(known) > _MAX_CACHED:
                known.clear()
        weights = self.weights
        totals = [0.0] * len(weights.heads)
        for packed, size in self._groups(line):
            if size:
                share = 1 / sqrt(size)
                numbers = unpack(packed, len(totals))
                totals = [t + n * share for t, n in zip(totals, numbers, strict=True)]
        columns = zip(weights.heads, weights.biases, weights.scales, totals, strict=True)
        return {head: round(bias + scale * t, _DIGITS) for head, bias, scale, t in columns}

    def over(self, scores: Scores, head: str) -> float:
        """Return by how much a score is above its cutoff; less than 0 if it is below."""
        return scores[head] - self.weights.cutoffs[head]

    def above(self, line: Line) -> Scores:
        """Return by how much each score of a line is above its cutoff."""
        scores = self.score(line)
        return {head: self.over(scores, head) for head in scores}

    def share_of(self, word: str, head: str) -> float:
        """Return what the n-grams of a word in lower case add to a score if it is the only one."""
        weights, grams = self.weights, word_grams(word)
        at = weights.heads.index(head)
        total = sum(weights.row(gram)[at] for gram in grams)
        return weights.scales[at] * total / sqrt(len(grams) or 1)

    def explain(self, line: Line, *, head: str, limit: int) -> Explanation:
        """Scores of a line with the *limit* strongest features of *head*.

        Raises:
            ValueError: the weights have no such head.
        """
        heads = self.weights.heads
        if head not in heads:
            raise ValueError(f"{head!r} is not a head: choose one of {', '.join(heads)}")
        parts = sorted(
            self._contributions(line, heads.index(head)),
            key=lambda part: (-abs(part.amount), part.feature),
        )
        scores, bias = self.score(line), round(self.weights.biases[heads.index(head)], _DIGITS)
        strongest = tuple(parts[:limit])
        others = scores[head] - bias - sum(part.amount for part in strongest)
        return Explanation(line, scores, strongest, round(others, _DIGITS), bias)

    def _groups(self, line: Line) -> Iterator[tuple[int, int]]:
        """Sum of the rows of each group of features, and its size."""
        found = features(line)
        packed = size = 0
        for word in found.words:
            row, grams = self._word(word)
            packed += row
            size += grams
        yield packed, size
        for group in (found.grammar, found.shape, *self._more(line)):
            yield self._rows.total(group), len(group)

    def _word(self, word: str) -> tuple[int, int]:
        known = self._words.get(word)
        if known is None:
            grams = word_grams(word)
            known = self._words[word] = self._rows.sum_of(grams), len(grams)
        return known

    def _contributions(self, line: Line, head: int) -> Iterator[Contribution]:
        found = features(line)
        grams = [gram for word in sorted(found.words) for gram in word_grams(word)]
        for group in (grams, found.grammar, found.shape, *self._more(line)):
            factor = self.weights.scales[head] / sqrt(max(1, len(group)))
            for name in dict.fromkeys(group):
                amount = group.count(name) * self.weights.row(name)[head] * factor
                yield Contribution(name, round(amount, _DIGITS))


@cache
def scorer(file: str = FILE, more: MoreFeatures = no_more) -> Scorer:
    """The scorer with weights that ship with the package, by the name of their file."""
    return Scorer(load(file), more)
