"""Learned scores of the sentences of a conversation, and the tags that they justify."""

from collections.abc import Generator, Mapping, Sequence
from itertools import pairwise

from remanence.observers.learned.features import Line
from remanence.observers.learned.score import scorer
from remanence.types import Tag

Scores = Mapping[str, float]

_AT_ONCE = 6
_BEFORE, _AFTER = 3, 1
"""Sentences around those that are scored, which are read with them."""
_TAGS: tuple[tuple[str, Tag], ...] = (
    ("inst", "Preference"),
    ("open", "NextStep"),
    ("issue", "Issue"),
    ("next", "NextStep"),
    ("out", "Outcome"),
)
"""Scores that give a tag where nine of ten sentences with such a score have it, by rank."""


def score_lines(lines: Sequence[Line]) -> Generator[None, None, list[Scores]]:
    """Return the scores of the lines of one conversation, in order; yields after a few lines."""
    scores: list[Scores] = []
    bounds = [*range(0, len(lines), _AT_ONCE), len(lines)]
    for start, end in pairwise(bounds):
        first = max(0, start - _BEFORE)
        around = scorer().score(lines[first : end + _AFTER])
        scores.extend(around[start - first : end - first])
        yield
    return scores


def tag_of(scores: Scores) -> Tag:
    """Return the tag that the scores justify, or Fact."""
    strict = scorer().weights.strict
    return next(
        (tag for head, tag in _TAGS if head in strict and scores[head] >= strict[head]), "Fact"
    )


def is_rule(scores: Scores) -> bool:
    """Return whether a sentence is an instruction that stays in force, or a constraint."""
    cutoffs = scorer().weights.cutoffs
    return scores["inst"] >= cutoffs["inst"] or scores["con"] >= cutoffs["con"]
