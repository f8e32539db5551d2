"""What SQLite reports, in our words."""

from collections.abc import Iterator
from contextlib import contextmanager

import apsw

from remanence.errors import NotADatabase, RemanenceError, StoreError, StoreUnavailable


def translated(error: Exception, path: str) -> Exception:
    """The error of this package that stands for *error*; others are returned as they are."""
    match error:
        case RemanenceError():
            return error
        case apsw.BusyError() | apsw.LockedError():
            return StoreUnavailable(
                f"another process holds the lock on {path!r}: try again, or end that process"
            )
        case apsw.FullError():
            return StoreUnavailable(
                f"no space is left for {path!r}: free some, nothing was written"
            )
        case apsw.ReadOnlyError() | apsw.PermissionsError() | apsw.AuthError():
            return StoreUnavailable(
                f"{path!r} cannot be written: make the file and its directory writable"
            )
        case apsw.CantOpenError():
            return StoreUnavailable(
                f"{path!r} cannot be opened: check that its directory exists and is writable"
            )
        case apsw.NotADBError():
            return NotADatabase(
                f"{path!r}: file is not a database; if it is encrypted, open it with its key, "
                "otherwise name another file"
            )
        case apsw.CorruptError():
            return StoreError(f"{path!r} is damaged ({error}): restore a backup")
        case apsw.IOError():
            return StoreUnavailable(f"{path!r} cannot be read or written ({error}): check the disk")
        case apsw.Error():
            return StoreError(f"{path!r} refused: {error}")
        case UnicodeEncodeError():
            return StoreError(f"text is not Unicode ({error.reason}): decode with errors='replace'")
        case _:
            return error


@contextmanager
def translating(path: str) -> Iterator[None]:
    """Raise what SQLite raises in our words."""
    try:
        yield
    except (apsw.Error, UnicodeEncodeError) as error:
        raise translated(error, path) from error
