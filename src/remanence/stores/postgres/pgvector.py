"""Vector search with the extension pgvector, where the database has it.

The function `remanence_similarity` exists exactly where the column `embedding` does; see the
migration `pgvector`.
"""

from collections.abc import Iterator, Sequence
from typing import Final, LiteralString

import psycopg

from remanence.stores.sql import vectors
from remanence.stores.sql.connection import Connection
from remanence.types import Problem

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


def rank(connection: Connection, query: vectors.Comparison) -> Iterator[tuple[int, float]]:
    """Yield keys by similarity as `vectors.rank_exactly` does, compared by the database if it can.

    The pages grow: a filter that rejects a whole page may reject most rows.
    """
    if not _can_compare(connection, query.vector):
        yield from vectors.rank_exactly(connection, query)
        return
    select: LiteralString = (
        f"SELECT {query.key}, {_SIMILARITY} AS score {query.rows} AND {_COMPARABLE} "
        f"ORDER BY score DESC, {query.key} LIMIT ? OFFSET ?"
    )
    blob = vectors.encode_vector(query.vector)
    size, offset = max(1, query.limit), 0
    while page := connection.execute(
        select, (blob, *query.values, len(blob), size, offset)
    ).fetchall():
        yield from page
        offset += size
        size *= _PAGE_GROWTH


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
