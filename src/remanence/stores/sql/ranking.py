"""BM25 ranking by word frequencies within the searched scopes.

A full-text index weighs words by their frequency in the whole database, so that other tenants' texts
would change the order of a tenant's hits, and the duration of a search.
"""

import heapq
import math
from collections.abc import Iterator, Sequence

from remanence.stores.sql.connection import Connection, WordIndex
from remanence.stores.terms import query_terms

_SATURATION = 1.2
_LENGTH_SHARE = 0.75
"""The Okapi BM25 constants k1 and b, with the values of FTS5."""

_POOL = 256
"""The number of matches ranked by full BM25.

Later matches contain fewer or more common query words, and are ranked by those words alone.
"""

_SCOPES = 128
"""Scopes per statement, as the index visits each of them for every match."""

ALL = (-(1 << 63), (1 << 63) - 1)


def rank(
    connection: Connection,
    index: WordIndex,
    scopes: Sequence[str],
    query: str,
    *,
    texts: int,
    of: tuple[int, int] = ALL,
) -> Iterator[tuple[int, float]]:
    """Yield the key and score of each text in the scopes that matches the query, best first.

    *texts* is the approximate number of texts in the scopes, for the weights of words. *of* is the
    inclusive range of keys to search.
    """
    terms = query_terms(query)
    parts = [scopes[start : start + _SCOPES] for start in range(0, len(scopes), _SCOPES)]
    part_of: dict[int, int] = {}
    weights: list[float] = []
    scores: dict[int, float] = {}
    for term in terms:
        found: list[int] = []
        for place, part in enumerate(parts):
            matches = connection.match_word(index, part, term, of)
            found += matches
            part_of.update(dict.fromkeys(matches, place))
        weight = math.log1p((max(texts, len(found)) - len(found) + 0.5) / (len(found) + 0.5))
        weights.append(weight)
        for key in found:
            scores[key] = scores.get(key, 0.0) + weight
    best = heapq.nlargest(_POOL, scores, key=lambda key: (scores[key], key))
    counted: list[Sequence[int]] = []
    for place, part in enumerate(parts):
        if keys := [key for key in best if part_of[key] == place]:
            counted += connection.count_words(index, part, terms, keys)
    exact = _exact(counted, weights) if counted else []
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
