"""The contract of stores on PostgreSQL, and what only a server does: cut, cancel and wait."""

import asyncio
import tempfile
import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from pathlib import Path

import psycopg
import pytest
from tests.postgres import empty, until

from remanence.errors import InvalidMessage, StoreError, StoreUnavailable
from remanence.protocols import Store
from remanence.stores import open_store
from remanence.stores.sql.connection import Connection
from remanence.stores.sql.store import SQLStore, write_method
from remanence.testing.store_contract import OpenStore, StoreContract
from remanence.testing.store_contract.samples import expect_state, observation, tape
from remanence.types import ConversationRef, Message

pytestmark = pytest.mark.postgres


class TestPostgres(StoreContract):
    @pytest.fixture
    def open_again(self, database: str) -> OpenStore:
        empty(database)

        async def open_handle() -> Store:
            return await open_store(database)

        return open_handle


REF = ConversationRef("default", "chat")


def hello(text: str = "Hello.") -> Message:
    return Message.user(text).replace(tokens=10)


def waiting(server: psycopg.Connection) -> int:
    """Return how many locks are waited for; pg_stat_activity is frozen in a transaction."""
    row = server.execute("SELECT count(*) FROM pg_locks WHERE NOT granted").fetchone()
    return row[0] if row else 0


@asynccontextmanager
async def losing_the_answer_to_a_commit(database: str) -> AsyncIterator[tuple[str, list[bool]]]:
    """Yield the URL of a proxy, and a list: each item cuts a connection after its next commit."""
    parts = psycopg.conninfo.conninfo_to_dict(database)
    target = f"{parts['host']}/.s.PGSQL.{parts.get('port') or 5432}"
    cuts: list[bool] = []
    relays: set[asyncio.Task[None]] = set()

    async def relay(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        relays.add(task)
        from_server, to_server = await asyncio.open_unix_connection(target)

        async def answer() -> None:
            while data := await from_server.read(65_536):
                if is_cut:
                    break
                writer.write(data)
            writer.close()

        is_cut = False
        answering = asyncio.create_task(answer())
        while data := await reader.read(65_536):
            is_cut = b"COMMIT" in data and bool(cuts) and cuts.pop()
            to_server.write(data)
        to_server.close()
        await answering
        await to_server.wait_closed()
        await writer.wait_closed()

    with tempfile.TemporaryDirectory(prefix="pg") as folder:
        proxy = await asyncio.start_unix_server(relay, Path(folder) / ".s.PGSQL.5432")
        async with proxy:
            user = f"user={parts['user']}&password={parts.get('password') or ''}"
            yield f"postgresql:///{parts['dbname']}?host={folder}&port=5432&{user}", cuts
            await asyncio.wait(relays)


async def test_an_append_whose_commit_got_no_answer_is_written_once(database: str) -> None:
    empty(database)
    async with losing_the_answer_to_a_commit(database) as (url, cuts):
        store = await open_store(url)
        await store.append(REF, [hello("one")], user=None)
        cuts.append(True)
        appended = await store.append(REF, [hello("two")], user=None)
        stored = await store.messages(REF, after=0, limit=None)
        await store.close()

    assert cuts == []
    assert [message.text for message in stored] == ["one", "two"]
    assert appended.messages == stored[1:]


async def test_a_server_that_cuts_all_connections_is_used_again(
    store: Store, server: psycopg.Connection
) -> None:
    await store.append(REF, [hello()], user=None)
    with server.transaction():
        server.execute("LOCK TABLE messages IN ACCESS EXCLUSIVE MODE")
        reads = [asyncio.create_task(store.messages(REF, after=0, limit=None)) for _ in range(8)]
        await until(lambda: waiting(server) == 8)
    await asyncio.wait(reads)
    server.execute(
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
        "WHERE datname = current_database() AND pid != pg_backend_pid()"
    )

    appended = await store.append(REF, [hello()], user=None)

    assert appended.state.last_seq == 2


async def test_a_process_that_stops_in_a_transaction_holds_up_others_for_a_while_only(
    store: Store, server: psycopg.Connection, database: str
) -> None:
    await store.append(REF, [hello()], user=None)
    goes_on = threading.Event()

    def hold(connection: Connection) -> bool:
        connection.lock(REF)
        return goes_on.wait()

    assert isinstance(store, SQLStore)
    stopped = asyncio.create_task(write_method(hold)(store))
    idle = "SELECT 1 FROM pg_stat_activity WHERE state = 'idle in transaction'"
    await until(lambda: bool(server.execute(idle).fetchall()))
    other = await open_store(database)
    appended = await other.append(REF, [hello()], user=None)
    await other.close()
    goes_on.set()

    assert await stopped
    assert appended.state.last_seq == 2


async def test_an_append_is_whole_after_a_scrub_that_was_cancelled(
    store: Store, server: psycopg.Connection
) -> None:
    await store.append(REF, [hello()], user=None)
    with server.transaction():
        server.execute("LOCK TABLE messages IN ACCESS EXCLUSIVE MODE")
        scrub = asyncio.create_task(store.scrub())
        await until(lambda: waiting(server) == 1)
        server.execute("SELECT pg_cancel_backend(pid) FROM pg_locks WHERE NOT granted")
        with pytest.raises(StoreUnavailable):
            await scrub

    with pytest.raises(InvalidMessage):
        await store.append(REF, [hello("half"), Message.tool("none", "x")], user=None)

    assert len(await store.messages(REF, after=0, limit=None)) == 1


async def test_a_look_that_is_planned_during_an_append_is_kept(
    store: Store, server: psycopg.Connection
) -> None:
    state = (await store.append(REF, [hello()], user=None)).state
    assert await store.rest(state, at=None, tokens=10_000)
    look_at = datetime(2027, 1, 4, tzinfo=UTC)
    with server.transaction():
        server.execute("LOCK TABLE messages IN SHARE MODE")
        append = asyncio.create_task(store.append(REF, [hello()], user=None))
        await until(lambda: waiting(server) == 1)
        rest = asyncio.create_task(store.rest(state, at=look_at, tokens=10_000))
        await until(lambda: rest.done() or waiting(server) == 2)
    await append
    was_planned = await rest

    after = await store.state(REF)
    assert after is not None
    assert (was_planned, after.look_at) in [(True, look_at), (False, None)]


async def index_next(store: Store) -> int | None:
    """Store the vectors of the next task; return the key that it ends at."""
    task = await store.next_vector_task("one")
    if task is None:
        return None
    await store.save_vectors(task, [[1.0]] * len(task.items))
    return task.cursor


async def test_a_segment_that_commits_after_later_ones_gets_its_vectors(
    store: Store, server: psycopg.Connection
) -> None:
    state = expect_state(await store.commit_observation(await tape(store, 2), observation(1, 1)))
    first = await index_next(store)
    with server.transaction():
        server.execute(
            "INSERT INTO segments (conversation, id, generation, first_seq, last_seq, text, notes, "
            "tokens, source_tokens, sum_tokens, lost, made_by, created_at, version, superseded) "
            "SELECT conversation, 'late', 0, 1, 1, text, notes, 0, 0, 0, '[]', '', created_at, 1, 1 "
            "FROM segments"
        )
        await store.commit_observation(state, observation(2, 2))
        indexing = asyncio.create_task(index_next(store))
        await until(lambda: indexing.done() or waiting(server) == 1)
    keys = [first, await indexing, await index_next(store), await index_next(store)]

    assert keys == [1, 2, 3, None]


async def test_a_name_that_is_not_unicode_is_refused(store: Store) -> None:
    with pytest.raises(StoreError, match="not Unicode"):
        await store.append(ConversationRef("default", "\ud800"), [hello()], user=None)


async def test_a_store_for_reading_reads_and_refuses_to_write(store: Store, database: str) -> None:
    appended = await store.append(REF, [hello()], user=None)
    reading = await open_store(database, read_only=True)
    try:
        assert await reading.messages(REF, after=0, limit=None) == appended.messages
        with pytest.raises(StoreUnavailable, match="open for reading only"):
            await reading.append(REF, [hello("Again.")], user=None)
        with pytest.raises(StoreUnavailable, match="open for reading only"):
            await reading.scrub()
    finally:
        await reading.close()

    assert await store.messages(REF, after=0, limit=None) == appended.messages


async def test_reading_creates_no_tables(store: Store, database: str) -> None:
    assert store is not None
    with psycopg.connect(database, autocommit=True) as connection:
        connection.execute("CREATE SCHEMA elsewhere")
    try:
        with pytest.raises(StoreUnavailable, match="run 'remanence migrate'"):
            await open_store(f"{database}&options=-csearch_path%3Delsewhere", read_only=True)
        with psycopg.connect(database) as connection:
            found = connection.execute(
                "SELECT 1 FROM pg_tables WHERE schemaname = 'elsewhere'"
            ).fetchall()
    finally:
        with psycopg.connect(database, autocommit=True) as connection:
            connection.execute("DROP SCHEMA elsewhere CASCADE")

    assert found == []
