"""Upkeep that the writer does in steps of a few milliseconds while idle, and scrubbing on demand.

Nothing depends on these steps: a search indexes what it needs.
"""

import shutil
from pathlib import Path

import apsw

from remanence.errors import StoreUnavailable
from remanence.stores.sql import connection as sql_connection
from remanence.stores.sqlite.fts import Connection, index_some, merge_some

BACKLOG = 64  # messages outside the text index that make a step worth its transaction


class Upkeep:
    """Indexes messages and merges the index; for the writer's thread only."""

    def __init__(self) -> None:
        self._backlogs: dict[int, None] = {}  # conversations, the longest waiting first

    def note_append(self, conversation: int, *, unindexed: int) -> None:
        """Note that a tape has grown."""
        if unindexed >= BACKLOG:
            self._backlogs.setdefault(conversation)

    def step(self, connection: Connection) -> bool:
        """Run one short step; false when nothing is left to do."""
        conversation = next(iter(self._backlogs), None)
        if conversation is None and not connection.unmerged:
            return False
        try:
            connection.execute("BEGIN IMMEDIATE")
            if conversation is None:
                more = merge_some(connection)
            else:
                more = bool(index_some(connection, [conversation]))
            connection.execute("COMMIT")
        except apsw.Error:  # not possible now
            more = False
            if connection.in_transaction:
                connection.execute("ROLLBACK")
        if not more:
            if conversation is None:
                connection.unmerged = 0
            else:
                del self._backlogs[conversation]
        return True


def plan_scrub(connection: sql_connection.Connection) -> None:
    """Mark a scrub as due, in the transaction that erases."""
    connection.execute("INSERT OR IGNORE INTO chores (name, subject) VALUES ('scrub', 0)")


def scrub(connection: Connection, *, if_due: bool = False) -> bool:
    """Remove every byte of erased rows from the files; call it outside of a transaction.

    With *if_due*, only if there was none after the last erasure, or one found the files in use;
    returns False if nothing was due.

    `secure_delete` overwrites a deleted row with zeros, but not copies in unused parts of other pages
    (from balancing a table), words in the full-text indexes, or earlier pages in the write-ahead log.
    So the indexes are merged, the file is vacuumed, and the log is truncated.

    Raises:
        StoreUnavailable: another process kept the write-ahead log in use, or the disk is too full.
    """
    if if_due and not connection.execute("SELECT 1 FROM chores WHERE name = 'scrub'").get:
        return False
    _require_room(connection)
    connection.execute("BEGIN IMMEDIATE")
    connection.execute("INSERT INTO text_index (text_index) VALUES ('optimize')")
    connection.execute("INSERT INTO facts_index (facts_index) VALUES ('optimize')")
    plan_scrub(connection)
    connection.execute("COMMIT")
    connection.execute("VACUUM")
    is_busy: int = connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").get[0]
    if is_busy:
        raise StoreUnavailable(
            "the text was erased, but remains in the write-ahead log while another process reads "
            "from it: repeat the erasure when that process is done"
        )
    connection.execute("DELETE FROM chores WHERE name = 'scrub'")
    return True


def _require_room(connection: Connection) -> None:
    """Raise `StoreUnavailable` if a vacuum could fill the disk, after which nothing can be written.

    It makes a temporary copy of the file, and writes that to the log, over the pages that it has.
    """
    if not connection.filename:  # a database in memory
        return
    file = Path(connection.filename)
    pages: int = connection.execute("PRAGMA page_count").get  # also those that are only in the log
    page_bytes: int = connection.execute("PRAGMA page_size").get
    needed = 2 * max(file.stat().st_size, pages * page_bytes)
    free = shutil.disk_usage(file.parent).free
    if free < needed:
        raise StoreUnavailable(
            f"the text was erased, but its bytes remain until the file is rewritten: that needs "
            f"{needed / 1e6:,.0f} MB of free space, and {free / 1e6:,.0f} MB are free: free some space "
            "and repeat the erasure"
        )
