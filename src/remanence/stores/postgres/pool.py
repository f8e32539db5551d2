"""The pool of connections, and the wait of a caller while the server lets none in."""

import threading
import time
from typing import Any, Final, Self

import psycopg
from psycopg_pool import ConnectionPool, PoolTimeout

from remanence.stores.postgres.errors import has_no_room
from remanence.stores.postgres_url import connection_string

OUTAGE_SECONDS: Final = 3.0
"""Seconds of an outage that callers wait for its end, as for a server that starts again."""

_BUSY_SECONDS: Final = 30.0
"""Seconds that callers wait for the connections of others, where the server allows no more."""

_LOOK_SECONDS: Final = 0.25
_MAX_CONNECTIONS: Final = 8
_IDLE_SECONDS: Final = 5


class Unreachable(psycopg.OperationalError):
    """The server lets nobody in, for longer than callers wait; the text is that of its refusal."""


class _Outage:
    """The time since the server lets nobody in; the lock guards the two values together."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._since: float | None = None
        self._error: psycopg.Error | None = None

    def note(self, error: psycopg.Error, *, since: float) -> None:
        with self._lock:
            self._error = error
            self._since = since if self._since is None else self._since

    def end(self) -> None:
        with self._lock:
            self._since = self._error = None

    def check(self) -> None:
        """Raise `Unreachable` if the outage lasts too long to wait for its end."""
        with self._lock:
            since, error = self._since, self._error
        if since is not None and time.monotonic() - since >= OUTAGE_SECONDS:
            raise Unreachable(str(error)) from error


class _Connection(psycopg.Connection):
    """A connection whose opening says if the server can be reached."""

    @classmethod
    def connect(cls, conninfo: str = "", *, outage: _Outage, **options: Any) -> Self:  # type: ignore[override]  # those of psycopg
        begun = time.monotonic()
        try:
            connection = super().connect(conninfo, **options)
        except psycopg.OperationalError as error:
            if not has_no_room(error):
                outage.note(error, since=begun)
            raise
        outage.end()
        return connection


class Pool(ConnectionPool[psycopg.Connection]):
    """Connections of a process, up to eight at once.

    A caller waits for one up to 30 s, but only for the first three seconds of an outage; meanwhile the
    pool looks for the server every one or two seconds.
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
            reconnect_timeout=OUTAGE_SECONDS,  # its pauses double until then; the next caller ends them
        )

    def getconn(self, timeout: float | None = None) -> psycopg.Connection:
        """Return a connection.

        Raises:
            Unreachable: the server lets nobody in.
            PoolTimeout: all connections that it allows are in use.
        """
        wait_seconds = self.timeout if timeout is None else timeout
        deadline = time.monotonic() + wait_seconds
        while True:
            try:
                return super().getconn(_LOOK_SECONDS)
            except PoolTimeout:
                self._outage.check()
                if time.monotonic() >= deadline:
                    raise PoolTimeout(f"no connection was free for {wait_seconds:g} s") from None


def _limit_transactions(connection: psycopg.Connection) -> None:
    """Have the server end the transactions of a process that was stopped, as they hold locks."""
    connection.execute(f"SET idle_in_transaction_session_timeout = '{_IDLE_SECONDS}s'")
    connection.commit()
