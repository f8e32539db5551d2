"""Removal of the bytes that erased rows have left in the database's files.

`secure_delete` overwrites a deleted row with zeros, but not the copies of it that SQLite left in the
unused part of other pages when it balanced a table, nor the words in the pages of a full-text index,
nor the earlier pages in the write-ahead log. So the indexes are merged, the file is written anew,
and the log is cut to nothing.
"""

from collections.abc import Sequence

from remanence.errors import StoreUnavailable
from remanence.stores.rows import Row
from remanence.stores.sql import search
from remanence.stores.sqlite.fts import Connection, remove_some


def scrub(connection: Connection) -> None:
    """Leave no byte of erased rows in the files; run it outside of a transaction.

    Raises:
        StoreUnavailable: another process kept the write-ahead log in use.
    """
    connection.execute("BEGIN IMMEDIATE")
    rows: Sequence[Row] = connection.execute(
        "SELECT subject FROM chores WHERE name = 'erase'"
    ).fetchall()
    for (conversation,) in rows:
        while remove_some(connection, search.scope(conversation)):
            pass
    connection.execute("INSERT INTO text_index (text_index) VALUES ('optimize')")
    connection.execute("INSERT INTO facts_index (facts_index) VALUES ('optimize')")
    connection.execute("DELETE FROM chores")
    connection.execute("COMMIT")
    connection.execute("VACUUM")
    is_busy: int = connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").get[0]
    if is_busy:
        raise StoreUnavailable(
            "the text was erased, but the write-ahead log still has it, as another process reads "
            "from it: forget again when that process is done"
        )
