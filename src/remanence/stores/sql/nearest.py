"""Exact search for the nearest vectors, with numpy."""

from collections.abc import Iterator, Sequence

import numpy as np

from remanence.stores.rows import Row
from remanence.stores.sql import facts, search
from remanence.stores.sql.connection import Connection
from remanence.stores.sql.vectors import blob
from remanence.types import ConversationRef, Fact, Hit, Owner, RecallFilter

_FLOAT_BYTES = 4


def find(
    connection: Connection,
    ref: ConversationRef,
    model: str,
    vector: Sequence[float],
    *,
    limit: int,
    only: RecallFilter,
) -> tuple[Hit, ...]:
    """Return a conversation's notes and messages by similarity to a vector, nearest first."""
    rows = connection.execute(
        "SELECT item, vector FROM vectors JOIN conversations ON key = conversation "
        "WHERE tenant = ? AND id = ? AND model = ? AND length(vector) = ?",
        (*ref, model, _FLOAT_BYTES * len(vector)),
    ).fetchall()
    hits: list[Hit] = []
    for item, score in _rank(rows, vector):
        if len(hits) >= limit:
            break
        hit = search.hit(connection, ref, item, score)
        if only.allows(hit):
            hits.append(hit)
    return tuple(hits)


def find_facts(
    connection: Connection, owner: Owner, model: str, vector: Sequence[float], *, limit: int
) -> tuple[Fact, ...]:
    """Return the owner's current facts by similarity to a vector, nearest first."""
    rows = connection.execute(
        "SELECT fact, vector FROM fact_vectors JOIN facts ON facts.key = fact "
        "JOIN fact_owners ON fact_owners.key = owner "
        'WHERE tenant = ? AND "user" = ? AND valid_to IS NULL AND model = ? AND length(vector) = ?',
        (*owner, model, _FLOAT_BYTES * len(vector)),
    ).fetchall()
    ranked = list(_rank(rows, vector))[:limit]
    return tuple(facts.by_key(connection, owner, key) for key, _ in ranked)


def _rank(rows: Sequence[Row], vector: Sequence[float]) -> Iterator[tuple[int, float]]:
    """Yield keys by similarity to a vector; ties in the order of their keys."""
    if not rows:
        return
    width = len(vector)
    matrix = np.frombuffer(b"".join(value for _, value in rows), dtype="<f4").reshape(-1, width)
    scores = matrix @ np.frombuffer(blob(vector), dtype="<f4")
    for place in np.argsort(-scores, kind="stable"):
        yield rows[place][0], float(scores[place])
