"""Translation of PostgreSQL's errors to those of this package."""

import psycopg
from psycopg import errors

from remanence.errors import RemanenceError, StoreError, StoreUnavailable

RETRIED = (
    errors.SerializationFailure,
    errors.DeadlockDetected,
    errors.IdleInTransactionSessionTimeout,
    psycopg.OperationalError,
)
"""Errors after which the same transaction may succeed."""


def translate_error(error: Exception, database: str) -> Exception:
    """Return this package's error for one of PostgreSQL; other errors are returned unchanged."""
    if isinstance(error, UnicodeEncodeError):
        answer: RemanenceError = StoreError(
            f"text is not Unicode ({error.reason}): decode it with errors='replace' first"
        )
    elif isinstance(error, psycopg.Error):
        answer = _answer(error, database)
    else:
        return error
    answer.__cause__ = error
    return answer


def _answer(error: psycopg.Error, database: str) -> StoreError:
    why = str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
    if isinstance(error, psycopg.OperationalError) and error.sqlstate is None:
        for words, remedy in _REFUSED:
            if words in why:
                return StoreUnavailable(f"{database}: {why}: {remedy}")
    for kinds, remedy in _REMEDIES:
        if isinstance(error, kinds):
            return StoreUnavailable(f"{database}: {why}: {remedy}")
    return StoreError(f"{database} refused: {why}")


_REFUSED = (
    ("authentication failed", "check user and password of the URL"),
    ('" does not exist', "create it, or name another one in the URL"),
)
"""Words of errors of connecting, which have no class of their own."""

_REMEDIES: tuple[tuple[tuple[type[psycopg.Error], ...], str], ...] = (
    (
        (errors.InsufficientPrivilege,),
        "let the user create tables in the schema, or run 'remanence migrate' as one who may",
    ),
    (
        (errors.TooManyConnections,),
        "open fewer memories, or raise the server's max_connections",
    ),
    ((errors.DiskFull,), "nothing was written: free space on the server and try again"),
    ((errors.ReadOnlySqlTransaction,), "the server is a replica: name the primary"),
    ((errors.QueryCanceled, errors.LockNotAvailable), "the database is overloaded: try again"),
    (
        (errors.InvalidSqlStatementName, errors.DuplicatePreparedStatement),
        "name the server itself, or a pooler in session mode",
    ),
    ((psycopg.OperationalError,), "check that the server runs and can be reached"),
)
