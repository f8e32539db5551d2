"""A server that refuses: one error names database and remedy, and `remanence doctor` says the same."""

import asyncio
import contextlib
import os
import secrets
import shutil
import struct
import subprocess
import tempfile
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import ExitStack, asynccontextmanager, contextmanager
from pathlib import Path
from subprocess import CompletedProcess
from typing import LiteralString

import psycopg
import pytest
from psycopg import sql
from psycopg_pool import ConnectionPool
from tests.postgres import (
    WAIT_SECONDS,
    crash,
    new_database,
    restart,
    running_server,
    until,
    url_of,
)
from tests.slow import slow_except

from remanence import Conversation, Memory, Message, Policy, Settings
from remanence.errors import InvalidMessage, StoreUnavailable
from remanence.stores import open_store
from remanence.stores.postgres import PostgresStore
from remanence.stores.postgres.pool import max_pool_size
from remanence.testing import FixedClock

Cli = Callable[..., CompletedProcess[str]]
Doctor = Callable[[str], str]

RIGHTS = "run 'remanence migrate' as one who may, and GRANT SELECT, INSERT, UPDATE, DELETE"


@pytest.fixture(scope="module")
def database(postgres: str) -> Iterator[str]:
    """The URL of an empty database."""
    with new_database(postgres) as url:
        yield url


@pytest.fixture(scope="module")
def migrated(postgres: str) -> Iterator[str]:
    """The URL of a database with the tables of a memory."""
    with new_database(postgres) as url:
        asyncio.run(open_and_close(url))
        yield url


@pytest.fixture
def guest(database: str, migrated: str) -> Iterator[str]:
    """The name of a role without rights; others may run these tests on the same server."""
    name = f"guest_{secrets.token_hex(8)}"
    execute(database, f"CREATE ROLE {name} LOGIN")
    yield name
    for url in (database, migrated):
        execute(url, f"DROP OWNED BY {name}")
    execute(database, f"DROP ROLE {name}")


@pytest.fixture
def doctor(cli: Cli) -> Doctor:
    """Run `remanence doctor` on a URL; return what it prints in one line."""

    def run(url: str) -> str:
        result = cli("doctor", "--db", url)
        assert "Traceback" not in result.stderr
        return " ".join((result.stdout + result.stderr).split())

    return run


def execute(url: str, *statements: LiteralString) -> None:
    with psycopg.connect(url, autocommit=True) as connection:
        for statement in statements:
            connection.execute(statement)


async def open_and_close(url: str) -> None:
    await (await open_store(url)).close()


async def refused(url: str) -> str:
    """Return the error of opening a memory for writing."""
    with pytest.raises(StoreUnavailable) as caught:
        async with Memory.open(url, settings=Settings(workers=0)):
            pass
    return str(caught.value)


async def expect(url: str, doctor: Doctor, *words: str) -> None:
    """Require that opening fails with *words*, and that `doctor` prints them."""
    text = await refused(url)
    shown = await asyncio.to_thread(doctor, url)
    for word in words:
        assert word in text
        assert word in shown


@pytest.mark.parametrize(
    ("url", "words"),
    [
        ("postgresql://ana:secret@127.0.0.1:1/memory", "check that the server runs"),
        ("postgresql://ana:secret@127.0.0.1/memory?colour=red", 'parameter: "colour": write'),
        ("postgresql://ana:sec/ret@127.0.0.1/memory", "write them as %2F, %40 and %3A"),
        ("postgresql://ana:sec@ret@127.0.0.1/memory", "write them as %2F, %40 and %3A"),
        ("postgresql://ana:secret@[127.0.0.1/memory", "write 'postgresql://user:password@host"),
        ("postgresql://ana:x%zzsec@127.0.0.1/memory", 'percent-encoded token: "...": write'),
        ("postgresql://ana:x sec@127.0.0.1/memory", "use percent-encoded spaces (%20) instead"),
        ("postgresql://an/a:sec@127.0.0.1/memory", "write them as %2F, %40 and %3A"),
        ("postgresql://ana@example:sec@127.0.0.1/memory", "write them as %2F, %40 and %3A"),
        ("host=127.0.0.1 dbname=memory password=secret", "write 'postgresql://user:password@"),
        ("host=127.0.0.1 password=://secret dbname=memory", "has an unknown scheme"),
        ("password = 'it\\'s sec' host=127.0.0.1", "write 'postgresql://user:password@host"),
        ("postgresql://127.0.0.1/memory?sslpassword=sec&colour=red", 'parameter: "colour": write'),
    ],
)
async def test_a_url_that_leads_nowhere_is_named_without_its_password(
    url: str, words: str, doctor: Doctor
) -> None:
    text = await refused(url)

    assert words in text
    assert words in await asyncio.to_thread(doctor, url)
    assert "sec" not in text


