"""Fusing the hits of several searches by rank."""

from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import replace
from typing import TypeVar

from remanence.types import Hit

Found = TypeVar("Found")

RANK_CONSTANT = 60
"""The constant k of reciprocal rank fusion (Cormack et al., 2009): higher values flatten ranks."""


def by_reciprocal_rank(
    rankings: Iterable[Iterable[Found]], key: Callable[[Found], Hashable]
) -> list[tuple[Found, float]]:
    """Fuse rankings: an item scores the sum of 1 / (60 + rank) over all rankings that have it.

    Of items with the same key, the first one stays.
    """
    scores: dict[Hashable, float] = {}
    first: dict[Hashable, Found] = {}
    for ranking in rankings:
        for rank, found in enumerate(ranking, start=1):
            scores[key(found)] = scores.get(key(found), 0.0) + 1 / (RANK_CONSTANT + rank)
            first.setdefault(key(found), found)
    return [(first[each], scores[each]) for each in sorted(first, key=lambda each: -scores[each])]


def fuse(rankings: Iterable[Sequence[Hit]]) -> tuple[Hit, ...]:
    """Return the hits of all rankings, best first, with their scores."""
    fused = by_reciprocal_rank(
        rankings, lambda hit: (hit.kind, hit.conversation, hit.source_id, hit.first_seq, hit.text)
    )
    return tuple(replace(hit, score=score) for hit, score in fused)
