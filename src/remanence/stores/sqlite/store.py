"""The SQLite store: each method is a job of the writer thread or the reader thread."""

import itertools
from collections import Counter
from collections.abc import Callable, Sequence
from functools import partial
from typing import TypeVar

from remanence.background import write_if_possible
from remanence.clock import Clock
from remanence.errors import StoreUnavailable
from remanence.protocols import EVERYTHING
from remanence.stores.sql import search, snapshots
from remanence.stores.sql.connection import Connection
from remanence.stores.sql.retention import sizes_with
from remanence.stores.sql.store import SQLStore
from remanence.stores.sqlite import fts
from remanence.stores.sqlite.backup import back_up
from remanence.stores.sqlite.check import check, probe_writing, write_problem
from remanence.stores.sqlite.connection import Database
from remanence.stores.sqlite.file_identity import FileIdentity
from remanence.stores.sqlite.upkeep import Upkeep, plan_scrub, scrub
from remanence.stores.sqlite.worker import Work, Worker
from remanence.types import ConversationRef, Hit, Owner, Problem, RecallFilter, TableSize

T = TypeVar("T")

_INDEXES = ("text_index", "facts_index")


def _table_sizes(connection: fts.Connection) -> tuple[TableSize, ...]:
    """Return the sizes of the tables including indexes; reads every page of the file."""
    found: Counter[str] = Counter()
    for table, size in connection.execute(
        "SELECT tbl_name, sum(pgsize) FROM dbstat JOIN sqlite_schema USING (name) GROUP BY tbl_name"
    ):
        found[next((index for index in _INDEXES if table.startswith(index)), table)] += size
    return sizes_with(connection, found)


class SQLiteStore(SQLStore):
    """A `Store` in one SQLite file.

    One thread writes, and commits all waiting jobs in one transaction; another thread reads and
    never waits for a write. A database in memory has one connection and one thread for both.
    """

    def __init__(self, database: Database, *, clock: Clock) -> None:
        self._database = database
        self._clock = clock
        self._upkeep = Upkeep()
        is_written = not (database.in_memory or database.read_only)
        identity = FileIdentity(database.path)

        def open_writer() -> fts.Connection:
            connection = database.open_writer(clock)
            connection.execute("SELECT 1 FROM sqlite_schema").fetchone()  # creates the log
            identity.note_log(connection.filename_wal)
            return connection

        self._new_worker = partial(
            Worker,
            path=database.path,
            require_file=identity.require if is_written else lambda: None,
        )
        self._writer = self._new_worker(
            "writer",
            connect=open_writer,
            writes=True,
            idle=self._upkeep.step,
        )
        self._reader = self._writer
        if not database.in_memory:
            self._snapshots = snapshots.Snapshots()
            open_reader = database.open_unwritten if database.read_only else database.open_reader
            self._reader = self._new_worker("reader", connect=open_reader, writes=False)
        if database.read_only:
            self._writer = self._reader

    async def open(self) -> None:
        """Open the file; if that fails, nothing stays open."""
        await self._writer.start()
        if self._reader is not self._writer:
            try:
                await self._reader.start()
            except BaseException:
                await self._writer.close()
                raise

    async def search(
        self,
        of: ConversationRef | Owner,
        query: str,
        *,
        limit: int,
        only: RecallFilter = EVERYTHING,
    ) -> tuple[Hit, ...]:
        is_indexed = await self._index_rest(await self._read(lambda c: search.behind_index(c, of)))
        if is_indexed:
            find = partial(fts.find_indexed, of=of, query=query, limit=limit, only=only)
            return await self._read(find)
        await self._read(fts.drop_stale_words)
        while await self._read(partial(fts.index_aside, of=of)):
            pass
        outside, found = await self._read(
            lambda c: (
                fts.find_unindexed(c, of, query, limit=limit, only=only),
                search.find(c, of, query, limit=limit, only=only),
            )
        )
        # Scores of two indexes are not comparable; ranks are.
        ranked = itertools.zip_longest(outside, found)
        return tuple(hit for pair in ranked for hit in pair if hit is not None)[:limit]

    async def _index_rest(self, conversations: Sequence[int]) -> bool:
        """Index unindexed messages; false if the index cannot be written."""
        left: Sequence[int] | None = conversations
        while left:
            work = partial(fts.index_some, conversations=left)
            left = await write_if_possible(self._write(work))
        return left is not None

    async def scrub(self, *, if_due: bool = False) -> bool:
        self._require_writable()
        await self._read(fts.drop_stale_words)
        return await self._writer.submit(partial(scrub, if_due=if_due), alone=True)

    async def check(self) -> tuple[Problem, ...]:
        problems = await self._run_separately(partial(check, now=self._clock.now()))
        if not any(problem.level == "error" for problem in problems):
            try:
                await self.probe()
            except StoreUnavailable as error:
                return (*problems, write_problem(error))
        return problems

    async def table_sizes(self) -> tuple[TableSize, ...]:
        return await self._run_separately(_table_sizes)

    async def backup(self, path: str) -> None:
        await self._run_separately(partial(back_up, path=path), alone=True)

    async def _run_separately(
        self,
        work: Work[T],
        *,
        alone: bool = False,
        connect: Callable[[], fts.Connection] | None = None,
    ) -> T:
        """Run *work* on its own thread and connection, by default a read-only one."""
        if self._database.in_memory:
            return await self._writer.submit(work, alone=alone)
        self._writer.require_open()
        connect = connect or self._database.open_reader
        worker = self._new_worker("apart", connect=connect, writes=False)
        await worker.start()
        try:
            return await worker.submit(work, alone=alone)
        finally:
            await worker.close()

    async def probe(self) -> None:
        if not self._database.read_only:  # beside the writer, which may itself wait for a lock
            open_probe = self._database.open_probe
            await self._run_separately(probe_writing, alone=True, connect=open_probe)

    async def close(self) -> None:
        await self._reader.close()
        await self._writer.close()

    async def _write(self, work: Work[T]) -> T:
        self._require_writable()
        return await self._writer.submit(work)

    def _require_writable(self) -> None:
        if self._database.read_only:
            self._writer.require_open()
            raise StoreUnavailable(
                f"{self._database.path!r} is open read-only: open it without read_only=True",
                public="the database is open read-only",
            )

    async def _read(self, work: Work[T]) -> T:
        return await self._reader.submit(work)

    def _index(self, _: Connection, conversation: int, *, unindexed: int) -> None:
        self._upkeep.note_append(conversation, unindexed=unindexed)

    def _plan_scrub(self, connection: Connection) -> None:
        plan_scrub(connection)
