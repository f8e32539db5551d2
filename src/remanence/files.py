"""Crash-safe files that only their owner can read, with safe names for arbitrary strings."""

import asyncio
import errno
import hashlib
import os
import re
import sys
from collections.abc import Callable, Collection, Coroutine
from functools import wraps
from pathlib import Path
from typing import Any, Concatenate, ParamSpec, TypeVar

from remanence.errors import StoreUnavailable

if sys.platform == "win32":
    import msvcrt
else:
    import fcntl

P = ParamSpec("P")
S = TypeVar("S")
T = TypeVar("T")

MAX_NAME = 120
_UNSAFE = re.compile(r"[^a-z0-9_-]")
_DEVICES = re.compile(r"(?:con|prn|aux|nul|com\d|lpt\d)")
FILE_MODE = 0o600
DIRECTORY_MODE = 0o700
UNFINISHED = ".new"
"""Suffix of a file that `write_whole` has not finished."""


def expand_home(path: str) -> Path:
    """Return a path with a leading `~/` replaced by the home directory; `~name` is a file."""
    return Path(path).expanduser() if path.startswith("~/") else Path(path)


def in_thread(
    method: Callable[Concatenate[S, P], T],
) -> Callable[Concatenate[S, P], Coroutine[Any, Any, T]]:
    """Turn a method that reads or writes files into an async one that runs in a thread.

    An `OSError` becomes `StoreUnavailable`, whose message describes the files by `str(self)`.
    """

    @wraps(method)
    async def run(self: S, /, *args: P.args, **kwargs: P.kwargs) -> T:
        try:
            return await asyncio.to_thread(method, self, *args, **kwargs)
        except OSError as error:
            raise StoreUnavailable(
                f"{self} cannot be read or written ({error.strerror}): fix that, or name another "
                "directory",
                public="a file of the service cannot be read or written",
            ) from error

    return run


def safe_name(name: str, *, taken: Collection[str] = (), max_length: int = MAX_NAME) -> str:
    """Return a unique file name for *name*, which is never a path.

    Everything but lower-case letters, digits, `_` and `-` is percent-encoded, including capitals,
    as some file systems treat `Ana` and `ana` as one file. Names in *taken* and of devices are
    avoided; a long name ends in its hash.
    """
    if not name:
        raise ValueError("name='' is not a name: use at least one character")
    encoded = _UNSAFE.sub(
        lambda found: "".join(f"%{byte:02x}" for byte in found[0].encode("utf-8", "surrogatepass")),
        name,
    )
    if encoded in taken or _DEVICES.fullmatch(encoded):
        encoded = f"%{ord(encoded[0]):02x}{encoded[1:]}"
    if len(encoded) > max_length:
        digest = hashlib.sha256(name.encode("utf-8", "surrogatepass")).hexdigest()
        return f"{encoded[: max_length - 41]}~{digest[:40]}"
    return encoded


def make_directory(directory: Path) -> None:
    """Create a directory and its parents, accessible to their owner only, unless they exist."""
    if not directory.is_dir():
        make_directory(directory.parent)
        directory.mkdir(mode=DIRECTORY_MODE, exist_ok=True)
        _sync_directory(directory.parent)


def _open(path: Path, flags: int) -> int:
    """Open or create a file, which only its owner can read.

    In a directory that others can write, a link could lead to any file of the process's user.
    """
    no_link = getattr(os, "O_NOFOLLOW", 0)
    try:
        return os.open(path, flags | os.O_CREAT | no_link, FILE_MODE)
    except OSError as error:
        if error.errno == errno.ELOOP and path.is_symlink():
            reason = f"{path.name!r} is a symbolic link, which is not followed"
            raise OSError(errno.ELOOP, reason) from error
        raise


def append_line(path: Path, line: bytes) -> None:
    """Append a line to a file, synced to disk when this returns.

    The remains of an interrupted write become a separate line; a failed one leaves none.
    """
    is_new = not path.exists()
    descriptor = _open(path, os.O_RDWR | os.O_APPEND)
    with os.fdopen(descriptor, "r+b", buffering=0) as file:
        size = os.fstat(descriptor).st_size
        if size:
            os.lseek(descriptor, size - 1, os.SEEK_SET)
            line = line if file.read(1) == b"\n" else b"\n" + line
        line += b"\n"
        end = size
        try:
            while left := line[end - size :]:
                end += os.write(descriptor, left)
            os.fsync(descriptor)
        except OSError:
            if os.fstat(descriptor).st_size == end:  # otherwise, another process appended, too
                os.ftruncate(descriptor, size)
            raise
    if is_new:
        _sync_directory(path.parent)


def write_whole(path: Path, content: bytes) -> None:
    """Replace a file's content atomically, synced to disk when this returns."""
    temporary = path.with_name(path.name + UNFINISHED)
    descriptor = _open(temporary, os.O_WRONLY | os.O_TRUNC)
    with os.fdopen(descriptor, "wb") as file:
        file.write(content)
        file.flush()
        os.fsync(descriptor)
    temporary.replace(path)
    _sync_directory(path.parent)


def move(path: Path, target: Path) -> None:
    """Rename a file, synced to disk when this returns."""
    path.replace(target)
    _sync_directory(target.parent)
    _sync_directory(path.parent)


def link(path: Path, target: Path) -> None:
    """Create a hard link to a file, synced to disk when this returns.

    Renames the file instead if the file system has no hard links.

    Raises:
        FileExistsError: *target* exists.
    """
    try:
        os.link(path, target)
    except FileExistsError:
        raise
    except OSError:
        if target.exists():
            raise FileExistsError(f"{target} exists") from None
        path.replace(target)
    _sync_directory(target.parent)


class Lock:
    """An exclusive lock across processes, which also ends with its process."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._descriptor: int | None = None

    def take(self) -> bool:
        """Acquire the lock without waiting; false if another owner has it."""
        descriptor = _open(self._path, os.O_RDWR)
        try:
            if sys.platform == "win32":
                msvcrt.locking(descriptor, msvcrt.LK_NBLCK, 1)
            else:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            os.close(descriptor)
            return False
        if not _is_file_at(self._path, descriptor):  # its owner deleted it
            os.close(descriptor)
            return False
        self._descriptor = descriptor
        return True

    def close(self) -> None:
        """Release the lock, if it was acquired."""
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None


def _is_file_at(path: Path, descriptor: int) -> bool:
    try:
        return os.path.samestat(path.stat(), os.fstat(descriptor))
    except FileNotFoundError:
        return False


def remove(path: Path) -> bool:
    """Delete a file, synced to disk when this returns; false if it does not exist."""
    try:
        path.unlink()
    except FileNotFoundError:
        return False
    _sync_directory(path.parent)
    return True


def _sync_directory(directory: Path) -> None:
    if os.name == "nt":  # directories cannot be opened, and their entries are journaled
        return
    descriptor = os.open(directory, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