async def test_a_server_without_the_tls_that_the_url_requires_is_named(doctor: Doctor) -> None:
    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readexactly(8)  # the request for TLS
        writer.write(b"N")
        await reader.read()
        writer.close()

    async with await asyncio.start_server(answer, "127.0.0.1", 0) as server:
        port = server.sockets[0].getsockname()[1]
        url = f"postgresql://ana@127.0.0.1:{port}/memory?sslmode=require"
        await expect(url, doctor, "turn on TLS at the server (ssl = on), or lower sslmode")


@pytest.mark.postgres
async def test_a_database_or_role_that_is_not_there_is_named(database: str, doctor: Doctor) -> None:
    remedy = "create it, or name another one in the URL"

    await expect(url_of(database, dbname="elsewhere"), doctor, '"elsewhere"', remedy)
    await expect(url_of(database, user="nobody"), doctor, '"nobody"', remedy)


@pytest.mark.postgres
@pytest.mark.parametrize("encoding", ["LATIN1", "SQL_ASCII"])
async def test_a_database_that_cannot_keep_all_characters_is_named(
    postgres: str, doctor: Doctor, encoding: str
) -> None:
    name = sql.Identifier(f"test_{secrets.token_hex(8)}")
    create = "CREATE DATABASE {} ENCODING {} LOCALE 'C' TEMPLATE template0"
    with psycopg.connect(postgres, autocommit=True) as connection:
        connection.execute(sql.SQL(create).format(name, encoding))
        try:
            words = f"has the encoding {encoding}", "with ENCODING 'UTF8' TEMPLATE template0"
            await expect(url_of(postgres, dbname=name.as_string()[1:-1]), doctor, *words)
        finally:
            connection.execute(sql.SQL("DROP DATABASE {} WITH (FORCE)").format(name))


@pytest.mark.postgres
async def test_a_schema_that_is_not_there_is_named(database: str) -> None:
    text = await refused(url_of(database, options="-csearch_path%3Delsewhere"))

    assert "create the schema, or name another one in search_path" in text


@pytest.mark.postgres
async def test_a_role_that_may_not_enter_or_create_tables_learns_of_its_rights(
    database: str, guest: str, doctor: Doctor
) -> None:
    url = url_of(database, user=guest)
    assert RIGHTS in await refused(url)

    name = sql.Identifier(str(psycopg.conninfo.conninfo_to_dict(database)["dbname"]))
    with psycopg.connect(database, autocommit=True) as connection:
        connection.execute(sql.SQL("REVOKE CONNECT ON DATABASE {} FROM PUBLIC").format(name))
        await expect(url, doctor, "let the user in: GRANT CONNECT ON DATABASE")
        connection.execute(sql.SQL("GRANT CONNECT ON DATABASE {} TO PUBLIC").format(name))
    execute(database, f"ALTER ROLE {guest} NOLOGIN")
    await expect(url, doctor, "let the role log in: ALTER ROLE ... LOGIN")


