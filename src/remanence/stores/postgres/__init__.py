"""The store in a PostgreSQL database."""

import importlib

import psycopg

from remanence.clock import Clock, SystemClock
from remanence.errors import NotADatabase, StoreUnavailable
from remanence.stores import migrate
from remanence.stores.postgres.errors import translate_error
from remanence.stores.postgres.pgvector import use_if_cheap
from remanence.stores.postgres.pool import Pool, max_pool_size
from remanence.stores.postgres.server import begin, database_name, require_server
from remanence.stores.postgres.store import PostgresStore
from remanence.stores.postgres_url import connection_string
from remanence.stores.rows import encode_instant

__all__ = ["PostgresStore", "open_postgres"]

_MIGRATIONS = "remanence.stores.postgres"
_LOCK = 0x72656D61  # "rema"


def open_postgres(url: str, *, clock: Clock, read_only: bool) -> PostgresStore:
    """Open the database at *url*, and create or migrate its tables unless it is *read_only*."""
    name = database_name(url)
    try:
        with psycopg.connect(connection_string(url), connect_timeout=10) as connection:
            connection.isolation_level = (
                psycopg.IsolationLevel.READ_COMMITTED
            )  # sees others' tables
            require_server(connection, url, name)
            if read_only:
                _require_newest(connection, name)
            else:
                if isinstance(clock, SystemClock):
                    begin(connection, clock)
                _migrate(connection, name, clock)
                use_if_cheap(connection)
            max_size = max_pool_size(connection)
        pool = Pool(url, max_size=max_size)
    except psycopg.Error as error:
        raise translate_error(error, name) from error
    return PostgresStore(pool, name=name, clock=clock, read_only=read_only)


def _require_newest(connection: psycopg.Connection, name: str) -> None:
    if not _has_table(connection, "schema_migrations"):
        raise NotADatabase(f"{name} has no remanence tables: run 'remanence migrate' on it")
    if _due(connection, name):
        raise StoreUnavailable(
            f"{name} has tables of an earlier version: run 'remanence migrate' on it"
        )


def _has_table(connection: psycopg.Connection, name: str) -> bool:
    found = connection.execute("SELECT to_regclass(%s) IS NOT NULL", (name,)).fetchone()
    return found == (True,)


def _due(connection: psycopg.Connection, name: str) -> tuple[migrate.Migration, ...]:
    applied = {row[0] for row in connection.execute("SELECT number FROM schema_migrations")}
    return migrate.due(migrate.load(_MIGRATIONS), applied, database=name)


def _migrate(connection: psycopg.Connection, name: str, clock: Clock) -> None:
    """Apply pending migrations; processes that start at the same time wait for the first one."""
    connection.execute("SET LOCAL statement_timeout = 0")
    connection.execute("SELECT pg_advisory_xact_lock(%s)", (_LOCK,))
    if not _has_table(connection, "schema_migrations"):
        connection.execute(
            "CREATE TABLE schema_migrations (number INT PRIMARY KEY, "
            "name TEXT NOT NULL, applied_at TEXT NOT NULL, version TEXT NOT NULL)"
        )
    for step in _due(connection, name):
        if step.name == "jobs":
            _create_job_tables(connection)
        connection.execute(step.sql.encode())
        connection.execute(
            "INSERT INTO schema_migrations (number, name, applied_at, version) "
            "VALUES (%s, %s, %s, %s)",
            (step.number, step.name, encode_instant(clock.now()), migrate.installed_version()),
        )


def _create_job_tables(connection: psycopg.Connection) -> None:
    """Create procrastinate's tables, unless an application already has them in this schema."""
    if not _has_table(connection, "procrastinate_jobs"):
        # Imported on demand: it takes half a second.
        schema = importlib.import_module("procrastinate.schema")
        connection.execute(schema.SchemaManager.get_schema())
