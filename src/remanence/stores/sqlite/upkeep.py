"""Upkeep by the writer while it is idle, in steps of a few milliseconds.

Nothing depends on it: a search indexes what it needs, words of a deleted conversation cannot be
found, and the next process continues the chores of an earlier one.
"""

from collections import deque
from collections.abc import Callable

import apsw

from remanence.stores.sql import connection as sql_connection, search
from remanence.stores.sqlite.fts import Connection, merge_some, remove_some, start_purge

BACKLOG = 64  # messages outside the text index that make a step worth its transaction


class Upkeep:
    """Indexing, merging the index, and erasing deleted words. For the writer's thread."""

    def __init__(self) -> None:
        self._backlogs: set[int] = set()
        self._steps: deque[Callable[[Connection], bool]] = deque([_chore])

    def note_append(self, conversation: int, *, unindexed: int) -> None:
        """Note that a tape has grown."""
        if unindexed >= BACKLOG and conversation not in self._backlogs:
            self._backlogs.add(conversation)
            self._steps.append(lambda connection: self._index(connection, conversation))

    def note_deletion(self, connection: sql_connection.Connection, conversation: int) -> None:
        """Schedule the erasure of a conversation's words, by this process or the next."""
        connection.execute(
            "INSERT INTO chores (name, subject) VALUES ('erase', ?)", (conversation,)
        )
        if _chore not in self._steps:
            self._steps.append(_chore)

    def step(self, connection: Connection) -> bool:
        """Do a bit of the upkeep; false when nothing is left to do."""
        if not self._steps:
            return False
        step = self._steps[0]
        if not _commit_step(connection, step):
            self._steps.remove(step)
        return True

    def _index(self, connection: Connection, conversation: int) -> bool:
        if search.index_some(connection, conversation):
            return True
        self._backlogs.discard(conversation)
        if merge_some not in self._steps:
            self._steps.append(merge_some)
        return False


def _chore(connection: Connection) -> bool:
    """Do a bit of the first chore; false when there is none."""
    row = connection.execute("SELECT name, subject FROM chores ORDER BY name, subject").fetchone()
    match row:
        case ("erase", int(conversation)):
            if not remove_some(connection, search.scope(conversation)):
                _replace(connection, ("erase", conversation), ("purge", 0))
        case ("purge", 0):
            start_purge(connection)
            _replace(connection, ("purge", 0), ("purge", 1))
        case ("purge", _):
            if not merge_some(connection):
                connection.execute("DELETE FROM chores WHERE name = 'purge' AND subject = 1")
    return row is not None


def _replace(connection: Connection, done: tuple[str, int], due: tuple[str, int]) -> None:
    connection.execute("DELETE FROM chores WHERE (name, subject) = (?, ?)", done)
    connection.execute("INSERT OR IGNORE INTO chores (name, subject) VALUES (?, ?)", due)


def _commit_step(connection: Connection, step: Callable[[Connection], bool]) -> bool:
    """Run a step in its transaction; false when it is done, or cannot be done now."""
    try:
        connection.execute("BEGIN IMMEDIATE")
        more = step(connection)
        connection.execute("COMMIT")
        return more
    except apsw.Error:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        return False