@pytest.mark.postgres
async def test_a_replica_is_named_and_reads(doctor: Doctor) -> None:
    with running_server(own=True) as server:
        async with Memory.open(server, settings=Settings(workers=0)) as memory:
            chat = memory.conversation("a")
            await chat.append(Message.user("Hello."))
            with psycopg.connect(server) as connection:
                row = connection.execute("SELECT current_setting('data_directory')").fetchone()
            assert row is not None
            await asyncio.to_thread(Path(*row, "standby.signal").touch)
            await asyncio.to_thread(crash, server, kill=False)
            await asyncio.to_thread(restart, server)
            with pytest.raises(StoreUnavailable, match="name the primary") as caught:
                await chat.append(Message.user("Hello again."))
            (reason,) = await memory.unready()
            read = [message.text for message in await chat.messages()]
            shown = await asyncio.to_thread(doctor, server)

    assert caught.value.public == "the database is read-only: try again later"
    assert reason.code == "store"
    assert read == ["Hello."]
    assert "the server is a replica: name the primary" in shown
    assert "warning: the database" in shown
    assert "error: " not in shown


@pytest.mark.postgres
async def test_a_database_that_its_operator_made_read_only_is_not_written(
    postgres: str, cli: Cli
) -> None:
    with new_database(postgres) as url:
        name = sql.Identifier(str(psycopg.conninfo.conninfo_to_dict(url)["dbname"]))
        read_only = sql.SQL("ALTER DATABASE {} SET default_transaction_read_only = on").format(name)
        async with Memory.open(url, settings=Settings(workers=0)) as memory:
            await memory.conversation("a", user="ana").append(Message.user("Hello."))
            with psycopg.connect(url) as connection:
                connection.execute(read_only)
                connection.execute(
                    "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
                    "WHERE datname = current_database() AND pid != pg_backend_pid()"
                )
            with pytest.raises(StoreUnavailable, match="reset default_transaction_read_only"):
                await memory.conversation("a", user="ana").append(Message.user("Hello again."))
            with pytest.raises(StoreUnavailable, match="reset default_transaction_read_only"):
                await memory.forget_user("ana")
            (reason,) = await memory.unready()
        refusal = await refused(url)
        shown = await asyncio.to_thread(cli, "doctor", "--db", url)
        async with Memory.open(url, read_only=True) as memory:
            messages = await memory.conversation("a", user="ana").messages()

    assert "the database is read-only" in reason.detail
    assert "reset default_transaction_read_only" in refusal
    assert "nothing can be written" in shown.stdout
    assert (shown.returncode, shown.stderr) == (0, "")
    assert [message.text for message in messages] == ["Hello."]


@pytest.mark.postgres
async def test_a_role_needs_the_rights_to_rows_and_sequences_alone(
    migrated: str, guest: str, doctor: Doctor, caplog: pytest.LogCaptureFixture
) -> None:
    url = url_of(migrated, user=guest)
    await expect(url, doctor, RIGHTS)
    execute(migrated, f"GRANT SELECT ON ALL TABLES IN SCHEMA public TO {guest}")
    async with Memory.open(url, settings=Settings(workers=0)) as memory:
        with pytest.raises(StoreUnavailable, match=RIGHTS):
            await memory.conversation("a").append(Message.user("Hello."))
    shown = await asyncio.to_thread(doctor, url)
    assert "error: the database what: nothing can be written: permission denied for tab" in shown
    assert RIGHTS in shown

    execute(migrated, f"GRANT INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA public TO {guest}")
    async with Memory.open(url, settings=Settings(workers=0)) as memory:
        with pytest.raises(StoreUnavailable, match=f"procrastinate_jobs_id_seq: .*{RIGHTS}"):
            await memory.conversation("a").append(Message.user("Hello. " * 10_000))
    shown = await asyncio.to_thread(doctor, url)
    assert "error: the database what: nothing can be written: permission denied for seq" in shown

    execute(
        migrated,
        f"GRANT USAGE ON ALL SEQUENCES IN SCHEMA public TO {guest}",
    )
    async with Memory.open(url) as memory:
        await memory.conversation("a").append(Message.user("Hello."))
        await memory.conversation("a").end()
        await memory.conversation("a").delete()
        problems = await memory.check()

    assert [(problem.level, problem.what) for problem in problems] == [
        (
            "info",
            "text that this role erases stays in the tables' files until autovacuum gets to them",
        )
    ]
    assert caplog.text.count("the role may not vacuum the tables") == 1


