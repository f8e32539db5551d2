"""Translation of SQLite's errors to those of this package."""

from collections.abc import Callable

import apsw

from remanence.errors import NotADatabase, RemanenceError, StoreError, StoreUnavailable


def translate_error(error: Exception, path: str) -> Exception:
    """Return this package's error for one of SQLite; other errors are returned unchanged."""
    if isinstance(error, UnicodeEncodeError):
        answer: RemanenceError = StoreError(
            f"text is not Unicode ({error.reason}): decode it with errors='replace' first"
        )
    elif isinstance(error, apsw.Error):
        answer = _answer(error, path)
    else:
        return error
    answer.__cause__ = error
    return answer


def _answer(error: apsw.Error, path: str) -> RemanenceError:
    for kinds, answer in _ANSWERS:
        if isinstance(error, kinds):
            return answer(path, error)
    return StoreError(f"{path!r} refused: {error}")


def no_database(path: str) -> str:
    """Return the message for a file that is not a database."""
    return (
        f"{path!r}: file is not a database; if it is encrypted, open it with its key, otherwise "
        "name another file"
    )


def unwritable(path: str) -> str:
    """Return the message for a file that this process may not write."""
    return (
        f"{path!r} cannot be written: make the file and its directory writable, or open it with "
        "read_only=True"
    )


_Answer = tuple[tuple[type[apsw.Error], ...], Callable[[str, apsw.Error], RemanenceError]]

_ANSWERS: tuple[_Answer, ...] = (
    (
        (apsw.BusyError, apsw.LockedError),
        lambda path, _: StoreUnavailable(
            f"another process holds the lock on {path!r}: try again, or end that process"
        ),
    ),
    (
        (apsw.FullError,),
        lambda path, _: StoreUnavailable(
            f"no space is left for {path!r}, and nothing was written: free some and try again"
        ),
    ),
    (
        (apsw.ReadOnlyError, apsw.PermissionsError),
        lambda path, _: StoreUnavailable(unwritable(path)),
    ),
    (
        (apsw.CantOpenError,),
        lambda path, _: StoreUnavailable(
            f"{path!r} cannot be opened: check that its directory exists and is writable"
        ),
    ),
    (
        (apsw.IOError,),
        lambda path, error: StoreUnavailable(
            f"{path!r} cannot be read or written ({error}): check the disk"
        ),
    ),
    (
        (apsw.NotADBError,),
        lambda path, _: NotADatabase(no_database(path)),
    ),
    (
        (apsw.CorruptError,),
        lambda path, error: StoreError(f"{path!r} is damaged ({error}): restore a backup"),
    ),
)
