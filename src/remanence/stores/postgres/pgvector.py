"""Vector search with the extension pgvector, where the database has it.

The function `remanence_similarity` exists exactly where the column `embedding` does; see the
migration `pgvector`.
"""

from collections.abc import Iterator, Sequence
from typing import Final, LiteralString

import psycopg

from remanence.protocols import EVERYTHING
from remanence.stores.sql import facts, search, vectors
from remanence.stores.sql.connection import Connection
from remanence.types import ConversationRef, Fact, Hit, Owner, Problem, RecallFilter

_MAX_DIMENSIONS = 16_000  # of the extension's type
_SMALL_BYTES = 16 * 2**20  # rewritten in a few seconds
_PAGE_GROWTH = 8

_MAY_USE: Final = """
SELECT to_regproc('remanence_similarity') IS NULL AND pg_has_role(relowner, 'USAGE')
  AND pg_total_relation_size('vectors') + pg_total_relation_size('fact_vectors') < %s
  AND (EXISTS (SELECT FROM pg_extension WHERE extname = 'vector') OR EXISTS (
    SELECT FROM pg_available_extension_versions JOIN pg_roles ON rolname = current_user
    WHERE name = 'vector'
    AND (rolsuper OR trusted AND has_database_privilege(current_database(), 'CREATE'))
  ))
FROM pg_class WHERE oid = 'vectors'::regclass
"""

_SIMILARITY: LiteralString = "remanence_similarity(embedding, (SELECT remanence_embedding(?)))"
_COMPARABLE: LiteralString = (
    "model = ? AND embedding IS NOT NULL AND CASE length(vector) WHEN ? THEN true ELSE false END"
)
"""A CASE, as the planner takes `length(vector) = ?` to match one row in 200, and then joins large
tables row by row."""

_VECTORS: LiteralString = (
    f"SELECT item, {_SIMILARITY} AS score FROM vectors "  # noqa: S608 - constants, as below
    "JOIN conversations ON key = conversation "
)
_NEAREST_FACTS: LiteralString = (
    f"SELECT fact, {_SIMILARITY} AS score FROM fact_vectors "  # noqa: S608
    "JOIN facts ON facts.key = fact JOIN fact_owners ON fact_owners.key = owner "
    f'WHERE tenant = ? AND "user" = ? AND valid_to IS NULL AND {_COMPARABLE} '
    "ORDER BY score DESC, fact LIMIT ? OFFSET ?"
)


def use_if_cheap(connection: psycopg.Connection) -> None:
    """Enable pgvector if the user may, unless that rewrites large tables."""
    if connection.execute(_MAY_USE, (_SMALL_BYTES,)).fetchone() != (True,):
        return
    try:
        with connection.transaction():
            connection.execute("SELECT remanence_use_pgvector()")
    except psycopg.Error:  # the search works without it, and `doctor` says so
        if connection.closed:
            raise


def nearest(
    connection: Connection,
    of: ConversationRef | Owner,
    model: str,
    vector: Sequence[float],
    *,
    limit: int,
    only: RecallFilter = EVERYTHING,
) -> tuple[Hit, ...]:
    """Return notes and messages of a conversation or a user by similarity, nearest first."""
    if not _can_compare(connection, vector):
        return vectors.nearest(connection, of, model, vector, limit=limit, only=only)
    select = (
        f"{_VECTORS} WHERE {search.condition_of(of)} AND {_COMPARABLE} "
        "ORDER BY score DESC, item LIMIT ? OFFSET ?"
    )
    ranked = _rank(connection, select, of, model, vector, limit)
    return search.first_hits(connection, ranked, limit=limit, only=only)


def nearest_facts(
    connection: Connection, owner: Owner, model: str, vector: Sequence[float], *, limit: int
) -> tuple[Fact, ...]:
    """Return the owner's current facts by similarity to a vector, nearest first."""
    if not _can_compare(connection, vector):
        return vectors.nearest_facts(connection, owner, model, vector, limit=limit)
    ranked = _rank(connection, _NEAREST_FACTS, owner, model, vector, limit)
    return facts.by_rank(connection, owner, ranked, limit=limit)


def problems(connection: Connection) -> Iterator[Problem]:
    """Yield a problem if there are vectors and the database does not use pgvector."""
    is_used, is_available, has_vectors = connection.execute(
        "SELECT to_regproc('remanence_similarity') IS NOT NULL, "
        "EXISTS (SELECT FROM pg_available_extensions WHERE name = 'vector'), "
        "EXISTS (SELECT FROM vectors) OR EXISTS (SELECT FROM fact_vectors)"
    ).get
    if is_used or not has_vectors:
        return
    yield Problem(
        conversation=None,
        level="info",
        what="vectors are compared in Python, as the database does not use pgvector"
        + ("" if is_available else ", which the server lacks"),
        remedy="nothing for a few thousand vectors of a conversation or user; for more, "
        + ("" if is_available else "install pgvector on the server, ")
        + "run CREATE EXTENSION vector as one who may, and SELECT remanence_use_pgvector() as the "
        "owner of the tables, which it rewrites",
    )


def _can_compare(connection: Connection, vector: Sequence[float]) -> bool:
    """Return whether the database has the extension now; it may be added or dropped at any time."""
    found: bool = connection.execute("SELECT to_regproc('remanence_similarity') IS NOT NULL").get
    return found and len(vector) <= _MAX_DIMENSIONS


def _rank(
    connection: Connection,
    select: LiteralString,
    of: ConversationRef | Owner,
    model: str,
    vector: Sequence[float],
    limit: int,
) -> Iterator[tuple[int, float]]:
    """Yield keys with similarities, the most similar first; ties in the order of their keys.

    The pages grow: a filter that rejects a whole page may reject most rows.
    """
    blob = vectors.encode_vector(vector)
    size, offset = max(1, limit), 0
    while rows := connection.execute(
        select, (blob, *of, model, len(blob), size, offset)
    ).fetchall():
        yield from rows
        offset += size
        size *= _PAGE_GROWTH
