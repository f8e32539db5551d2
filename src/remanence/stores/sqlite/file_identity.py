"""The identity of an open file, which another process may remove or replace."""

import contextlib
from pathlib import Path

from remanence.errors import StoreUnavailable

_MOVED = (
    "{path!r} was removed or replaced while it was open, and nothing was written: close all memories "
    "that use it, restore the file, and open it again"
)


class FileIdentity:
    """Notices that an open file was removed or replaced: SQLite would go on with the old one."""

    def __init__(self, path: str) -> None:
        self._path = Path(path)
        self._first: tuple[int, int] | None = None

    def require(self) -> None:
        """Raise `StoreUnavailable` unless the path names the same file as in the calls before."""
        found = None
        with contextlib.suppress(OSError, ValueError):  # no file yet, or no name of one
            file = self._path.stat()
            found = (file.st_dev, file.st_ino)
        self._first = self._first or found
        if found != self._first:
            public = _MOVED.replace("{path!r}", "the database")
            raise StoreUnavailable(_MOVED.format(path=str(self._path)), public=public)
