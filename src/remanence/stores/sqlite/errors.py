"""Translation of SQLite's errors to those of this package."""

import apsw

from remanence.errors import NotADatabase, RemanenceError, StoreError, StoreUnavailable

NO_DATABASE = (
    "{path!r}: file is not a database; if it is encrypted, open it with its key, otherwise name "
    "another file"
)
UNWRITABLE = (
    "{path!r} cannot be written: make the file and its directory writable; a program that only reads "
    "may open it read-only"
)
_DAMAGED = "{path!r} is damaged ({error}): restore a backup"
_LOCKED = "another process has locked {path!r}: try again, or end that process"
_ANSWERS: dict[type[Exception], tuple[type[StoreError], str]] = {
    apsw.BusyError: (StoreUnavailable, _LOCKED),
    apsw.LockedError: (StoreUnavailable, _LOCKED),
    apsw.FullError: (
        StoreUnavailable,
        "no space is left for {path!r} or for temporary files (SQLITE_TMPDIR, TMPDIR, /var/tmp): free some",
    ),
    apsw.ReadOnlyError: (StoreUnavailable, UNWRITABLE),
    apsw.PermissionsError: (StoreUnavailable, UNWRITABLE),
    apsw.CantOpenError: (
        StoreUnavailable,
        "{path!r} cannot be opened: check that its directory exists and is writable",
    ),
    apsw.IOError: (
        StoreUnavailable,
        "{path!r} cannot be read or written ({error}): check the disk and its free space",
    ),
    apsw.NotADBError: (NotADatabase, NO_DATABASE),
    apsw.CorruptError: (StoreError, _DAMAGED),
    apsw.Error: (StoreError, "{path!r} refused: {error}"),
}


def translate_error(error: Exception, path: str) -> Exception:
    """Return this package's error for a SQLite error; other errors are returned unchanged."""
    if isinstance(error, UnicodeEncodeError):
        answer: RemanenceError = StoreError(
            f"text is not Unicode ({error.reason}): decode it with errors='replace' first"
        )
    elif isinstance(error, UnicodeDecodeError):
        answer = _answer(StoreError, _DAMAGED, error, path)
    elif isinstance(error, apsw.Error):
        kind, message = next(_ANSWERS[base] for base in type(error).__mro__ if base in _ANSWERS)
        answer = _answer(kind, message, error, path)
    else:
        return error
    answer.__cause__ = error
    return answer


def _answer(kind: type[StoreError], message: str, error: Exception, path: str) -> StoreError:
    public = message.replace("{path!r}", "the database").format(error=error)
    return kind(message.format(path=path, error=error), public=public)
