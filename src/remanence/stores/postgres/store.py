"""The store in PostgreSQL: each method is one transaction on a connection of a pool."""

import asyncio
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime
from functools import partial
from typing import TypeVar

import psycopg
from psycopg_pool import ConnectionPool, PoolTimeout

from remanence.clock import Clock
from remanence.errors import Closed, StoreUnavailable
from remanence.protocols import EVERYTHING
from remanence.stores.postgres.connection import Connection
from remanence.stores.postgres.errors import RETRIED, translate_error
from remanence.stores.sql import facts, search, snapshots, tape, turns
from remanence.stores.sql.connection import Connection as SQLConnection
from remanence.stores.sql.consistency import inconsistencies
from remanence.stores.sql.store import SQLStore, Work
from remanence.types import ConversationRef, Hit, Problem, RecallFilter

T = TypeVar("T")

_TRIES = 5
_SNAPSHOT = "SET TRANSACTION ISOLATION LEVEL REPEATABLE READ READ ONLY"


class PostgresStore(SQLStore):
    """A `Store` in a PostgreSQL database, for any number of processes."""

    def __init__(self, pool: ConnectionPool, *, name: str, clock: Clock, size: int) -> None:
        self._pool = pool
        self._name = name
        self._clock = clock
        self._threads = ThreadPoolExecutor(size, thread_name_prefix="remanence-postgres")
        self._read_snapshot = snapshots.read
        self._closed = False

    async def search(
        self, ref: ConversationRef, query: str, *, limit: int, only: RecallFilter = EVERYTHING
    ) -> tuple[Hit, ...]:
        return await self._read(lambda c: search.find(c, ref, query, limit=limit, only=only))

    async def check(self) -> tuple[Problem, ...]:
        return await self._read(lambda connection: tuple(inconsistencies(connection)))

    async def scrub(self) -> None:
        """Free the space of erased rows; the server overwrites it in its own time."""
        await self._in_thread(self._vacuum)

    async def close(self) -> None:
        if not self._closed:
            self._closed = True
            await asyncio.to_thread(self._threads.shutdown)
            await asyncio.to_thread(self._pool.close)

    async def _write(self, work: Work[T]) -> T:
        return await self._run(work, read_only=False)

    async def _read(self, work: Work[T]) -> T:
        return await self._run(work, read_only=True)

    async def _run(self, work: Work[T], *, read_only: bool) -> T:
        return await self._in_thread(partial(self._transact, work, read_only=read_only))

    async def _in_thread(self, act: Callable[[], T]) -> T:
        if self._closed:
            raise Closed(f"the store on {self._name} was closed: open it again")
        return await asyncio.get_running_loop().run_in_executor(self._threads, act)

    def _transact(self, work: Work[T], *, read_only: bool) -> T:
        for left in reversed(range(_TRIES)):
            try:
                with self._pool.connection() as connection:
                    if read_only:
                        connection.execute(_SNAPSHOT)
                    return work(Connection(connection))
            except PoolTimeout as error:
                raise StoreUnavailable(
                    f"{self._name}: no connection within {self._pool.timeout:g} s: {error}"
                ) from error
            except RETRIED as error:
                if not left:
                    raise translate_error(error, self._name) from error
            except psycopg.Error as error:
                raise translate_error(error, self._name) from error
        raise AssertionError("the last try returns or raises")

    def _vacuum(self) -> None:
        with self._pool.connection() as connection:
            connection.autocommit = True
            connection.execute("VACUUM")
            connection.autocommit = False

    def _append(
        self,
        ref: ConversationRef,
        access: tape.Access,
        now: datetime,
        entries: Sequence[tape.Entry],
        connection: SQLConnection,
    ) -> tape.TapeWrite:
        written = tape.append(connection, ref, access, now, entries)
        while search.index_some(connection, written.conversation):
            pass
        return written

    def _delete(self, ref: ConversationRef, connection: SQLConnection) -> bool:
        turns.forget(connection, ref)
        key = tape.delete(connection, ref)
        if key is not None:
            facts.erase_of_conversation(connection, ref)
            connection.execute("DELETE FROM text_index WHERE scope = ?", (search.scope(key),))
        return key is not None
