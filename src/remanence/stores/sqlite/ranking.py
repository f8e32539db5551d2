"""Ranking the matches of a query by the words of one scope alone.

FTS5's own `bm25` weighs a word by its frequency in the whole file: other tenants' words would
change the order of a tenant's hits, and their number the time of a search.
"""

import heapq
import math
from collections.abc import Iterator, Sequence
from typing import LiteralString, NamedTuple

import apsw

from remanence.stores.rows import Row
from remanence.stores.terms import query_terms

_SATURATION = 1.2
_LENGTH_SHARE = 0.75
"""The constants of Okapi BM25, with the values that FTS5 uses."""

_POOL = 256
"""Matches that are ranked by word counts and text length, too.

The matches after them have fewer or more common words, and are ranked by these alone.
"""

ALL = (-(1 << 63), (1 << 63) - 1)
_COUNTS = "word_counts"


class Index(NamedTuple):
    """An index of texts with a scope: the SQL for matches of a word, and for counts in some."""

    matches: LiteralString
    counts: LiteralString


TEXTS = Index(
    "SELECT rowid FROM text_index WHERE text_index MATCH ? AND rowid BETWEEN ? AND ?",
    "SELECT rowid, word_counts(text_index) FROM text_index WHERE text_index MATCH ? "
    "AND +rowid IN (SELECT value FROM json_each(?))",
)
FACTS = Index(
    "SELECT rowid FROM facts_index WHERE facts_index MATCH ? AND rowid BETWEEN ? AND ?",
    "SELECT rowid, word_counts(facts_index) FROM facts_index WHERE facts_index MATCH ? "
    "AND +rowid IN (SELECT value FROM json_each(?))",
)


def register(connection: apsw.Connection) -> None:
    """Register the function that counts words on a connection."""
    connection.register_fts5_function(_COUNTS, _word_counts)


def rank(
    connection: apsw.Connection,
    index: Index,
    scope: str,
    query: str,
    *,
    texts: int,
    of: tuple[int, int] = ALL,
) -> Iterator[tuple[int, float]]:
    """Yield the rowids of a scope that match a word of the query, with scores, best first.

    *texts* is the approximate number of texts in the scope: a word weighs more the fewer of them
    have it. *of* is the inclusive range of rowids to search.
    """
    terms = [_quote_term(term) for term in query_terms(query)]
    weights: list[float] = []
    scores: dict[int, float] = {}
    for term in terms:
        found: Sequence[Row] = connection.execute(
            index.matches, (_in_scope(scope, term), *of)
        ).fetchall()
        weight = math.log1p((max(texts, len(found)) - len(found) + 0.5) / (len(found) + 0.5))
        weights.append(weight)
        for (rowid,) in found:
            scores[rowid] = scores.get(rowid, 0.0) + weight
    best = heapq.nlargest(_POOL, scores, key=lambda rowid: (scores[rowid], rowid))
    exact = _exact(connection, index, _in_scope(scope, " OR ".join(terms)), best, weights)
    yield from exact
    lowest = exact[-1][1] if exact else 0.0
    rest = scores.keys() - set(best)
    for rowid in sorted(rest, key=lambda rowid: (-scores[rowid], -rowid)):
        yield rowid, min(lowest, scores[rowid])


def _exact(
    connection: apsw.Connection,
    index: Index,
    expression: str,
    rowids: Sequence[int],
    weights: Sequence[float],
) -> list[tuple[int, float]]:
    """Yield the given matches with their BM25 scores, best first."""
    if not rowids:
        return []
    rows = connection.execute(index.counts, (expression, f"[{','.join(map(str, rowids))}]"))
    counted = [(rowid, *map(int, counts.split())) for rowid, counts in rows]
    mean = sum(length for _, length, *_ in counted) / len(counted) or 1.0
    scored = []
    for rowid, length, *counts in counted:
        slack = _SATURATION * (1 - _LENGTH_SHARE + _LENGTH_SHARE * length / mean)
        score = sum(
            weight * count * (_SATURATION + 1) / (count + slack)
            for weight, count in zip(weights, counts, strict=True)
        )
        scored.append((rowid, score))
    return sorted(scored, key=lambda match: (-match[1], -match[0]))


def _word_counts(api: apsw.FTS5ExtensionApi, /, *_: object) -> str:
    """Return the number of words of a match, then the count of each query word, space-separated."""
    counts = [len(api.phrase_column_offsets(phrase, 1)) for phrase in range(1, api.phrase_count)]
    return " ".join(map(str, [api.column_size(1), *counts]))


def _in_scope(scope: str, expression: str) -> str:
    return f"scope : {scope} AND terms : ({expression})"


def _quote_term(term: str) -> str:
    """Return a term in FTS5 syntax, quoted so that it is not an operator."""
    return f'"{term[:-1]}" *' if term.endswith("*") else f'"{term}"'
