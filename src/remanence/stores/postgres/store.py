"""The store in PostgreSQL: each method is one transaction on a pooled connection."""

import asyncio
import logging
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from datetime import datetime
from functools import partial
from typing import TypeVar

import psycopg
from psycopg.errors import Diagnostic, LockNotAvailable
from psycopg_pool import ConnectionPool, PoolTimeout

from remanence.clock import Clock, SystemClock
from remanence.errors import Closed, OutcomeUnknown, StoreError, StoreUnavailable
from remanence.process import OwnProcess
from remanence.stores.postgres import pgvector
from remanence.stores.postgres.check import (
    VACUUM_REMEDY,
    orphan_problems,
    vacuum_problems,
    write_problems,
)
from remanence.stores.postgres.connection import Connection
from remanence.stores.postgres.errors import RETRIED, reason, translate_error
from remanence.stores.postgres.pool import Unreachable
from remanence.stores.postgres.server import Transaction, begin, outcome
from remanence.stores.sql import search, vectors
from remanence.stores.sql.connection import Connection as SQLConnection
from remanence.stores.sql.consistency import inconsistencies
from remanence.stores.sql.retention import sizes_with
from remanence.stores.sql.store import SQLStore, Work, read_method, write_method
from remanence.types import Keep, Problem, TableSize, VectorTask

logger = logging.getLogger(__name__)

T = TypeVar("T")

_TRIES = 5
_SNAPSHOT = psycopg.IsolationLevel.REPEATABLE_READ
_CURRENT = psycopg.IsolationLevel.READ_COMMITTED
"""A writer sees the changes of those that it waited for, whatever the server's default is."""
_POLL_SECONDS = 0.1
_INDEXED = "SELECT 1 FROM {0} WHERE {0}.key"
_VACUUM = (
    "VACUUM (ANALYZE) conversations, states, messages, segments, journal, text_index, fact_owners, facts, "
    "facts_index, facts_pins, fact_repetitions, vectors, fact_vectors, model_calls, turns, events, "
    "procrastinate_jobs"
)
"""Named tables only: the database may also have those of other applications.

ANALYZE replaces the planner's statistics, which quote values of erased rows.
"""

_TIMEOUTS = (
    "SELECT name, current_setting(name) FROM pg_settings "
    "WHERE name IN ('lock_timeout', 'statement_timeout')"
)
_SET_TIMEOUT = "SELECT set_config(%s, %s, false)"

_NOT_VACUUMED = "%s: %s, so erased text stays in the tables' files and statistics until autovacuum gets to them: %s"

_KEY_LOCK = 1919249762
"""The advisory lock that writers of segments and facts share: see the migration `key_order`."""


def _next_vector_task(
    connection: SQLConnection, model: str, *, keep: Keep, at: datetime, place: str = ""
) -> VectorTask | None:
    """Return the next task, once all transactions that took smaller keys have ended."""
    connection.execute("SELECT pg_advisory_xact_lock(?)", (_KEY_LOCK,))
    return vectors.next_task(connection, model, keep=keep, at=at, place=place)


def _table_sizes(connection: SQLConnection) -> tuple[TableSize, ...]:
    """Return the sizes of the tables with those of their indexes and long values."""
    rows = connection.execute(
        "SELECT relname, pg_total_relation_size(oid) FROM pg_class "
        "WHERE relnamespace = (SELECT relnamespace FROM pg_class WHERE oid = 'states'::regclass)"
    )
    return sizes_with(connection, dict(rows))


