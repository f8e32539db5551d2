"""The contract of stores on PostgreSQL, and what only a server does: cut, cancel and wait."""

import asyncio
import threading
from collections.abc import Awaitable, Callable, Sequence
from datetime import UTC, datetime, timedelta
from typing import LiteralString

import psycopg
import pytest
from tests.postgres import empty, losing_commits, new_database, until, url_of

from remanence.clock import SystemClock
from remanence.errors import InvalidMessage, NotADatabase, StoreError, StoreUnavailable
from remanence.protocols import Store
from remanence.stores import open_store
from remanence.stores.postgres.connection import Connection as PostgresConnection, Cursor
from remanence.stores.postgres.pool import Pool
from remanence.stores.postgres.store import PostgresStore
from remanence.stores.sql import forking, vectors
from remanence.stores.sql.connection import Connection
from remanence.stores.sql.store import SQLStore, write_method
from remanence.testing import FixedClock
from remanence.testing.store_contract import OpenStore, StoreContract
from remanence.testing.store_contract.samples import (
    ANA,
    OTHER,
    START,
    expect_state,
    observation,
    tape,
)
from remanence.types import ConversationRef, Erasure, Keep, Message
from remanence.types.receipt import tombstone

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


async def commit() -> bool:
    """The fate of a commit that takes effect."""
    return True


async def test_an_append_whose_commit_got_no_answer_is_written_once(database: str) -> None:
    empty(database)
    fates: list[Callable[[], Awaitable[bool]]] = []
    async with losing_commits(database, fates) as url:
        store = await open_store(url)
        await store.append(REF, [hello("one")], user=None)
        fates.append(commit)
        appended = await store.append(REF, [hello("two")], user=None)
        stored = await store.messages(REF, after=0, limit=None)
        await store.close()

    assert fates == []
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


async def test_connections_give_up_on_a_server_that_vanished_unless_the_url_says_when(
    database: str,
) -> None:
    with Pool(url_of(database, keepalives_idle="60")) as pool, pool.connection() as connection:
        parameters = connection.info.get_parameters()

    assert parameters["tcp_user_timeout"] == "15000"
    assert parameters["keepalives_idle"] == "60"


@pytest.mark.parametrize(
    ("variable", "in_url", "expected"),
    [(None, {}, "remanence"), ("app", {}, "app"), ("app", {"application_name": "mine"}, "mine")],
)
async def test_connections_have_our_name_unless_the_url_or_the_environment_gives_another(
    database: str,
    monkeypatch: pytest.MonkeyPatch,
    variable: str | None,
    in_url: dict[str, str],
    expected: str,
) -> None:
    monkeypatch.delenv("PGAPPNAME", raising=False)
    if variable:
        monkeypatch.setenv("PGAPPNAME", variable)

    with Pool(url_of(database, **in_url)) as pool, pool.connection() as connection:
        name = connection.execute("SHOW application_name").fetchone()

    assert name == (expected,)


