"""A PostgreSQL server: its URL, version and clock, and whether a pooler is in front of it."""

import re
from datetime import UTC, datetime
from typing import LiteralString, NamedTuple

import psycopg
from psycopg.errors import ReadOnlySqlTransaction

from remanence.clock import SystemClock
from remanence.errors import StoreUnavailable
from remanence.stores.postgres_url import connection_string
from remanence.stores.url import mask_password

_OLDEST_VERSION = 150_000
_QUOTED_PART = re.compile(r'".*\W.*"', re.DOTALL)
"""A part of the URL that libpq quotes in an error; a plain word, such as a parameter, is harmless."""

_STATISTICS: LiteralString = "extract(epoch FROM pg_stat_get_bgwriter_stat_reset_time())::float8"
_BEGIN: LiteralString = (
    f"SELECT pg_current_xact_id()::text, {_STATISTICS}, "  # noqa: S608 - a constant
    "extract(epoch FROM clock_timestamp())::float8, current_setting('transaction_read_only')::bool"
)
_STATUS: LiteralString = f"SELECT pg_xact_status(%s::xid8), {_STATISTICS}"


def database_name(url: str) -> str:
    """Return the name of the database at *url* for error messages.

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
        ) from None  # its text may contain part of the password
    name = str(parts.get("dbname") or "")
    if "@" in f"{parts.get('host') or ''}{parts.get('port') or ''}{name}":
        raise StoreUnavailable(
            f"store {mask_password(url)!r} has a '/', '@' or ':' in its user or password: write them "
            "as %2F, %40 and %3A"
        )
    return f"PostgreSQL database {name!r}"


def require_server(connection: psycopg.Connection, url: str, name: str) -> None:
    """Raise `StoreUnavailable` for an old server, another encoding than UTF-8, or a pooler of transactions."""
    if connection.info.server_version < _OLDEST_VERSION:
        version = connection.info.parameter_status("server_version")
        raise StoreUnavailable(
            f"{name}: the server is PostgreSQL {version}: upgrade it to 15 or newer"
        )
    encoding = connection.info.parameter_status("server_encoding")
    if encoding != "UTF8":
        raise StoreUnavailable(
            f"{name} has the encoding {encoding}, which lacks characters: create a database with "
            "ENCODING 'UTF8' TEMPLATE template0"
        )
    if _pools_transactions(connection, url):
        raise StoreUnavailable(
            f"{name} is behind a pooler in transaction mode, where prepared statements, settings and "
            "signals do not work: connect to the server itself, or to a pooler in session mode"
        )


def _pools_transactions(connection: psycopg.Connection, url: str) -> bool:
    """Return whether a pooler shares one server connection between several clients.

    A pooler reports process ids of its own to its clients.
    """
    backend = _backend(connection)
    if backend == connection.info.backend_pid:
        return False
    connection.commit()
    with psycopg.connect(connection_string(url), connect_timeout=10) as other:
        return _backend(other) == backend or _backend(connection) != backend


def _backend(connection: psycopg.Connection) -> int:
    """Return the id of the server process; leaves the transaction open."""
    row = connection.execute("SELECT pg_backend_pid()").fetchone()
    assert row is not None
    return int(row[0])


class Transaction(NamedTuple):
    """The id of a transaction, and when the server's statistics were reset, as after a crash."""

    id: str
    statistics: float


def begin(connection: psycopg.Connection, machine: SystemClock) -> Transaction:
    """Begin a write transaction, and adjust the machine's clock to the server's.

    Raises:
        ReadOnlySqlTransaction: the server is a replica, or its transactions are read-only by default.
    """
    asked_at = machine.machine_time()
    row = connection.execute(_BEGIN).fetchone()
    id_, statistics, seconds, is_read_only = row or ("", 0.0, 0.0, False)
    if is_read_only:  # before a transaction that happens to write nothing succeeds
        raise ReadOnlySqlTransaction("transactions are read-only by default")
    machine.follow(datetime.fromtimestamp(seconds, UTC), asked_at=asked_at)
    return Transaction(id_, statistics)


def outcome(connection: psycopg.Connection, transaction: Transaction) -> str:
    """Return the outcome of a transaction: committed, aborted, in progress, or unknown.

    After a crash the server reuses the ids of transactions that left no record on disk, none of
    which was committed. A committed id is then ambiguous: a later transaction may have reused it.
    """
    try:
        status, statistics = connection.execute(_STATUS, (transaction.id,)).fetchone() or ("", 0.0)
    except psycopg.errors.InvalidParameterValue:  # the id has not been assigned yet
        return "aborted"
    if status == "committed" and statistics != transaction.statistics:
        return "unknown"
    return status or "unknown"