@pytest.mark.postgres
async def test_a_role_that_may_maintain_the_tables_vacuums_them(
    migrated: str, guest: str, caplog: pytest.LogCaptureFixture
) -> None:
    execute(migrated, f"GRANT ALL ON ALL TABLES IN SCHEMA public TO {guest}")
    execute(migrated, f"GRANT USAGE ON ALL SEQUENCES IN SCHEMA public TO {guest}")
    with psycopg.connect(migrated) as connection:
        if connection.info.server_version < 170_000:
            pytest.skip("PostgreSQL 17 has the right to maintain tables")
    async with Memory.open(url_of(migrated, user=guest)) as memory:
        await memory.conversation("a").append(Message.user("Hello."))
        await memory.conversation("a").delete()
        problems = await memory.check()

    assert problems == ()
    assert "vacuum" not in caplog.text


@pytest.mark.postgres
async def test_a_language_that_the_database_lacks_is_named(postgres: str) -> None:
    with new_database(postgres) as url:
        execute(url, "DROP EXTENSION plpgsql CASCADE")
        text = await refused(url)

    assert 'language "plpgsql" does not exist' in text
    assert "have an administrator install it: CREATE EXTENSION" in text


def take_all_connections(stack: ExitStack, url: str) -> None:
    with contextlib.suppress(psycopg.OperationalError):
        while True:
            stack.enter_context(psycopg.connect(url))


@pytest.mark.postgres
async def test_a_limit_of_connections_is_named(
    database: str, migrated: str, guest: str, doctor: Doctor
) -> None:
    execute(migrated, f"ALTER ROLE {guest} CONNECTION LIMIT 1")
    url = url_of(migrated, user=guest)
    with psycopg.connect(url):
        await expect(url, doctor, "too many connections for role", "open fewer memories, or raise")
    execute(migrated, f"ALTER ROLE {guest} CONNECTION LIMIT -1")

    with ExitStack() as stack:
        take_all_connections(stack, url)
        await expect(
            url, doctor, "connection slots", "open fewer memories, or raise max_connections"
        )


@pytest.mark.postgres
async def test_an_outage_is_logged_at_its_beginning_and_end(
    migrated: str, guest: str, caplog: pytest.LogCaptureFixture
) -> None:
    execute(migrated, f"GRANT SELECT ON ALL TABLES IN SCHEMA public TO {guest}")
    url = url_of(migrated, user=guest)
    terminate = f"SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = '{guest}'"
    async with Memory.open(url, read_only=True) as memory:
        execute(migrated, f"ALTER ROLE {guest} NOLOGIN")
        async with asyncio.timeout(WAIT_SECONDS):
            while not await memory.unready():  # a connection may have been opening
                execute(migrated, terminate)
        with pytest.raises(StoreUnavailable, match="let the role log in"):
            await memory.conversations()
        execute(migrated, f"ALTER ROLE {guest} LOGIN")
        async with asyncio.timeout(WAIT_SECONDS):
            while await memory.unready():
                pass

    logger = "remanence.stores.postgres.pool"
    begun, *_, ended = [each.getMessage() for each in caplog.records if each.name == logger]
    assert "cannot be reached: " in begun
    assert "is not permitted to log in" in begun
    assert "is reached again" in ended


class UsedOnce(ConnectionPool):
    """A pool that does not get its connections back."""

    used: psycopg.Connection

    def putconn(self, conn: psycopg.Connection) -> None:
        self.used = conn


