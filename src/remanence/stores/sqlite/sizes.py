"""Sizes of tables in a database file."""

from collections import Counter

from remanence.stores.sql.sizes import sizes_with
from remanence.stores.sqlite.fts import Connection
from remanence.types import TableSize

_INDEXES = ("text_index", "facts_index")


def table_sizes(connection: Connection) -> tuple[TableSize, ...]:
    """Return the sizes of the tables with those of their indexes; reads each page of the file."""
    found: Counter[str] = Counter()
    for table, size in connection.execute(
        "SELECT tbl_name, sum(pgsize) FROM dbstat JOIN sqlite_schema USING (name) GROUP BY tbl_name"
    ):
        found[next((index for index in _INDEXES if table.startswith(index)), table)] += size
    return sizes_with(connection, found)
