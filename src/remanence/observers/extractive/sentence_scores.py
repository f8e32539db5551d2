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
_STANDING = {"inst": -0.75, "pref": -1.15, "personal": 0.5, "vital": 0.5}
"""Scores from which what a user says must never be lost.

Of the users' sentences above one of them in conversations with an agent, four of five are labelled
so: standing instructions, preferences, facts about the user, decisions (cross-validated, half of all
such sentences are found).
"""
_MAX_STANDING = 300
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


def is_constraint(scores: Scores) -> bool:
    """Return whether a sentence is a constraint."""
    return scores["con"] >= scorer().weights.cutoffs["con"]


def is_standing(text: str, scores: Scores) -> bool:
    """Return whether a sentence of an agent's user must never be lost; numbers alone never are."""
    if len(text) > _MAX_STANDING or 2 * sum(map(str.isalpha, text)) < len(text):
        return False
    if scores["quoted"] >= scorer().weights.cutoffs["quoted"]:
        return False
    return any(scores[head] >= least for head, least in _STANDING.items())


def above_cutoff(scores: Scores, head: str) -> float:
    """Return by how much a score is above its cutoff, 0 if it is not."""
    return max(0.0, scores[head] - scorer().weights.cutoffs[head]) if scores else 0.0