@pytest.mark.postgres
async def test_a_check_that_gets_no_connection_names_the_limit(migrated: str) -> None:
    pool = UsedOnce(migrated, min_size=1, max_size=1, timeout=0.1, open=True)
    pool.wait(30)
    store = PostgresStore(pool, name="'memory'", clock=FixedClock())
    try:
        with pytest.raises(StoreUnavailable, match=r"after 0\.10 sec: .*max_connections"):
            await store.check()
    finally:
        pool.used.close()
        await store.close()


@pytest.mark.postgres
async def test_a_memory_does_with_fewer_connections_than_it_asks_for(
    migrated: str, guest: str
) -> None:
    execute(
        migrated,
        f"GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA public TO {guest}",
        f"GRANT USAGE ON ALL SEQUENCES IN SCHEMA public TO {guest}",
        f"ALTER ROLE {guest} CONNECTION LIMIT 2",
    )
    settings = Settings(workers=0)
    async with Memory.open(url_of(migrated, user=guest), settings=settings) as memory:
        chats = [memory.conversation(f"limited {number}") for number in range(20)]
        async with asyncio.TaskGroup() as group:
            for chat in chats:
                group.create_task(chat.append(Message.user("Hello.")))
        appended = [len(await chat.messages()) for chat in chats]
        for chat in chats:
            await chat.delete()

    assert appended == [1] * 20


@pytest.mark.postgres
@pytest.mark.parametrize("limit", slow_except([3, 8], [3]))
async def test_a_worker_gets_connections_beside_a_busy_memory_with_few(
    migrated: str, guest: str, limit: int
) -> None:
    execute(
        migrated,
        f"GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA public TO {guest}",
        f"GRANT USAGE ON ALL SEQUENCES IN SCHEMA public TO {guest}",
        f"ALTER ROLE {guest} CONNECTION LIMIT {limit}",
    )
    url, settings = url_of(migrated, user=guest), Settings(engine="procrastinate")
    policy = Policy(observe_tokens=200, tail_tokens=400, tail_keep_tokens=100, keep_last=2)

    async def talk(chat: Conversation) -> None:
        await chat.append(*(Message.user("My train leaves at 9. " * 20) for _ in range(20)))
        while not (await chat.state()).observed_seq:  # noqa: ASYNC110 - other processes may do it
            await asyncio.sleep(0.01)

    async with Memory.open(url, policy=policy, settings=settings) as memory:
        chats = [memory.conversation(f"few {limit} {number}") for number in range(8)]
        async with asyncio.timeout(WAIT_SECONDS), asyncio.TaskGroup() as group:
            for chat in chats:
                group.create_task(talk(chat))
        for chat in chats:
            await chat.delete()


@pytest.mark.postgres
def test_connections_that_a_server_reserves_are_not_for_a_pool() -> None:
    with running_server(own=True) as server:
        execute(
            server,
            "ALTER SYSTEM SET max_connections = 14",
            "ALTER SYSTEM SET superuser_reserved_connections = 6",
        )
        crash(server, kill=False)
        restart(server)
        with psycopg.connect(server) as connection:
            assert max_pool_size(connection) == 3  # five of the other eight are for a worker


@pytest.mark.postgres
async def test_a_worker_that_gets_no_connection_for_jobs_closes_whole(
    migrated: str, guest: str, caplog: pytest.LogCaptureFixture
) -> None:
    execute(
        migrated,
        f"GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA public TO {guest}",
        f"ALTER ROLE {guest} CONNECTION LIMIT 1",
    )
    settings = Settings(engine="procrastinate")
    async with Memory.open(url_of(migrated, user=guest), settings=settings):
        await until(lambda: "too many connections for role" in caplog.text)

    # A fixture fails the test if a task is left.


