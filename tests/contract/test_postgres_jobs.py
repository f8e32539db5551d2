"""Background work as jobs in PostgreSQL: the contract of engines, and jobs that agree with looks."""

import secrets
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from datetime import datetime, timedelta
from functools import partial

import psycopg
import pytest
from tests.postgres import empty, until, url_of

from remanence import Memory, Settings
from remanence.clock import SystemClock
from remanence.engine.local import LocalEngine
from remanence.engine.procrastinate import RETENTION_QUEUE, take_jobs
from remanence.errors import InvalidMessage
from remanence.protocols import Store
from remanence.stores import open_store
from remanence.testing import FixedClock, ScriptedObserver
from remanence.testing.engine_contract import POLICY, EngineContract, turns
from remanence.testing.store_contract import OpenStore
from remanence.types import ConversationRef, Message

pytestmark = pytest.mark.postgres

REF = ConversationRef("default", "a")
LEASE_SECONDS = 1.0


class TestProcrastinateEngine(EngineContract):
    @pytest.fixture
    def open_again(self, database: str) -> OpenStore:
        empty(database)
        type(self).make_engine = partial(LocalEngine, jobs=partial(take_jobs, database))

        async def open_handle() -> Store:
            return await open_store(database)

        return open_handle


def hello() -> Message:
    return Message.user("Hello.").replace(tokens=10)


def jobs(server: psycopg.Connection) -> list[tuple[str | None, datetime | None]]:
    """Return the conversation and the time of each job."""
    return server.execute(
        "SELECT args ->> 'id', scheduled_at FROM procrastinate_jobs ORDER BY id"
    ).fetchall()


async def test_an_append_that_makes_work_due_defers_one_job(
    store: Store, server: psycopg.Connection
) -> None:
    for _ in range(3):
        await store.append(REF, [hello()], user=None)

    assert jobs(server) == [("a", None)]


async def test_an_append_that_fails_defers_no_job(store: Store, server: psycopg.Connection) -> None:
    with pytest.raises(InvalidMessage):
        await store.append(REF, [hello(), Message.tool("none", "x")], user=None)

    assert jobs(server) == []


async def test_a_job_follows_the_planned_look(store: Store, server: psycopg.Connection) -> None:
    state = (await store.append(REF, [hello()], user=None)).state
    later = SystemClock().now() + timedelta(hours=1)

    assert await store.rest(state, at=later, tokens=100)
    assert jobs(server) == [("a", later)]
    assert await store.rest(state, at=None, tokens=100)
    assert jobs(server) == []


async def test_workers_are_told_of_a_planned_look_that_becomes_due(
    store: Store, server: psycopg.Connection
) -> None:
    state = (await store.append(REF, [hello()], user=None)).state
    assert await store.rest(state, at=SystemClock().now() + timedelta(hours=1), tokens=100)
    server.execute('LISTEN "procrastinate_queue_v1#remanence"')
    await store.append(REF, [hello().replace(tokens=100)], user=None)

    assert [*server.notifies(timeout=60, stop_after=1)]
    assert jobs(server) == [("a", None)]


async def test_a_conversation_leaves_no_job(store: Store, server: psycopg.Connection) -> None:
    await store.append(REF, [hello()], user=None)
    await store.delete(REF)

    assert jobs(server) == []


@asynccontextmanager
async def working(database: str) -> AsyncIterator[ScriptedObserver]:
    """Yield the observer of a memory that works on jobs."""
    observer = ScriptedObserver()
    settings = Settings(engine="procrastinate", lease_seconds=LEASE_SECONDS)
    async with Memory.open(database, policy=POLICY, observer=observer, settings=settings):
        yield observer


async def append_unobserved(database: str) -> None:
    async with Memory.open(database, policy=POLICY, settings=Settings(workers=0)) as memory:
        await memory.conversation("a").append(*turns(12))


async def all_done(server: psycopg.Connection) -> None:
    """Return when nothing is due any more, and no job is left."""
    due = "SELECT 1 FROM states WHERE look_at IS NOT NULL OR observed_seq = 0"
    await until(lambda: not jobs(server) and not server.execute(due).fetchall())


async def test_a_process_works_on_jobs_that_another_deferred(
    database: str, server: psycopg.Connection
) -> None:
    async with working(database) as observer:
        await append_unobserved(database)
        await all_done(server)

    assert observer.requests


async def test_a_process_without_workers_is_not_ready_while_no_worker_takes_its_jobs(
    database: str, server: psycopg.Connection
) -> None:
    clock = FixedClock(SystemClock().now())
    settings = Settings(engine="procrastinate", workers=0)
    async with Memory.open(database, policy=POLICY, settings=settings, clock=clock) as memory:
        await memory.conversation("a").append(*turns(12))
        at_first = await memory.unready()
        clock.advance(301)
        stuck = await memory.unready()
        async with working(database):
            await all_done(server)
        done = await memory.unready()

    assert at_first == done == ()
    assert [reason.code for reason in stuck] == ["overdue"]


async def test_work_whose_job_was_lost_is_found(database: str, server: psycopg.Connection) -> None:
    await append_unobserved(database)
    server.execute("DELETE FROM procrastinate_jobs")
    async with working(database) as observer:
        await all_done(server)

    assert observer.requests


