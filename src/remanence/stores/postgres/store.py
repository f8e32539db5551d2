"""The store in PostgreSQL: each method is one transaction on a connection of a pool."""

import asyncio
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import TypeVar

import psycopg
from psycopg_pool import ConnectionPool, PoolTimeout

from remanence.clock import Clock
from remanence.errors import Closed, StoreUnavailable
from remanence.stores.postgres.connection import Connection
from remanence.stores.postgres.errors import RETRIED, translate_error
from remanence.stores.sql import search, tape, vectors
from remanence.stores.sql.connection import Connection as SQLConnection
from remanence.stores.sql.consistency import inconsistencies
from remanence.stores.sql.store import SQLStore, Work, read_method, write_method
from remanence.types import Problem, VectorTask

T = TypeVar("T")

_TRIES = 5
_SNAPSHOT = psycopg.IsolationLevel.REPEATABLE_READ
_STATUS = "SELECT pg_xact_status(%s::xid8)"
_POLL_SECONDS = 0.1
_VACUUM = (
    "VACUUM conversations, states, messages, segments, journal, text_index, fact_owners, facts, "
    "facts_index, facts_pins, vectors, fact_vectors, model_calls, turns, procrastinate_jobs"
)
"""Without names it would take up tables of other applications, too."""

_KEY_LOCK = 1919249762
"""Shared by those who take keys of segments and facts: see the migration `key_order`."""


def _next_vector_task(connection: SQLConnection, model: str) -> VectorTask | None:
    """Return the next task after the commits of all who took smaller keys."""
    connection.execute("SELECT pg_advisory_xact_lock(?)", (_KEY_LOCK,))
    return vectors.next_task(connection, model)


class PostgresStore(SQLStore):
    """A `Store` in a PostgreSQL database, for any number of processes."""

    def __init__(
        self,
        pool: ConnectionPool,
        *,
        name: str,
        clock: Clock,
        size: int,
        read_only: bool = False,
    ) -> None:
        self._pool = pool
        self._name = name
        self._clock = clock
        self._threads = ThreadPoolExecutor(size, thread_name_prefix="remanence-postgres")
        self._read_only = read_only
        self._closed = False

    search = read_method(search.find)
    next_vector_task = write_method(_next_vector_task)

    async def check(self) -> tuple[Problem, ...]:
        return await self._read(lambda connection: tuple(inconsistencies(connection)))

    async def scrub(self) -> None:
        """Free the space of erased rows; the server overwrites it in its own time."""
        self._require_writable()
        await self._in_thread(self._vacuum)

    async def close(self) -> None:
        if not self._closed:
            self._closed = True
            await asyncio.to_thread(self._shut_down)

    def _shut_down(self) -> None:
        self._threads.shutdown()
        self._pool.close()

    async def _write(self, work: Work[T]) -> T:
        self._require_writable()
        return await self._run(work, read_only=False)

    async def _read(self, work: Work[T]) -> T:
        return await self._run(work, read_only=True)

    async def _run(self, work: Work[T], *, read_only: bool) -> T:
        return await self._in_thread(partial(self._transact, work, read_only=read_only))

    def _require_writable(self) -> None:
        if self._read_only and not self._closed:
            raise StoreUnavailable(
                f"{self._name} is open for reading only: open it without read_only=True"
            )

    async def _in_thread(self, act: Callable[[], T]) -> T:
        if self._closed:
            raise Closed(f"the store on {self._name} was closed: open it again")
        return await asyncio.get_running_loop().run_in_executor(self._threads, act)

    def _transact(self, work: Work[T], *, read_only: bool) -> T:
        for left in reversed(range(_TRIES)):
            transaction, is_done = "", False
            try:
                with self._pool.connection() as connection:
                    connection.read_only = read_only
                    connection.isolation_level = _SNAPSHOT if read_only else None
                    if not read_only:
                        transaction = _transaction_id(connection)
                    answer = work(Connection(connection))
                    is_done = True
                return answer
            except PoolTimeout as error:
                raise self._out_of_connections(error) from error
            except RETRIED as error:
                if is_done and (read_only or self._was_committed(transaction)):
                    return answer
                if not left:
                    raise translate_error(error, self._name) from error
                self._pool.check()  # a server that started again has cut them all
            except (psycopg.Error, UnicodeEncodeError) as error:
                raise translate_error(error, self._name) from error
        raise AssertionError("the last try returns or raises")

    def _was_committed(self, transaction: str) -> bool:
        """Return whether a transaction whose commit got no answer took effect.

        Raises:
            StoreUnavailable: the server cannot tell.
        """
        deadline = time.monotonic() + self._pool.timeout
        try:
            while time.monotonic() < deadline:
                self._pool.check()
                with self._pool.connection() as connection:
                    connection.read_only, connection.isolation_level = True, None
                    (status,) = connection.execute(_STATUS, (transaction,)).fetchone() or ("",)
                if status != "in progress":
                    return bool(status == "committed")
                time.sleep(_POLL_SECONDS)
        except psycopg.Error as error:
            raise StoreUnavailable(
                f"{self._name}: the connection was lost while a change was committed, and the server "
                f"does not tell if it was: {error}: look before you repeat it"
            ) from error
        raise StoreUnavailable(
            f"{self._name}: a change was not committed within {self._pool.timeout:g} s after its "
            "connection was lost, and still may be: look before you repeat it"
        )

    def _out_of_connections(self, error: PoolTimeout) -> StoreUnavailable:
        return StoreUnavailable(
            f"{self._name}: no connection within {self._pool.timeout:g} s: {error}"
        )

    def _vacuum(self) -> None:
        try:
            with self._pool.connection() as connection:
                connection.autocommit = True
                try:
                    connection.execute(_VACUUM)
                finally:
                    if not connection.closed:
                        connection.autocommit = False
        except PoolTimeout as error:
            raise self._out_of_connections(error) from error
        except psycopg.Error as error:
            raise translate_error(error, self._name) from error

    def _index(self, connection: SQLConnection, written: tape.TapeWrite) -> None:
        while search.index_some(connection, written.conversation):
            pass

    def _remove_words(self, connection: SQLConnection, conversation: int) -> None:
        connection.execute("DELETE FROM text_index WHERE scope = ?", (search.scope(conversation),))


def _transaction_id(connection: psycopg.Connection) -> str:
    row = connection.execute("SELECT pg_current_xact_id()::text").fetchone()
    assert row is not None
    return str(row[0])
