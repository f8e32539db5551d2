"""Exact search for the nearest vectors, with numpy."""

import importlib
from collections.abc import Iterator, Sequence

from remanence.errors import MissingExtra
from remanence.protocols import EVERYTHING
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
    only: RecallFilter = EVERYTHING,
) -> tuple[Hit, ...]:
    """Return a conversation's notes and messages by similarity to a vector, nearest first."""
    rows = connection.execute(
        "SELECT item, vector FROM vectors JOIN conversations ON key = conversation "
        "WHERE tenant = ? AND id = ? AND model = ? AND length(vector) = ?",
        (*ref, model, _FLOAT_BYTES * len(vector)),
    ).fetchall()
    return search.first_hits(connection, ref, _rank(rows, vector), limit=limit, only=only)


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
    return facts.by_rank(connection, owner, _rank(rows, vector), limit=limit)


def _rank(rows: Sequence[Row], vector: Sequence[float]) -> Iterator[tuple[int, float]]:
    """Yield keys by similarity to a vector; ties in the order of their keys."""
    if not rows:
        return
    try:
        numpy = importlib.import_module("numpy")
    except ModuleNotFoundError as error:
        raise MissingExtra("vectors", error.name or "numpy") from error
    floats = numpy.frombuffer(b"".join(value for _, value in rows), dtype="<f4")
    query = numpy.frombuffer(blob(vector), dtype="<f4")
    scores = floats.reshape(-1, len(vector)) @ query
    for place in numpy.argsort(-scores, kind="stable"):
        yield rows[place][0], float(scores[place])
