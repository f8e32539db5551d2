"""A server: its URL, version and time, and the kind of pooler before it."""

import re
from datetime import UTC, datetime
from typing import LiteralString, NamedTuple

import psycopg

from remanence.clock import SystemClock
from remanence.errors import StoreUnavailable
from remanence.stores.url import mask_password

_OLDEST_VERSION = 150_000
_QUOTED_PART = re.compile(r'".*\W.*"', re.DOTALL)
"""What libpq quotes of a URL, unless it is a mere word, such as the name of a parameter."""

_STATISTICS: LiteralString = "extract(epoch FROM pg_stat_get_bgwriter_stat_reset_time())::float8"
_BEGIN: LiteralString = (
    f"SELECT pg_current_xact_id()::text, {_STATISTICS}, "  # noqa: S608 - a constant
    "extract(epoch FROM clock_timestamp())::float8"
)
_STATUS: LiteralString = f"SELECT pg_xact_status(%s::xid8), {_STATISTICS}"


def database_name(url: str) -> str:
    """Return how errors name the database at *url*.

    Raises:
        StoreUnavailable: the URL cannot be read.
    """
    try:
        parts = psycopg.conninfo.conninfo_to_dict(url)
    except psycopg.ProgrammingError as error:
        why = _QUOTED_PART.sub('"..."', str(error).strip())
        raise StoreUnavailable(
            f"store {mask_password(url)!r} cannot be read: {why}: write "
            "'postgresql://user:password@host:5432/database'"
        ) from None  # its text may have a part of the password
    name = str(parts.get("dbname") or "")
    if "@" in f"{parts.get('host') or ''}{parts.get('port') or ''}{name}":
        raise StoreUnavailable(
            f"store {mask_password(url)!r} has a '/', '@' or ':' in its user or password: write them "
            "as %2F, %40 and %3A"
        )
    return f"PostgreSQL database {name!r}"


def require_server(connection: psycopg.Connection, url: str, name: str) -> None:
    """Raise StoreUnavailable if the server is too old, or behind a pooler of transactions."""
    if connection.info.server_version < _OLDEST_VERSION:
        version = connection.info.parameter_status("server_version")
        raise StoreUnavailable(
            f"{name}: the server is PostgreSQL {version}: upgrade it to 15 or newer"
        )
    if _pools_transactions(connection, url):
        raise StoreUnavailable(
            f"{name}: a pooler in transaction mode is between: name the server itself, or a pooler "
            "in session mode, as prepared statements, settings and signals belong to a session"
        )


def _pools_transactions(connection: psycopg.Connection, url: str) -> bool:
    """Return whether a connection of the server serves several of a pooler's clients.

    A pooler gives its clients process ids of its own.
    """
    backend = _backend(connection)
    if backend == connection.info.backend_pid:
        return False
    connection.commit()
    with psycopg.connect(url, connect_timeout=10) as other:
        return _backend(other) == backend or _backend(connection) != backend


def _backend(connection: psycopg.Connection) -> int:
    """Return the server's process of a transaction, which stays open."""
    row = connection.execute("SELECT pg_backend_pid()").fetchone()
    assert row is not None
    return int(row[0])


class Transaction(NamedTuple):
    """The id of a transaction, and when the server's statistics began: anew after each crash."""

    id: str
    statistics: float


def begin(connection: psycopg.Connection, machine: SystemClock) -> Transaction:
    """Begin a transaction that will write, and correct a machine's clock by the server's."""
    asked_at = machine.machine_time()
    id_, statistics, seconds = connection.execute(_BEGIN).fetchone() or ("", 0.0, 0.0)
    machine.follow(datetime.fromtimestamp(seconds, UTC), asked_at=asked_at)
    return Transaction(id_, statistics)


def outcome(connection: psycopg.Connection, transaction: Transaction) -> str:
    """Return how a transaction ended: committed, aborted, in progress, or unknown.

    A server that crashed gives an id anew unless a record of it was on disk, and then it was not
    committed. It is unknown who committed it when it was given anew.
    """
    try:
        status, statistics = connection.execute(_STATUS, (transaction.id,)).fetchone() or ("", 0.0)
    except psycopg.errors.InvalidParameterValue:  # the id is yet to come
        return "aborted"
    if status == "committed" and statistics != transaction.statistics:
        return "unknown"
    return status or "unknown"
