"""Sizes of the tables that grow with use."""

from collections.abc import Mapping
from typing import LiteralString

from remanence.stores.sql.connection import Connection
from remanence.types import TableSize

_TABLES: tuple[LiteralString, ...] = (
    *("messages", "text_index", "segments", "journal", "events", "model_calls", "vectors"),
    *("facts", "fact_repetitions", "fact_vectors"),
)


def sizes_with(connection: Connection, bytes_by_table: Mapping[str, int]) -> tuple[TableSize, ...]:
    """Return the sizes of the tables, the largest first."""
    found = []
    for table in _TABLES:
        rows = connection.execute(f"SELECT count(*) FROM {table}").get  # noqa: S608 - a constant
        found.append(TableSize(table, rows, bytes_by_table.get(table, 0)))
    return tuple(sorted(found, key=lambda size: -size.bytes))
