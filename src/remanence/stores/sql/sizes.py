"""Sizes of the tables that grow with use."""

from collections.abc import Mapping
from typing import LiteralString

from remanence.stores.sql.connection import Connection
from remanence.types import TableSize

_ROWS: dict[str, LiteralString] = {
    "messages": "SELECT count(*) FROM messages",
    "text_index": "SELECT count(*) FROM text_index",
    "segments": "SELECT count(*) FROM segments",
    "journal": "SELECT count(*) FROM journal",
    "events": "SELECT count(*) FROM events",
    "model_calls": "SELECT count(*) FROM model_calls",
    "vectors": "SELECT count(*) FROM vectors",
    "facts": "SELECT count(*) FROM facts",
    "fact_repetitions": "SELECT count(*) FROM fact_repetitions",
    "fact_vectors": "SELECT count(*) FROM fact_vectors",
}


def sizes_with(connection: Connection, bytes_by_table: Mapping[str, int]) -> tuple[TableSize, ...]:
    """Return the sizes of the tables, the largest first."""
    found = [
        TableSize(table, connection.execute(count).get, bytes_by_table.get(table, 0))
        for table, count in _ROWS.items()
    ]
    return tuple(sorted(found, key=lambda size: -size.bytes))