class PostgresStore(SQLStore):
    """A `Store` in a PostgreSQL database, for any number of processes."""

    def __init__(
        self, pool: ConnectionPool, *, name: str, clock: Clock, read_only: bool = False
    ) -> None:
        self._pool = pool
        self._name = name
        self._clock = clock
        self._machine = clock if isinstance(clock, SystemClock) else SystemClock()
        self._threads = ThreadPoolExecutor(pool.max_size, thread_name_prefix="remanence-postgres")
        self._read_only = read_only
        self._closed = False
        self._process = OwnProcess()

    search = read_method(search.find)
    table_sizes = read_method(_table_sizes)
    next_vector_task = write_method(_next_vector_task)
    nearest = read_method(partial(vectors.nearest, rank=pgvector.rank))
    nearest_facts = read_method(partial(vectors.nearest_facts, rank=pgvector.rank))

    async def check(self) -> tuple[Problem, ...]:
        found = await self._read(
            lambda connection: (
                *inconsistencies(connection, _INDEXED, now=self._clock.now()),
                *orphan_problems(connection),
                *pgvector.problems(connection),
            )
        )
        return (*found, *await self._in_thread(self._write_problems))

    async def probe(self) -> None:
        if not self._read_only:  # a replica, which assigns no transaction ids, fails
            await self._write(lambda _: None)

    async def scrub(self, *, if_due: bool = False) -> bool:
        """Remove orphaned vectors, and free the space of erased rows, which the server overwrites later.

        The rows are gone already: a failure, such as a full disk, is a warning.
        """
        self._require_writable()
        if not if_due:
            try:
                await self._in_thread(self._vacuum)
            except StoreError as error:
                logger.warning(_NOT_VACUUMED, self._name, "VACUUM failed", error)
        return not if_due

    async def close(self) -> None:
        if not self._closed and self._process.is_this:
            self._closed = True
            await asyncio.to_thread(self._shut_down)

    def _shut_down(self) -> None:
        self._threads.shutdown()
        self._pool.close()

    async def _write(self, work: Work[T]) -> T:
        self._require_writable()
        return await self._in_thread(partial(self._transact, work, read_only=False))

    async def _read(self, work: Work[T]) -> T:
        return await self._in_thread(partial(self._transact, work, read_only=True))

    def _require_writable(self) -> None:
        if self._read_only and not self._closed:
            raise StoreUnavailable(
                f"{self._name} is open read-only: open it without read_only=True"
            )

    async def _in_thread(self, act: Callable[[], T]) -> T:
        self._process.require_this()
        if self._closed:
            raise Closed(f"the store on {self._name} was closed: open it again")
        return await asyncio.get_running_loop().run_in_executor(self._threads, act)

    def _transact(self, work: Work[T], *, read_only: bool) -> T:
        for left in reversed(range(_TRIES)):
            transaction: Transaction | None = None
            is_done = False
            try:
                with self._pool.connection() as connection:
                    connection.read_only = (
                        read_only or None
                    )  # False overrides the database's default
                    connection.isolation_level = _SNAPSHOT if read_only else _CURRENT
                    if not read_only:
                        transaction = begin(connection, self._machine)
                    answer = work(Connection(connection))
                    is_done = True
                return answer
            except RETRIED as error:
                if is_done and (transaction is None or self._was_committed(transaction)):
                    return answer
                if not left or isinstance(error, PoolTimeout | Unreachable | LockNotAvailable):
                    raise translate_error(error, self._name) from error
                self._pool.check()  # a restarted server has closed all of them
            except (psycopg.Error, UnicodeEncodeError) as error:
                raise translate_error(error, self._name) from error
        raise AssertionError("the last try returns or raises")

    def _was_committed(self, transaction: Transaction) -> bool:
        """Return whether a transaction was committed whose connection broke during the commit.

        Raises:
            OutcomeUnknown: the server does not know.
        """
        deadline = time.monotonic() + self._pool.timeout
        while True:
            try:
                self._pool.check()
                with self._pool.connection() as connection:
                    connection.read_only, connection.isolation_level = True, None
                    found = outcome(connection, transaction)
            except psycopg.OperationalError as error:  # for example, the server is still starting
                found = reason(error)
            if found in ("committed", "aborted"):
                return found == "committed"
            if found == "unknown" or time.monotonic() >= deadline:
                break
            time.sleep(_POLL_SECONDS)
        raise OutcomeUnknown(
            f"{self._name}: the connection was lost during a commit, and the server does not know if it "
            f"took effect ({found}): check before you repeat it, or repeat it with the same message ids"
        )

    @contextmanager
    def _connection(self) -> Iterator[psycopg.Connection]:
        """Yield a connection of the pool, and translate its errors."""
        try:
            with self._pool.connection() as connection:
                yield connection
        except psycopg.Error as error:
            raise translate_error(error, self._name) from error

    def _write_problems(self) -> tuple[Problem, ...]:
        with self._connection() as connection:
            return (*write_problems(connection, self._machine), *vacuum_problems(connection))

    def _vacuum(self) -> None:
        severities: set[str | None] = set()

        def note(notice: Diagnostic) -> None:  # which is gone after the call
            severities.add(notice.severity_nonlocalized)

        with self._connection() as connection:
            connection.autocommit = True
            connection.add_notice_handler(note)
            limits = connection.execute(_TIMEOUTS).fetchall()
            try:
                for name, _ in limits:  # it may take long, and another vacuum before it
                    connection.execute(_SET_TIMEOUT, (name, "0"))
                vectors.remove_orphans(Connection(connection))
                connection.execute(_VACUUM)
            finally:
                connection.remove_notice_handler(note)
                if not connection.closed:
                    for limit in limits:
                        connection.execute(_SET_TIMEOUT, limit)
                    connection.autocommit = False
        if "WARNING" in severities:  # the server skips a table that the role may not vacuum
            why = "the role may not vacuum the tables"
            logger.warning(_NOT_VACUUMED, self._name, why, VACUUM_REMEDY)

    def _index(self, connection: SQLConnection, conversation: int, *, unindexed: int) -> None:  # noqa: ARG002 - all of them
        while search.index_some(connection, conversation):
            pass

    def _plan_scrub(self, connection: SQLConnection) -> None:
        """Do nothing: the server overwrites erased rows by itself."""
