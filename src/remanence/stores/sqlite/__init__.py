"""The store in one SQLite file, or in memory."""

from collections.abc import Mapping

from remanence.clock import Clock
from remanence.stores.sqlite.connection import MEMORY, Database, Durability
from remanence.stores.sqlite.store import SQLiteStore

__all__ = ["Durability", "SQLiteStore", "open_sqlite"]


async def open_sqlite(
    path: str,
    *,
    clock: Clock,
    durability: Durability,
    pragmas: Mapping[str, str | int],
    read_only: bool = False,
) -> SQLiteStore:
    """Open the database file *path*, or one in memory for `:memory:`."""
    database = Database.at(path, durability, pragmas, read_only=read_only and path != MEMORY)
    store = SQLiteStore(database, clock=clock)
    await store.open()
    return store
