"""The store in one SQLite file, or in memory."""

from remanence.stores.sqlite.connection import MEMORY, Database
from remanence.stores.sqlite.store import SQLiteStore

__all__ = ["MEMORY", "Database", "SQLiteStore"]
