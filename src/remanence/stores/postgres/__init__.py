"""The store in a PostgreSQL database."""

import asyncio
from importlib import metadata
from urllib.parse import urlsplit

import psycopg
from psycopg_pool import ConnectionPool

from remanence.clock import Clock
from remanence.stores import migrate
from remanence.stores.postgres.errors import translate_error
from remanence.stores.postgres.store import PostgresStore
from remanence.stores.rows import encode_instant

__all__ = ["PostgresStore", "open_postgres"]

_MIGRATIONS = "remanence.stores.postgres"
_LOCK = 0x72656D61  # "rema"


async def open_postgres(url: str, *, clock: Clock, size: int = 8) -> PostgresStore:
    """Open the database at *url*, and create or migrate its tables."""
    return await asyncio.to_thread(_open, url, clock, size)


def _open(url: str, clock: Clock, size: int) -> PostgresStore:
    name = f"PostgreSQL database {urlsplit(url).path.removeprefix('/')!r}"
    try:
        with psycopg.connect(url, connect_timeout=10) as connection:
            _migrate(connection, name, clock)
        pool = ConnectionPool(url, min_size=1, max_size=size, open=True, timeout=30)
    except psycopg.Error as error:
        raise translate_error(error, name) from error
    return PostgresStore(pool, name=name, clock=clock, size=size)


def _migrate(connection: psycopg.Connection, name: str, clock: Clock) -> None:
    """Bring the tables up to date; several processes that start at once wait for the first."""
    connection.execute("SELECT pg_advisory_xact_lock(%s)", (_LOCK,))
    connection.execute(
        "CREATE TABLE IF NOT EXISTS schema_migrations (number INT PRIMARY KEY, "
        "name TEXT NOT NULL, applied_at TEXT NOT NULL, version TEXT NOT NULL)"
    )
    applied = {row[0] for row in connection.execute("SELECT number FROM schema_migrations")}
    for step in migrate.due(migrate.load(_MIGRATIONS), applied, database=name):
        connection.execute(step.sql.encode())
        connection.execute(
            "INSERT INTO schema_migrations (number, name, applied_at, version) "
            "VALUES (%s, %s, %s, %s)",
            (step.number, step.name, encode_instant(clock.now()), metadata.version("remanence")),
        )
