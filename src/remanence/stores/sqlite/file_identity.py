"""The identity of an open file, which another process may remove or replace."""

import contextlib
from pathlib import Path
from typing import TypeAlias

from remanence.errors import StoreUnavailable

_MOVED = (
    "{path!r} was removed or replaced while it was open, and nothing was written",
    "close all memories that use it, restore the file, and open it again",
)
_LOG_MOVED = (
    "the write-ahead log of {path!r} was removed or replaced while it was open, and nothing was written",
    (
        "close all memories that use it, which saves what was written before, and open it again. Another "
        "SQLite library in this process, such as that of the module sqlite3, removes the log when it "
        "closes the file: read a backup instead"
    ),
)
_Identity: TypeAlias = tuple[int, int]


class FileIdentity:
    """Notices that an open file or its log was removed or replaced: SQLite would go on with the old one."""

    def __init__(self, path: str) -> None:
        self._path = Path(path)
        self._first: _Identity | None = None
        self._log = self._path
        self._first_log: _Identity | None = None

    def note_log(self, path: str) -> None:
        """Note the write-ahead log, once a connection keeps it from being removed."""
        self._log = Path(path)
        self._first_log = _identity(self._log)

    def require(self) -> None:
        """Raise `StoreUnavailable` unless the paths name the same files as in the calls before."""
        found = _identity(self._path)
        self._first = self._first or found
        if found != self._first:
            raise self._error(*_MOVED)
        if self._first_log and _identity(self._log) != self._first_log:
            raise self._error(*_LOG_MOVED)

    def _error(self, what: str, remedy: str) -> StoreUnavailable:
        public = f"{what.replace('{path!r}', 'the database')}: {remedy}"
        return StoreUnavailable(what.format(path=str(self._path)), remedy=remedy, public=public)


def _identity(file: Path) -> _Identity | None:
    """Return None if there is no file, or the path is not the name of one."""
    with contextlib.suppress(OSError, ValueError):
        found = file.stat()
        return found.st_dev, found.st_ino
    return None
