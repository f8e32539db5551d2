"""Corrections: what a user says later that changes or settles what was said before."""

import math
from collections.abc import Generator, Sequence
from heapq import nlargest
from operator import itemgetter
from typing import TypeAlias

from remanence.observers.extractive.passage import Passage
from remanence.observers.extractive.sentence_scores import change_of
from remanence.observers.learned.pairs import score_of_end

Corrections: TypeAlias = Sequence[tuple[int, ...]]
"""For each text the indices of the later ones that correct it, ascending."""

_LEAST = -2.1
"""Sum of a score of a change and one of a pair from which the later text corrects the earlier one.

By cross-validation 57 % of the changes and corrections by users in `data/notes` have such a sum
with a sentence before them. Of all sentences that have one a third are labelled so, and nine of ten
as worth noting, so that little is lost where they correct nothing.
"""
_MAX_OF_PAIR = 2.0
"""Hardly any pair scores higher."""
_MAX_CHARS = 300
"""Length of texts that are compared, as the time grows with its square."""
_MAX_CHANGES, _MAX_EARLIER, _MAX_RELATED = 30, 100, 15
"""The surest changes that are compared, and with how many texts before each, the nearest first.

Pairs take time, above all related ones, which share a part of a word.
"""


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
        if change is not None
        and change + _MAX_OF_PAIR >= _LEAST
        and len(texts[later]) <= _MAX_CHARS
    ]
    for change, later in sorted(nlargest(_MAX_CHANGES, likely), key=itemgetter(1)):
        related = 0
        for earlier in reversed(range(max(0, later - _MAX_EARLIER), later)):
            if len(texts[earlier]) > _MAX_CHARS or texts[earlier] == texts[later]:
                continue
            score = score_of_end(texts[earlier], texts[later])
            if change + score >= _LEAST:
                found[earlier].append(later)
            yield
            related += score > -math.inf
            if related == _MAX_RELATED:
                break
    return [tuple(indices) for indices in found]
