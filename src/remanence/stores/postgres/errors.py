"""Translation of PostgreSQL's errors to those of this package."""

import psycopg
from psycopg import errors
from psycopg_pool import PoolTimeout

from remanence.errors import InvalidMessage, RemanenceError, StoreError, StoreUnavailable

RETRIED = (
    errors.SerializationFailure,
    errors.DeadlockDetected,
    errors.IdleInTransactionSessionTimeout,
    psycopg.OperationalError,
)
"""Errors after which the same transaction may succeed."""


def translate_error(error: psycopg.Error | UnicodeEncodeError, database: str) -> RemanenceError:
    """Return this package's error for one of PostgreSQL."""
    if isinstance(error, UnicodeEncodeError):
        return StoreError(
            f"text is not Unicode ({error.reason}): decode it with errors='replace' first"
        )
    if isinstance(error, errors.ProgramLimitExceeded) and "index row" in str(error):
        return InvalidMessage(
            f"a name or an id is too long for {database} ({reason(error)}): use at most 2,000 bytes"
        )
    if remedy := find_remedy(error):
        text = f"{database}: {reason(error)}"
        return StoreUnavailable(text, remedy=remedy, public=_public_reason(error))
    return StoreError(
        f"{database} refused: {reason(error)}", public="the database refused: see the server's log"
    )


def reason(error: psycopg.Error) -> str:
    """Return the first line of an error's text."""
    lines = str(error).strip().splitlines()
    return lines[0] if lines else type(error).__name__


def _public_reason(error: psycopg.Error) -> str:
    """Return why the database is unavailable, without names of hosts, users or files."""
    text = str(error)
    found = (what for words, what in _PUBLIC_REASONS if any(word in text for word in words))
    return f"{next(found, 'the database cannot be used now')}: try again later"


def is_connection_limit(error: psycopg.Error) -> bool:
    """Return whether a healthy server refused a connection because its limit is reached."""
    return find_remedy(error) == _FEWER_CONNECTIONS


def is_replica(error: psycopg.Error) -> bool:
    """Return whether the server refused to write because it is a replica."""
    return isinstance(error, errors.ReadOnlySqlTransaction) and "during recovery" in str(error)


def find_remedy(error: psycopg.Error) -> str | None:
    """Return the remedy for an error, if one is known."""
    if is_replica(error):
        return "the server is a replica: name the primary"
    if isinstance(error, errors.QueryCanceled) and "statement timeout" in str(error):
        return "raise statement_timeout of the role, the database or the URL, or try again"
    if isinstance(error, psycopg.OperationalError) and error.sqlstate is None:
        for words, remedy in _REFUSED:
            if words in str(error):
                return remedy
    return next((_REMEDIES[kind] for kind in type(error).__mro__ if kind in _REMEDIES), None)


_FEWER_CONNECTIONS = (
    "open fewer memories, or raise max_connections of the server or CONNECTION LIMIT of the role and "
    "the database"
)
_OVERLOADED = "the database is overloaded: try again"
_FREE_SPACE = "free space on the server and try again"
_NO_POOLER = "name the server itself, or a pooler in session mode"

_REFUSED = (
    ("authentication failed", "check user and password of the URL"),
    ("no password supplied", "write the password into the URL, PGPASSWORD or ~/.pgpass"),
    ("does not support SSL", "turn on TLS at the server (ssl = on), or lower sslmode in the URL"),
    ("no pg_hba.conf entry", "let the user and this machine in by the server's pg_hba.conf"),
    ("is not permitted to log in", "let the role log in: ALTER ROLE ... LOGIN"),
    ("permission denied for database", "let the user in: GRANT CONNECT ON DATABASE ..."),
    ("too many connections", _FEWER_CONNECTIONS),
    ("too many clients", _FEWER_CONNECTIONS),
    ("remaining connection slots", _FEWER_CONNECTIONS),
    ("the database system is", "wait until the server has started, and try again"),
    ("No space left", _FREE_SPACE),
    ("could not write init file", _FREE_SPACE),  # a new session's first write
    ('" does not exist', "create it, or name another one in the URL"),
)
"""Connection errors by a part of their text, as they have no class or SQLSTATE of their own."""

_PUBLIC_REASONS = (
    (("Connection refused", "No such file or directory"), "the database refused the connection"),
    (("timeout expired", "timed out"), "the database did not answer"),
    (("the database system is",), "the database is starting or shutting down"),
    (("too many", "remaining connection slots", "no connection was"), "the database is busy"),
    (("closed the connection", "terminating connection"), "the database closed the connection"),
    (
        ("during recovery", "read-only transaction", "read-only by default"),
        "the database is read-only",
    ),
    (("lock timeout",), "another session keeps the database locked"),
    (("No space left", "could not write init file"), "the database has no space left"),
)

_REMEDIES: dict[type, str] = {
    errors.InsufficientPrivilege: (
        "let the user create tables in the schema; or run 'remanence migrate' as one who may, and "
        "GRANT SELECT, INSERT, UPDATE, DELETE on all tables and USAGE on all sequences to the user"
    ),
    errors.ReadOnlySqlTransaction: (
        "reset default_transaction_read_only of the database, the role or the server, and take it out of "
        "the URL; or open the memory with read_only=True"
    ),
    errors.InvalidSchemaName: "create the schema, or name another one in search_path",
    errors.UndefinedObject: "have an administrator install it: CREATE EXTENSION ...",
    errors.UndefinedFile: (
        "install pgvector on the server, or have vectors compared in Python: DROP FUNCTION "
        "remanence_similarity, remanence_embedding CASCADE"
    ),
    errors.TooManyConnections: _FEWER_CONNECTIONS,
    errors.DiskFull: _FREE_SPACE,
    errors.QueryCanceled: _OVERLOADED,
    errors.LockNotAvailable: "another session keeps a lock: try again, or end that session",
    errors.InvalidSqlStatementName: _NO_POOLER,
    errors.DuplicatePreparedStatement: _NO_POOLER,
    PoolTimeout: f"check that the server runs and can be reached; if so, {_FEWER_CONNECTIONS}",
    psycopg.OperationalError: "check that the server runs and can be reached",
}
"""Remedies by error class; the most specific class applies."""