@contextmanager
def full_disk(url: str, table: str) -> Iterator[None]:
    """Keep a table on a disk that is full: its file, or its map for VACUUM, is `/dev/full`."""
    with psycopg.connect(url) as connection:
        row = connection.execute(
            "SELECT current_setting('data_directory'), pg_relation_filepath(%s)", (table,)
        ).fetchone()
    assert row is not None
    file = Path(*row)
    if not file.is_file():
        pytest.skip("the files of the server are out of reach")
    if file.stat().st_size:
        file = file.with_name(f"{file.name}_vm")
        assert not file.exists()
    kept = file.with_name(f"{file.name}.kept")
    if file.exists():
        file.rename(kept)
    file.symlink_to("/dev/full")
    try:
        yield
    finally:
        file.unlink()
        if kept.exists():
            kept.rename(file)


def toast_table(url: str) -> str:
    """Return the name of the table of long messages."""
    with psycopg.connect(url) as connection:
        row = connection.execute(
            "SELECT reltoastrelid::regclass::text FROM pg_class WHERE relname = 'messages'"
        ).fetchone()
    assert row is not None
    return str(row[0])


@pytest.mark.postgres
async def test_a_full_disk_is_named_and_nothing_is_written(postgres: str, doctor: Doctor) -> None:
    with new_database(postgres) as url:
        await open_and_close(url)
        async with Memory.open(url, settings=Settings(workers=0)) as memory:
            chat = memory.conversation("a")
            await chat.append(Message.user("Hello."))
            with full_disk(url, toast_table(url)):
                with pytest.raises(StoreUnavailable) as caught:
                    await chat.append(Message.user(secrets.token_hex(20_000)))
                shown = await asyncio.to_thread(doctor, url)
        async with Memory.open(url, settings=Settings(workers=0)) as memory:
            chat = memory.conversation("a")
            left = [message.text for message in await chat.messages()]
            await chat.append(Message.user(secrets.token_hex(20_000)))

    for text in (str(caught.value), shown):
        assert "No space left on device" in text
        assert "free space on the server and try again" in text
    assert left == ["Hello."]


@pytest.mark.postgres
async def test_an_erasure_returns_its_receipt_if_the_server_cannot_vacuum(
    postgres: str, caplog: pytest.LogCaptureFixture
) -> None:
    with new_database(postgres) as url:
        async with Memory.open(url, settings=Settings(workers=0)) as memory:
            chat = memory.conversation("a", user="ana")
            for _ in range(20):
                await chat.append(Message.user("I live in Lisbon. " * 50))
            with full_disk(url, "messages"):
                receipt = await memory.forget_user("ana")
            left = await memory.conversation("a", user="ana").messages()

    assert receipt.erased
    assert len(receipt.messages) == 20
    assert left == ()
    assert "VACUUM failed, so erased text stays in the tables' files" in caplog.text
    assert "free space on the server" in caplog.text


@asynccontextmanager
async def old_server() -> AsyncIterator[int]:
    """Yield the port of a server that lets everyone in, and says that it is PostgreSQL 14."""
    hello = b"".join(
        kind + struct.pack("!i", len(body) + 4) + body
        for kind, body in [
            (b"R", struct.pack("!i", 0)),
            (b"S", b"server_version\x0014.9\x00"),
            (b"S", b"client_encoding\x00UTF8\x00"),
            (b"K", struct.pack("!ii", 1, 1)),
            (b"Z", b"I"),
        ]
    )

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while (length := struct.unpack("!i", await reader.readexactly(4))[0]) == 8:
            await reader.readexactly(4)
            writer.write(b"N")  # no TLS
        await reader.readexactly(length - 4)
        writer.write(hello)
        await reader.read()
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    async with server:
        yield server.sockets[0].getsockname()[1]


@pytest.mark.postgres
async def test_a_name_that_is_too_long_for_an_index_is_not_taken_for_an_outage(
    migrated: str,
) -> None:
    name = secrets.token_hex(5_000)
    async with Memory.open(migrated, settings=Settings(workers=0)) as memory:
        for chat in (memory.conversation(name), memory.conversation("chat", user=name)):
            with pytest.raises(InvalidMessage, match="use at most 2,000 bytes"):
                await chat.append(Message.user("Hello."))
        with pytest.raises(InvalidMessage, match="use at most 2,000 bytes"):
            await memory.conversation("chat").append(Message.user("Hello.", id=name))

        assert await memory.conversations() == ()


