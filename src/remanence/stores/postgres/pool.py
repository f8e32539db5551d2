"""The connection pool, and how long callers wait for it during an outage."""

import logging
import threading
import time
from typing import Any, Final, LiteralString, NamedTuple, Self

import psycopg
from psycopg_pool import ConnectionPool, PoolTimeout

from remanence.stores.postgres.errors import is_connection_limit, reason
from remanence.stores.postgres_url import connection_string

logger = logging.getLogger(__name__)

OUTAGE_SECONDS: Final = 3.0
"""Seconds that callers wait for an outage to end, such as a server restart."""

_BUSY_SECONDS: Final = 30.0
"""Seconds that callers wait for a connection in use to become free."""

_POLL_SECONDS: Final = 0.25
_MAX_CONNECTIONS: Final = 8
_WORKERS_CONNECTIONS: Final = 5
"""Connections that a worker has besides: four for its jobs, and one that listens for them."""

_IDLE_SECONDS: Final = 5
_LOCK_SECONDS: Final = 10

_LIMIT_LOCKS: LiteralString = (
    "SELECT set_config(name, %s, false) FROM pg_settings "
    "WHERE name = 'lock_timeout' AND source = 'default'"  # neither the URL nor the role sets it
)


_ALLOWED: LiteralString = (
    "SELECT least(nullif(rolconnlimit, -1), nullif(datconnlimit, -1), "
    "current_setting('max_connections')::int"
    " - current_setting('superuser_reserved_connections')::int"
    " - coalesce(current_setting('reserved_connections', true), '0')::int) "  # since PostgreSQL 16
    "FROM pg_roles, pg_database WHERE rolname = current_user AND datname = current_database()"
)


class Unreachable(psycopg.OperationalError):
    """The server has refused connections for `OUTAGE_SECONDS`; the text is that of its last error."""


class _Outage(NamedTuple):
    """The time at which the server was first unreachable, and the last error."""

    since: float
    error: psycopg.Error


class _Connection(psycopg.Connection):
    """A connection that tells *pool* whether it could be opened."""

    @classmethod
    def connect(cls, conninfo: str = "", *, pool: "Pool", **options: Any) -> Self:  # type: ignore[override]  # those of psycopg
        begun = time.monotonic()
        try:
            connection = super().connect(conninfo, **options)
        except psycopg.OperationalError as error:
            if not is_connection_limit(error):
                pool.note_outage(_Outage(begun, error))
            raise
        pool.note_outage(None)
        return connection


class Pool(ConnectionPool[psycopg.Connection]):
    """Up to eight connections of this process, fewer if they would leave none for its worker.

    Callers wait up to 30 s for a free connection, but only 3 s while the server is unreachable.
    Meanwhile the pool tries to reconnect every one or two seconds.
    """

    def __init__(self, url: str, *, max_size: int = _MAX_CONNECTIONS) -> None:
        self.outage: _Outage | None = None  # replaced whole, so that any thread may read it
        self._noting = threading.Lock()  # so that one of the pool's threads logs an outage
        super().__init__(
            connection_string(url),
            connection_class=_Connection,
            kwargs={"pool": self},
            min_size=1,
            max_size=max_size,
            open=True,
            timeout=_BUSY_SECONDS,
            configure=_limit_transactions,
            reconnect_timeout=OUTAGE_SECONDS,  # bounds its doubling pauses; the next caller restarts it
        )

    def note_outage(self, now: _Outage | None) -> None:
        """Note that the server cannot be reached, or can, and log the beginning and end of an outage."""
        with self._noting:
            before, self.outage = self.outage, now
            if before and now:
                self.outage = now._replace(since=before.since)
        if now and not before:
            logger.warning("the PostgreSQL server cannot be reached: %s", reason(now.error))
        elif before and not now:
            seconds = time.monotonic() - before.since
            logger.warning("the PostgreSQL server is reached again after %.1f s", seconds)

    def getconn(self, timeout: float | None = None) -> psycopg.Connection:
        """Return a connection.

        Raises:
            Unreachable: the server cannot be reached.
            PoolTimeout: all connections stayed in use.
        """
        wait_seconds = self.timeout if timeout is None else timeout
        deadline = time.monotonic() + wait_seconds
        while True:
            try:
                return super().getconn(_POLL_SECONDS)
            except PoolTimeout:
                if (outage := self.outage) and time.monotonic() - outage.since >= OUTAGE_SECONDS:
                    raise Unreachable(str(outage.error)) from outage.error
                if time.monotonic() >= deadline:
                    raise PoolTimeout(f"no connection was free for {wait_seconds:g} s") from None


def max_pool_size(connection: psycopg.Connection) -> int:
    """Return how many connections a pool may have under the limits of server, role and database."""
    row = connection.execute(_ALLOWED).fetchone()
    allowed = _MAX_CONNECTIONS if row is None else row[0] - _WORKERS_CONNECTIONS
    return max(1, min(allowed, _MAX_CONNECTIONS))


def _limit_transactions(connection: psycopg.Connection) -> None:
    """Have the server end idle transactions and long waits for the locks of other sessions.

    A suspended process would keep the locks of an idle transaction.
    """
    connection.execute(f"SET idle_in_transaction_session_timeout = '{_IDLE_SECONDS}s'")
    connection.execute(_LIMIT_LOCKS, (f"{_LOCK_SECONDS}s",))
    connection.commit()
