"""Corrections: what a user says later that changes or settles what was said before."""

from collections.abc import Generator, Sequence
from heapq import nlargest
from operator import itemgetter
from typing import TypeAlias

from remanence.observers.extractive.passage import Passage
from remanence.observers.extractive.sentence_scores import change_of
from remanence.observers.learned.pairs import score_of_end

Corrections: TypeAlias = Sequence[tuple[int, ...]]
"""For each text the indices of the later ones that correct it, ascending."""

_LEAST = -2.0
"""Sum of a score of a change and one of a pair from which the later text corrects the earlier one.

By cross-validation 57 % of the changes and corrections by users in `data/notes` have such a sum
with a sentence before them. Of all sentences that have one a third are labelled so, and nine of ten
as worth noting, so that little is lost where they correct nothing.
"""
_MAX_OF_PAIR = 2.0
"""A score of a pair that hardly any exceeds."""
_MAX_CHANGES, _MAX_EARLIER = 100, 300
"""The surest changes that are compared, each with the texts nearest before it, as pairs take time."""


def corrections_of(found: Sequence[Passage]) -> Generator[None, None, Corrections]:
    """Return the corrections of passages by the user of an agent; yields in between."""
    changes = [
        change_of(p.scores) if p.is_user and not (p.is_question or p.is_quoted) else None
        for p in found
    ]
    return (yield from find_corrections([p.source for p in found], changes))


def find_corrections(
    texts: Sequence[str], changes: Sequence[float | None]
) -> Generator[None, None, Corrections]:
    """Return the corrections of texts in chronological order; yields between pairs.

    *changes* has for each text its score of a change, or None if it corrects nothing.
    """
    found: list[list[int]] = [[] for _ in texts]
    likely = [
        (change, later)
        for later, change in enumerate(changes)
        if change is not None and change + _MAX_OF_PAIR >= _LEAST
    ]
    for change, later in sorted(nlargest(_MAX_CHANGES, likely), key=itemgetter(1)):
        for earlier in range(max(0, later - _MAX_EARLIER), later):
            if change + score_of_end(texts[earlier], texts[later]) >= _LEAST:
                found[earlier].append(later)
            yield
    return [tuple(indices) for indices in found]