async def test_a_server_whose_disk_is_too_full_for_a_session_is_named(doctor: Doctor) -> None:
    async def refuse(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while (length := struct.unpack("!i", await reader.readexactly(4))[0]) == 8:
            await reader.readexactly(4)
            writer.write(b"N")  # no TLS
        await reader.readexactly(length - 4)
        body = b"SFATAL\0C53100\0Mcould not write init file\0\0"
        writer.write(b"E" + struct.pack("!i", len(body) + 4) + body)
        writer.close()

    async with await asyncio.start_server(refuse, "127.0.0.1", 0) as server:
        url = f"postgresql://ana@127.0.0.1:{server.sockets[0].getsockname()[1]}/memory"
        await expect(url, doctor, "could not write init file", "free space on the server")


async def test_an_old_server_is_named_with_its_version(doctor: Doctor) -> None:
    async with old_server() as port:
        await expect(
            f"postgresql://ana@127.0.0.1:{port}/memory",
            doctor,
            "'memory': the server is PostgreSQL 14.9: upgrade it to 15 or newer",
        )


@contextmanager
def pooler(url: str, mode: str) -> Iterator[str]:
    """Yield the URL of pgbouncer before a database."""
    program = shutil.which("pgbouncer", path=f"{os.environ['PATH']}:/usr/sbin")
    if program is None:
        pytest.skip("needs pgbouncer: apt-get install pgbouncer")
    parts = psycopg.conninfo.conninfo_to_dict(url)
    folder = Path(tempfile.mkdtemp(prefix="pg"))  # a short path
    folder.chmod(0o777)
    (folder / "users.txt").write_text(f'"{parts["user"]}" ""\n')
    (folder / "pgbouncer.ini").write_text(
        f"[databases]\n* = host={parts['host']} port={parts.get('port') or 5432}\n[pgbouncer]\n"
        f"listen_addr =\nlisten_port = 6432\nunix_socket_dir = {folder}\nauth_type = trust\n"
        f"auth_file = {folder}/users.txt\npool_mode = {mode}\n"
        "ignore_startup_parameters = extra_float_digits\n"
    )
    socket = Path(str(parts["host"]))
    owner = socket.owner() if socket.is_dir() else "nobody"
    user = [f"--user={owner}"] if os.geteuid() == 0 else []
    with subprocess.Popen(
        [program, "--quiet", *user, folder / "pgbouncer.ini"], stderr=subprocess.DEVNULL
    ) as process:
        try:
            wait_for(folder / ".s.PGSQL.6432", process)
            yield url_of(url, host=str(folder), port="6432")
        finally:
            process.kill()
            shutil.rmtree(folder)


def wait_for(socket: Path, process: subprocess.Popen[bytes]) -> None:
    deadline = time.monotonic() + WAIT_SECONDS
    while not socket.exists():
        assert process.poll() is None, "pgbouncer does not run"
        assert time.monotonic() < deadline, "pgbouncer does not listen"
        time.sleep(0.01)


@pytest.mark.postgres
async def test_a_pooler_in_transaction_mode_is_named(migrated: str, doctor: Doctor) -> None:
    with pooler(migrated, "transaction") as url:
        await expect(url, doctor, "is behind a pooler in transaction mode")


@pytest.mark.postgres
async def test_a_pooler_in_session_mode_serves_a_memory(migrated: str) -> None:
    with pooler(migrated, "session") as url:
        async with Memory.open(url, settings=Settings(workers=0)) as memory:
            chat = memory.conversation("pooled")
            for number in range(10):
                await chat.append(Message.user(f"text {number}"))
            texts = [message.text for message in await chat.messages()]

    assert texts == [f"text {number}" for number in range(10)]
