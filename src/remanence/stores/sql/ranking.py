"""Ranking the matches of a query by the words of one scope alone.

A full-text index weighs a word by its frequency in the whole database: other tenants' words would
change the order of a tenant's hits, and their number the time of a search.
"""

import heapq
import math
from collections.abc import Iterator, Sequence

from remanence.stores.sql.connection import Connection, WordIndex
from remanence.stores.terms import query_terms

_SATURATION = 1.2
_LENGTH_SHARE = 0.75
"""The constants of Okapi BM25, with the values that FTS5 uses."""

_POOL = 256
"""Matches that are ranked by word counts and text length, too.

The matches after them have fewer or more common words, and are ranked by these alone.
"""

ALL = (-(1 << 63), (1 << 63) - 1)


def rank(
    connection: Connection,
    index: WordIndex,
    scope: str,
    query: str,
    *,
    texts: int,
    of: tuple[int, int] = ALL,
) -> Iterator[tuple[int, float]]:
    """Yield the keys of a scope's texts that have a word of the query, with scores, best first.

    *texts* is the approximate number of texts in the scope: a word weighs more the fewer of them
    have it. *of* is the inclusive range of keys to search.
    """
    terms = query_terms(query)
    weights: list[float] = []
    scores: dict[int, float] = {}
    for term in terms:
        found = connection.match_word(index, scope, term, of)
        weight = math.log1p((max(texts, len(found)) - len(found) + 0.5) / (len(found) + 0.5))
        weights.append(weight)
        for key in found:
            scores[key] = scores.get(key, 0.0) + weight
    best = heapq.nlargest(_POOL, scores, key=lambda key: (scores[key], key))
    exact = _exact(connection.count_words(index, scope, terms, best), weights) if best else []
    yield from exact
    lowest = exact[-1][1] if exact else 0.0
    rest = scores.keys() - set(best)
    for key in sorted(rest, key=lambda key: (-scores[key], -key)):
        yield key, min(lowest, scores[key])


def _exact(counted: Sequence[Sequence[int]], weights: Sequence[float]) -> list[tuple[int, float]]:
    """Return the counted matches with their BM25 scores, best first."""
    mean = sum(length for _, length, *_ in counted) / len(counted) or 1.0
    scored = []
    for key, length, *counts in counted:
        slack = _SATURATION * (1 - _LENGTH_SHARE + _LENGTH_SHARE * length / mean)
        score = sum(
            weight * count * (_SATURATION + 1) / (count + slack)
            for weight, count in zip(weights, counts, strict=True)
        )
        scored.append((key, score))
    return sorted(scored, key=lambda match: (-match[1], -match[0]))
