"""The floor: SQLite as close to the metal as the same durability allows, without remanence."""

import asyncio
import queue
import threading
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import Self, TypeAlias

import apsw

Work: TypeAlias = Callable[[apsw.Connection], object]

SCHEMA = """
CREATE TABLE messages (
  key INTEGER PRIMARY KEY, conversation INTEGER NOT NULL, seq INTEGER NOT NULL, id TEXT NOT NULL,
  role TEXT NOT NULL, kind TEXT NOT NULL, name TEXT, content TEXT NOT NULL, calls TEXT,
  created_at TEXT NOT NULL, tokens INTEGER NOT NULL, sum_tokens INTEGER NOT NULL,
  UNIQUE (conversation, seq), UNIQUE (conversation, id)
) STRICT;
"""
NOW = "2027-01-04T09:00:00.000000+00:00"


def connect(path: Path) -> apsw.Connection:
    """A connection in WAL mode with `synchronous=FULL`, and the table of messages."""
    connection = apsw.Connection(str(path))
    connection.pragma("journal_mode", "wal")
    connection.pragma("synchronous", "full")
    if not connection.table_exists(None, "messages"):
        connection.execute(SCHEMA)
    return connection


def insert(connection: apsw.Connection, conversation: int, seq: int, text: str) -> None:
    """One message in one transaction."""
    connection.execute("BEGIN IMMEDIATE")
    connection.execute(
        "INSERT INTO messages (conversation, seq, id, role, kind, name, content, calls, "
        "created_at, tokens, sum_tokens) VALUES (?, ?, ?, 'user', 'message', NULL, ?, NULL, ?, "
        "?, ?)",
        (conversation, seq, f"msg_{conversation}_{seq:016d}", text, NOW, 25, 25 * seq),
    )
    connection.execute("COMMIT")


def newest(connection: apsw.Connection, conversation: int, limit: int) -> list[tuple[object, ...]]:
    """The newest messages, read in one transaction."""
    return connection.execute(
        "SELECT seq, id, role, kind, name, content, created_at, tokens FROM messages "
        "WHERE conversation = ? ORDER BY seq DESC LIMIT ?",
        (conversation, limit),
    ).fetchall()


class WriterThread:
    """A thread with a connection; each job is one hop there and back."""

    def __init__(self, path: Path) -> None:
        self._jobs: queue.SimpleQueue[tuple[Work, asyncio.Future[object]] | None]
        self._jobs = queue.SimpleQueue()
        self._loop = asyncio.get_running_loop()
        self._thread = threading.Thread(target=self._serve, args=(path,), daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._jobs.put(None)
        self._thread.join()

    async def run(self, work: Work) -> object:
        """The result of *work*, run on the thread."""
        future: asyncio.Future[object] = self._loop.create_future()
        self._jobs.put((work, future))
        return await future

    def _serve(self, path: Path) -> None:
        connection = connect(path)
        while (job := self._jobs.get()) is not None:
            work, future = job
            self._loop.call_soon_threadsafe(future.set_result, work(connection))
        connection.close()
