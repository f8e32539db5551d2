"""Copies of a database in use, by SQLite's own backup."""

import os
from pathlib import Path

import apsw

from remanence.errors import StoreUnavailable
from remanence.files import move, remove
from remanence.stores.sqlite.connection import create_private
from remanence.stores.sqlite.fts import Connection


def back_up(connection: Connection, path: str) -> None:
    """Copy the database of a connection, as of now, to a new file that only its owner can read."""
    path = str(Path(path).expanduser().absolute())
    if Path(path).exists():
        raise StoreUnavailable(f"{path!r} exists: name a new file for the copy, or remove it")
    if not Path(path).parent.is_dir():
        raise StoreUnavailable(f"there is no directory for {path!r}: create it first")
    unfinished = f"{path}.{os.getpid()}.unfinished"
    try:
        create_private(unfinished)
        target = apsw.Connection(unfinished)
        try:
            with target.backup("main", connection, "main") as backup:
                backup.step()
        finally:
            target.close()
        move(Path(unfinished), Path(path))
    finally:
        remove(Path(unfinished))
