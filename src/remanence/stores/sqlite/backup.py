"""Backup of a database in use, with SQLite's backup API."""

import contextlib
import secrets
import time
from pathlib import Path

import apsw

from remanence.errors import StoreError, StoreUnavailable
from remanence.files import link, remove
from remanence.stores.sql.consistency import COPY
from remanence.stores.sqlite.connection import create_private, require_text_path
from remanence.stores.sqlite.errors import translate_error
from remanence.stores.sqlite.fts import Connection

_STALE_SECONDS = 3_600.0
"""A copy that nothing has written to for so long was left by a backup that was killed."""


def back_up(connection: Connection, path: str) -> None:
    """Copy a connection's database to a new file that only its owner can read.

    Raises:
        apsw.CorruptError, StoreError: the database, and so the copy, is damaged.
    """
    path = str(Path(path).expanduser().absolute())
    require_text_path(path)
    taken = StoreUnavailable(f"{path!r} already exists: name a new file for the copy, or remove it")
    if Path(path).exists():
        raise taken
    if not Path(path).parent.is_dir():
        raise StoreUnavailable(f"the directory of {path!r} does not exist: create it first")
    _remove_stale(Path(path).parent)
    unfinished = f"{path}.{secrets.token_hex(4)}.unfinished"
    try:
        create_private(unfinished)
        target = apsw.Connection(unfinished)
        try:
            with target.backup("main", connection, "main") as backup:
                backup.step()
            _check(target)
        finally:
            target.close()
        link(Path(unfinished), Path(path))
    except FileExistsError as error:  # another backup was faster
        raise taken from error
    except (apsw.CantOpenError, apsw.FullError, apsw.ReadOnlyError) as error:
        raise translate_error(error, path) from error  # the source is only read
    finally:
        for name in (unfinished, f"{unfinished}-journal"):  # SQLite leaves one on a full disk
            remove(Path(name))


def _check(copy: apsw.Connection) -> None:
    """Raise an error for a damaged copy, which might replace a good one."""
    answer: str = copy.execute("PRAGMA quick_check(1)").get
    if "FTS5" in answer:
        raise StoreError(f"the text index is damaged ({answer}): {COPY}")
    if answer != "ok":
        raise apsw.CorruptError(" ".join(answer.split()))


def _remove_stale(directory: Path) -> None:
    """Delete copies that killed backups left, with their journals."""
    for file in directory.glob(f"*.{'[0-9a-f]' * 8}.unfinished*"):
        with contextlib.suppress(OSError):  # another backup was faster, or it is another user's
            if time.time() - file.stat().st_mtime > _STALE_SECONDS:
                remove(file)