@pytest.mark.parametrize("waiting", [True, False])
async def test_the_job_of_a_dead_process_is_done_by_another(
    database: str, server: psycopg.Connection, waiting: bool
) -> None:
    await append_unobserved(database)
    server.execute("INSERT INTO procrastinate_workers (last_heartbeat) VALUES ('2020-01-01')")
    server.execute(
        "UPDATE procrastinate_jobs SET status = 'doing', "
        "worker_id = (SELECT max(id) FROM procrastinate_workers)"
    )
    if waiting:  # a second job, for what was appended while the first one ran
        server.execute("UPDATE states SET look_at = '2026-01-01T00:00:00.000000+00:00'")
        assert len(jobs(server)) == 2
    async with working(database) as observer:
        await all_done(server)

    assert observer.requests


async def test_a_process_that_was_taken_for_dead_works_on(
    database: str, server: psycopg.Connection
) -> None:
    async with working(database) as observer:
        dead = "DELETE FROM procrastinate_workers RETURNING id"
        await until(lambda: bool(server.execute(dead).fetchall()))
        await append_unobserved(database)
        await all_done(server)

    assert observer.requests


@contextmanager
def first_end_cut(server: psycopg.Connection) -> Iterator[None]:
    """Cut the connection on which the first job is ended."""
    server.execute("""
        CREATE SEQUENCE ends;
        CREATE FUNCTION cut() RETURNS trigger LANGUAGE plpgsql AS $$
        BEGIN
          IF nextval('ends') = 1 THEN PERFORM pg_terminate_backend(pg_backend_pid()); END IF;
          RETURN OLD;
        END; $$;
        CREATE TRIGGER cut BEFORE DELETE ON procrastinate_jobs
        FOR EACH ROW WHEN (OLD.status = 'doing') EXECUTE FUNCTION cut();
    """)
    yield
    assert server.execute("SELECT last_value > 1 FROM ends").fetchone() == (True,)
    server.execute("DROP FUNCTION cut CASCADE; DROP SEQUENCE ends")


async def test_a_job_whose_end_could_not_be_written_is_ended_by_its_process(
    database: str, server: psycopg.Connection
) -> None:
    with first_end_cut(server):
        async with working(database) as observer:
            await append_unobserved(database)
            await all_done(server)

    assert observer.requests


async def test_a_process_that_cannot_listen_for_a_while_says_so_and_listens_again(
    database: str, server: psycopg.Connection, caplog: pytest.LogCaptureFixture
) -> None:
    role = f"listener_{secrets.token_hex(8)}"
    listening = f"FROM pg_stat_activity WHERE usename = '{role}' AND query LIKE 'LISTEN%'"
    server.execute(f"CREATE ROLE {role} LOGIN SUPERUSER")
    try:
        async with working(url_of(database, user=role)):
            await until(lambda: bool(server.execute(f"SELECT {listening}").fetchall()))
            server.execute(f"ALTER ROLE {role} NOLOGIN")
            server.execute(f"SELECT pg_terminate_backend(pid) {listening}")
            await until(lambda: "background work 'listener' failed" in caplog.text)
            server.execute(f"ALTER ROLE {role} LOGIN")
            await until(lambda: bool(server.execute(f"SELECT {listening}").fetchall()))
    finally:
        server.execute(f"DROP ROLE {role}")

    assert "is not permitted to log in" in caplog.text


async def test_jobs_are_ended_read_committed_whatever_isolation_is_the_default(
    database: str, server: psycopg.Connection
) -> None:
    server.execute("""
        CREATE TABLE isolations AS SELECT ''::text AS isolation;
        CREATE FUNCTION record() RETURNS trigger LANGUAGE plpgsql AS $$
        BEGIN
          INSERT INTO isolations SELECT current_setting('transaction_isolation'); RETURN OLD;
        END; $$;
        CREATE TRIGGER record BEFORE DELETE ON procrastinate_jobs
        FOR EACH ROW WHEN (OLD.status = 'doing') EXECUTE FUNCTION record();
    """)
    async with working(
        url_of(database, options="-c%20default_transaction_isolation%3Dserializable")
    ):
        await append_unobserved(database)
        await all_done(server)
    found = server.execute("SELECT DISTINCT isolation FROM isolations ORDER BY 1").fetchall()
    server.execute("DROP FUNCTION record CASCADE; DROP TABLE isolations")

    assert found == [("",), ("read committed",)]


async def test_a_sweep_for_retention_is_a_job_for_a_process_with_rules(
    database: str, server: psycopg.Connection
) -> None:
    async with working(database) as without_rules:
        server.execute(
            "INSERT INTO procrastinate_jobs (queue_name, task_name, args) "
            "VALUES (%s, 'remanence.retention', '{\"timestamp\": 0}')",
            (RETENTION_QUEUE,),
        )
        await append_unobserved(database)
        await until(lambda: jobs(server) == [(None, None)])  # that of the conversation is done
        entries = server.execute("UPDATE journal SET at = '2020' || substr(at, 5)").rowcount
        settings = Settings(engine="procrastinate", log_keep_days=30)
        async with Memory.open(database, policy=POLICY, settings=settings):
            await until(lambda: server.execute("SELECT count(*) FROM journal").fetchone() == (1,))
            await all_done(server)

    assert without_rules.requests
    assert entries > 1
