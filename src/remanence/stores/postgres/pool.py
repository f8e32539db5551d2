"""The connection pool, and how long callers wait for it during an outage."""

import threading
import time
from typing import Any, Final, Self

import psycopg
from psycopg_pool import ConnectionPool, PoolTimeout

from remanence.stores.postgres.errors import is_connection_limit
from remanence.stores.postgres_url import connection_string

OUTAGE_SECONDS: Final = 3.0
"""Seconds that callers wait for an outage to end, such as a server restart."""

_BUSY_SECONDS: Final = 30.0
"""Seconds that callers wait for a connection in use to become free."""

_POLL_SECONDS: Final = 0.25
_MAX_CONNECTIONS: Final = 8
_IDLE_SECONDS: Final = 5


class Unreachable(psycopg.OperationalError):
    """The server has refused connections for `OUTAGE_SECONDS`; the text is that of its last error."""


class _Outage:
    """The start and the last error of an outage; the lock keeps the two consistent."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._since: float | None = None
        self._error: psycopg.Error | None = None

    def record(self, error: psycopg.Error, *, since: float) -> None:
        with self._lock:
            self._error = error
            self._since = since if self._since is None else self._since

    def end(self) -> None:
        with self._lock:
            self._since = self._error = None

    def check(self) -> None:
        """Raise `Unreachable` if an outage has lasted `OUTAGE_SECONDS`."""
        with self._lock:
            since, error = self._since, self._error
        if since is not None and time.monotonic() - since >= OUTAGE_SECONDS:
            raise Unreachable(str(error)) from error


class _Connection(psycopg.Connection):
    """A connection that reports to *outage* whether it could be opened."""

    @classmethod
    def connect(cls, conninfo: str = "", *, outage: _Outage, **options: Any) -> Self:  # type: ignore[override]  # those of psycopg
        begun = time.monotonic()
        try:
            connection = super().connect(conninfo, **options)
        except psycopg.OperationalError as error:
            if not is_connection_limit(error):
                outage.record(error, since=begun)
            raise
        outage.end()
        return connection


class Pool(ConnectionPool[psycopg.Connection]):
    """Up to eight connections of this process.

    Callers wait up to 30 s for a free connection, but only 3 s while the server is unreachable.
    Meanwhile the pool tries to reconnect every one or two seconds.
    """

    def __init__(self, url: str) -> None:
        self._outage = _Outage()
        super().__init__(
            connection_string(url),
            connection_class=_Connection,
            kwargs={"outage": self._outage},
            min_size=1,
            max_size=_MAX_CONNECTIONS,
            open=True,
            timeout=_BUSY_SECONDS,
            configure=_limit_transactions,
            reconnect_timeout=OUTAGE_SECONDS,  # bounds its doubling pauses; the next caller restarts it
        )

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
                self._outage.check()
                if time.monotonic() >= deadline:
                    raise PoolTimeout(f"no connection was free for {wait_seconds:g} s") from None


def _limit_transactions(connection: psycopg.Connection) -> None:
    """Have the server end idle transactions, whose locks a suspended process would keep."""
    connection.execute(f"SET idle_in_transaction_session_timeout = '{_IDLE_SECONDS}s'")
    connection.commit()
