"""The store in one SQLite file, or in memory."""

from remanence.stores.sqlite.connection import Database
from remanence.stores.sqlite.store import SQLiteStore

__all__ = ["Database", "SQLiteStore"]
