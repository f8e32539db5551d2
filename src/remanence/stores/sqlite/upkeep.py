"""What the writer does while nobody waits for it, in steps of a few milliseconds.

Nothing depends on its being done: a search indexes what it needs, and a chore that a process
leaves behind is found by the next one.
"""

from collections import deque
from collections.abc import Callable

import apsw

from remanence.stores.sqlite import search

BACKLOG = 64  # messages outside the text index that make a step worth its transaction


class Upkeep:
    """Indexing, merging the index, and purging it after a deletion. For the writer's thread."""

    def __init__(self) -> None:
        self._backlogs: set[int] = set()
        self._steps: deque[Callable[[apsw.Connection], bool]] = deque([_purge])

    def appended(self, conversation: int, *, unindexed: int) -> None:
        """Note that a tape has grown."""
        if unindexed >= BACKLOG and conversation not in self._backlogs:
            self._backlogs.add(conversation)
            self._steps.append(lambda connection: self._index(connection, conversation))

    def deleted(self, connection: apsw.Connection) -> None:
        """Have the words of what was removed purged, in this process or the next."""
        connection.execute("INSERT OR REPLACE INTO chores (name, started) VALUES ('purge', 0)")
        if _purge not in self._steps:
            self._steps.append(_purge)

    def step(self, connection: apsw.Connection) -> bool:
        """Do a bit of what there is to do; false when there is nothing."""
        if not self._steps:
            return False
        step = self._steps[0]
        if not _committed(connection, step):
            self._steps.remove(step)
        return True

    def _index(self, connection: apsw.Connection, conversation: int) -> bool:
        if search.index_some(connection, conversation):
            return True
        self._backlogs.discard(conversation)
        if search.merge_some not in self._steps:
            self._steps.append(search.merge_some)
        return False


def _purge(connection: apsw.Connection) -> bool:
    started = connection.execute("SELECT started FROM chores WHERE name = 'purge'").get
    if started is None:
        return False
    if not started:
        search.start_purge(connection)
        connection.execute("UPDATE chores SET started = 1 WHERE name = 'purge'")
        return True
    if search.merge_some(connection):
        return True
    connection.execute("DELETE FROM chores WHERE name = 'purge'")
    return False


def _committed(connection: apsw.Connection, step: Callable[[apsw.Connection], bool]) -> bool:
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