async def test_texts_are_unicode_whatever_encoding_the_environment_or_the_url_has_for_clients(
    database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    empty(database)
    for encoding, in_url in (("SQL_ASCII", {}), ("LATIN1", {"client_encoding": "LATIN1"})):
        monkeypatch.setenv("PGCLIENTENCODING", encoding)
        store = await open_store(url_of(database, **in_url))
        await store.append(REF, [hello("Łódź 👍")], user=None)
        problems = await store.check()
        texts = [message.text for message in await store.messages(REF, after=0, limit=9)]
        await store.close()

        assert problems == ()
        assert texts[-1] == "Łódź 👍"


async def test_writers_take_turns_whatever_isolation_is_the_default(postgres: str) -> None:
    with new_database(postgres) as database:
        url = url_of(database, options="-c%20default_transaction_isolation%3Dserializable")
        async with asyncio.TaskGroup() as group:
            opening = [group.create_task(open_store(url)) for _ in range(2)]
        stores = [task.result() for task in opening]
        async with asyncio.TaskGroup() as group:
            for store in stores * 20:
                group.create_task(store.append(REF, [hello()], user=None))
        state = await stores[0].state(REF)
        for store in stores:
            await store.close()

    assert state is not None
    assert state.last_seq == 40


@pytest.mark.parametrize(
    ("in_url", "limit"), [({}, "10s"), ({"options": "-c%20lock_timeout%3D0"}, "0")]
)
async def test_waits_for_locks_are_limited_unless_the_url_says_otherwise(
    database: str, in_url: dict[str, str], limit: str
) -> None:
    empty(database)
    await (await open_store(database)).close()
    with Pool(url_of(database, **in_url)) as pool:
        store = PostgresStore(pool, name="'memory'", clock=FixedClock())
        await store.scrub()  # which waits without a limit
        with pool.connection() as connection:
            found = connection.execute("SHOW lock_timeout").fetchone()
        await store.close()

    assert found == (limit,)


async def test_migrations_and_vacuums_may_take_longer_than_other_statements(
    store: Store, server: psycopg.Connection, database: str, caplog: pytest.LogCaptureFixture
) -> None:
    await store.append(REF, [hello()], user=None)
    url = url_of(database, options="-c%20statement_timeout%3D200ms")
    limited = await open_store(url)
    with server.transaction():
        server.execute("LOCK TABLE messages, schema_migrations IN ACCESS EXCLUSIVE MODE")
        vacuum = asyncio.create_task(limited.scrub())
        opening = asyncio.create_task(open_store(url))
        await until(lambda: waiting(server) == 2)
        with pytest.raises(StoreUnavailable, match="raise statement_timeout of the role"):
            await limited.append(REF, [hello()], user=None)
    await vacuum
    await (await opening).close()
    appended = await limited.append(REF, [hello()], user=None)
    await limited.close()

    assert appended.state.last_seq == 2
    assert "VACUUM failed" not in caplog.text


async def test_a_call_gives_up_on_a_lock_that_another_session_keeps(
    store: Store, server: psycopg.Connection, database: str
) -> None:
    await store.append(REF, [hello()], user=None)
    limited = await open_store(url_of(database, options="-c%20lock_timeout%3D20ms"))
    with server.transaction():
        server.execute("LOCK TABLE messages IN ACCESS EXCLUSIVE MODE")
        with pytest.raises(StoreUnavailable, match="another session keeps a lock") as caught:
            await limited.append(REF, [hello()], user=None)

    appended = await limited.append(REF, [hello()], user=None)
    await limited.close()

    assert "another session" in caught.value.public
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


async def test_a_user_who_is_forgotten_during_a_fork_leaves_nothing(
    store: Store, server: psycopg.Connection
) -> None:
    state = (await store.append(REF, [hello()], user="ana")).state
    goes_on = threading.Event()

    def fork(connection: Connection) -> bool:
        forking.fork(connection, state, OTHER, last_seq=1, at=START)
        return goes_on.wait()

    assert isinstance(store, SQLStore)
    forked = asyncio.create_task(write_method(fork)(store))
    idle = "SELECT 1 FROM pg_stat_activity WHERE state = 'idle in transaction'"
    await until(lambda: bool(server.execute(idle).fetchall()))
    forgotten = asyncio.create_task(store.forget_user(ANA))
    await until(lambda: waiting(server) == 1)
    goes_on.set()
    await forked
    await forgotten

    assert await store.conversations() == ()


async def test_an_append_is_whole_after_a_scrub_that_was_cancelled(
    store: Store, server: psycopg.Connection
) -> None:
    await store.append(REF, [hello()], user=None)
    with server.transaction():
        server.execute("LOCK TABLE messages IN ACCESS EXCLUSIVE MODE")
        scrub = asyncio.create_task(store.scrub())
        await until(lambda: waiting(server) == 1)
        server.execute("SELECT pg_cancel_backend(pid) FROM pg_locks WHERE NOT granted")
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


async def test_no_event_is_seen_before_an_earlier_one_that_is_not_committed_yet(
    store: Store, server: psycopg.Connection
) -> None:
    state = await tape(store, 2)
    with server.transaction():  # another process's event, about to be committed
        server.execute("INSERT INTO event_counters (tenant, last) VALUES ('default', 1)")
        server.execute(
            "INSERT INTO events (tenant, id, type, at, data) VALUES ('default', 1, 'facts', %s, '{}')",
            (datetime(2027, 1, 4, tzinfo=UTC).isoformat(),),
        )
        commit = asyncio.create_task(store.commit_observation(state, observation(1, 2)))
        await until(lambda: waiting(server) == 1)
        seen = await store.events("default", after=0, limit=10)
    expect_state(await commit)

    after = await store.events("default", after=seen.last, limit=10)
    assert seen.events == ()
    assert [(event.id, event.type) for event in after.events] == [(1, "facts"), (2, "observed")]


async def index_next(store: Store) -> int | None:
    """Store the vectors of the next task; return the key that it ends at."""
    task = await store.next_vector_task("one", keep=Keep(), at=START)
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


async def test_texts_that_are_erased_while_their_vectors_are_written_leave_none(
    store: Store, server: psycopg.Connection
) -> None:
    state = await tape(store, 2)
    state = expect_state(await store.commit_observation(state, observation(1, 2)))
    task = await store.next_vector_task("one", keep=Keep(), at=START)
    assert task is not None
    goes_on = threading.Event()

    def save(connection: Connection) -> bool:
        vectors.save(connection, task, [[1.0]] * len(task.items))
        return goes_on.wait()

    assert isinstance(store, SQLStore)
    saved = asyncio.create_task(write_method(save)(store))
    idle = "SELECT 1 FROM pg_stat_activity WHERE state = 'idle in transaction'"
    await until(lambda: bool(server.execute(idle).fetchall()))
    (segment,) = await store.segments(REF, live=True)
    gone = [tombstone(message, "") for message in await store.messages(REF, after=0, limit=None)]
    erasure = Erasure(
        tombstones=tuple(gone), segments=(segment.id,), remade=(observation(1, 2, id="anew"),)
    )
    forgotten = asyncio.create_task(store.forget(state, erasure, at=START))
    await until(lambda: forgotten.done() or waiting(server) == 1)
    goes_on.set()
    await saved
    await forgotten

    assert server.execute("SELECT item FROM vectors").fetchall() == []


class CountingConnection(PostgresConnection):
    """A connection that counts the statements of which it waits for each."""

    count = 0

    def execute(self, statement: LiteralString, values: Sequence[object] = ()) -> Cursor:
        self.count += 1
        return super().execute(statement, values)


async def test_vectors_of_a_segment_are_written_without_waiting_for_the_server_after_each(
    store: Store, database: str
) -> None:
    state = await tape(store, 50)
    expect_state(await store.commit_observation(state, observation(1, 50)))
    task = await store.next_vector_task("one", keep=Keep(), at=START)
    assert task is not None
    with psycopg.connect(database) as own:
        connection = CountingConnection(own)
        vectors.save(connection, task, [[1.0]] * len(task.items))

    assert len(await store.nearest(REF, "one", [1.0], limit=99)) == 51
    assert connection.count < 10


async def test_vectors_of_erased_texts_are_reported_not_found_and_removed_by_the_next_erasure(
    store: Store, server: psycopg.Connection
) -> None:
    state = await tape(store, 2)
    expect_state(await store.commit_observation(state, observation(1, 2)))
    await index_next(store)
    before = await store.nearest(REF, "one", [1.0], limit=9)
    server.execute("DELETE FROM segments")
    server.execute("UPDATE messages SET kind = 'forgotten' WHERE seq = 1")

    hits = await store.nearest(REF, "one", [1.0], limit=9)
    found = [problem.what for problem in await store.check()]
    await store.scrub()

    assert len(before) == 3
    assert [hit.first_seq for hit in hits] == [2]
    assert any(what.startswith("there are 2 vectors of messages and notes") for what in found)
    assert len(server.execute("SELECT item FROM vectors").fetchall()) == 1


async def test_a_name_that_is_not_unicode_is_refused(store: Store) -> None:
    with pytest.raises(StoreError, match="not Unicode"):
        await store.append(ConversationRef("default", "\ud800"), [hello()], user=None)


async def test_a_lost_state_and_lost_words_are_found(store: Store, database: str) -> None:
    await tape(store, 2)
    await tape(store, 3, OTHER)
    await store.search(REF, "message", limit=1)
    await store.search(OTHER, "message", limit=1)
    sound = await store.check()
    with psycopg.connect(database) as connection:
        connection.execute("DELETE FROM text_index")
        connection.execute("DELETE FROM states WHERE last_seq = 3")

    problems = await store.check()

    assert sound == ()
    assert [(problem.conversation, problem.what.partition(",")[0]) for problem in problems] == [
        (OTHER, "the row of its state is missing"),
        (None, "text_index lacks 2 messages"),
    ]


async def test_a_store_for_reading_reads_and_refuses_to_write(store: Store, database: str) -> None:
    appended = await store.append(REF, [hello()], user=None)
    reading = await open_store(database, read_only=True)
    try:
        assert await reading.messages(REF, after=0, limit=None) == appended.messages
        with pytest.raises(StoreUnavailable, match="open read-only"):
            await reading.append(REF, [hello("Again.")], user=None)
        with pytest.raises(StoreUnavailable, match="open read-only"):
            await reading.scrub()
    finally:
        await reading.close()

    assert await store.messages(REF, after=0, limit=None) == appended.messages


async def test_reading_creates_no_tables(store: Store, database: str) -> None:
    assert store is not None
    with psycopg.connect(database, autocommit=True) as connection:
        connection.execute("CREATE SCHEMA elsewhere")
    try:
        with pytest.raises(NotADatabase, match="run 'remanence migrate'"):
            await open_store(f"{database}&options=-csearch_path%3Delsewhere", read_only=True)
        with psycopg.connect(database) as connection:
            found = connection.execute(
                "SELECT 1 FROM pg_tables WHERE schemaname = 'elsewhere'"
            ).fetchall()
    finally:
        with psycopg.connect(database, autocommit=True) as connection:
            connection.execute("DROP SCHEMA elsewhere CASCADE")

    assert found == []


class FastClock(SystemClock):
    """The clock of a machine that is an hour ahead."""

    def machine_time(self) -> datetime:
        return super().machine_time() + timedelta(hours=1)


async def test_a_machine_whose_clock_is_ahead_goes_by_the_time_of_the_server(
    store: Store, database: str
) -> None:
    assert store is not None
    clock = FastClock()
    ahead = await open_store(database, clock=clock)
    (message,) = (await ahead.append(REF, [hello()], user=None)).messages
    await ahead.close()

    assert message.created_at is not None
    for time in (message.created_at, clock.now()):
        assert abs(time - SystemClock().now()) < timedelta(minutes=30)


async def test_a_clock_that_is_given_for_tests_is_left_alone(store: Store, database: str) -> None:
    assert store is not None
    fixed = await open_store(database, clock=FixedClock())
    (message,) = (await fixed.append(REF, [hello()], user=None)).messages
    await fixed.close()

    assert message.created_at == FixedClock().now()
