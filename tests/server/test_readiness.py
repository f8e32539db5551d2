"""`/readyz`: whether the store can be read and written, and background work keeps up."""

import asyncio
import resource
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path

import apsw
import httpx2
import pytest
from tests.server.conftest import POLICY, Client, memory_on, served

from remanence import Memory, Message, Settings
from remanence.engine.readiness import find_unready
from remanence.errors import ModelError, StoreUnavailable
from remanence.server.app import create_app
from remanence.stores import open_store
from remanence.testing import FixedClock, ScriptedObserver
from remanence.testing.faults import FaultyStore
from remanence.types import ConversationRef

TURNS = 3 * (
    Message.user("We land at gate B42 and go on by train. " * 60),
    Message.assistant("Noted."),
)


def codes(response: httpx2.Response) -> list[str]:
    return [reason["code"] for reason in response.json()["reasons"]]


async def test_a_server_whose_memory_works_is_ready(client: Client, memory: Memory) -> None:
    conversation = memory.conversation("trip")
    await conversation.append(*TURNS)
    await conversation.flush()

    response = await client.get("/readyz")

    assert response.status_code == 200
    assert response.json()["status"] == "ready"
    assert response.json()["reasons"] == []
    assert response.headers["cache-control"] == "no-store"
    for path in ("/healthz", "/readyz"):
        head = await client.http.head(path)
        assert (head.status_code, head.content) == (200, b"")


async def test_it_is_not_ready_while_the_last_steps_failed_and_ready_after_the_next_that_worked(
    clock: FixedClock,
) -> None:
    down = ScriptedObserver([ModelError("auth", "refused the key of Ana")] * 3)
    async with (
        Memory.open("sqlite:///:memory:", policy=POLICY, observer=down, clock=clock) as memory,
        served(create_app(memory)) as client,
    ):
        conversation = memory.conversation("trip")
        await conversation.append(*TURNS)
        await conversation.flush()
        await conversation.flush(retry=True)
        after_two = await client.get("/readyz")
        await conversation.flush(retry=True)
        after_three = await client.get("/readyz")
        await conversation.flush(retry=True)
        after_success = await client.get("/readyz")

    assert after_two.status_code == 200
    assert (after_three.status_code, codes(after_three)) == (503, ["failing"])
    assert "observe: auth" in after_three.text
    assert "Ana" not in after_three.text
    assert "trip" not in after_three.text
    assert after_success.status_code == 200


async def test_it_is_not_ready_while_work_waits_too_long_for_a_worker(clock: FixedClock) -> None:
    gate = asyncio.Event()
    slow = ScriptedObserver(gate=gate)
    settings = Settings(workers=1, lease_seconds=3_600)
    async with (
        Memory.open(
            "sqlite:///:memory:", policy=POLICY, observer=slow, clock=clock, settings=settings
        ) as memory,
        served(create_app(memory)) as client,
    ):
        await memory.conversation("first").append(*TURNS)
        await slow.called.wait()
        clock.advance(301)
        at_work = await client.get("/readyz")
        await memory.conversation("second").append(*TURNS)
        clock.advance(299)
        waiting = await client.get("/readyz")
        clock.advance(2)
        overdue = await client.get("/readyz")
        gate.set()
        for name in ("first", "second"):
            await memory.conversation(name).flush()
        done = await client.get("/readyz")

    assert at_work.status_code == 200, "an owner is at work"
    assert waiting.status_code == 200
    assert (overdue.status_code, codes(overdue)) == (503, ["overdue"])
    assert done.status_code == 200


async def test_work_that_others_do_does_not_count(tmp_path: Path, clock: FixedClock) -> None:
    async with (
        Memory.open(
            f"sqlite:///{tmp_path / 'memory.db'}",
            policy=POLICY,
            clock=clock,
            settings=Settings(workers=0),
        ) as memory,
        served(create_app(memory)) as client,
    ):
        await memory.conversation("trip").append(*TURNS)
        clock.advance(3_600)

        assert (await client.get("/readyz")).status_code == 200


async def test_a_store_that_cannot_be_read_is_a_reason(clock: FixedClock) -> None:
    store = FaultyStore(await open_store("sqlite:///:memory:", clock=clock))
    store.fail("looks", StoreUnavailable("'memory.db' cannot be read: disk I/O error"))

    (reason,) = await find_unready(store, clock=clock, works=False)
    await store.close()

    assert reason.code == "store"
    assert "disk I/O error" in reason.detail


async def test_a_file_that_another_process_has_locked_is_a_reason_until_it_is_free(
    tmp_path: Path, clock: FixedClock, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "memory.db"
    store = await open_store(f"sqlite:///{path}", clock=clock, pragmas={"busy_timeout": 100})
    async with (
        memory_on(store, clock) as memory,
        served(create_app(memory)) as client,
    ):
        rival = apsw.Connection(str(path))
        rival.execute("BEGIN IMMEDIATE")
        locked = await client.get("/readyz")
        refused = await client.post(
            "/v1/conversations/trip/messages", messages=[{"role": "user", "content": "Hi."}]
        )
        rival.close()
        free = await client.get("/readyz")
        conversations = await memory.conversations()
    await store.close()

    assert (locked.status_code, codes(locked)) == (503, ["store"])
    assert "another process has locked the database" in locked.text
    assert (refused.status_code, refused.headers["retry-after"]) == (503, "2")
    assert refused.json()["detail"].startswith("another process has locked the database")
    assert path.name not in locked.text + refused.text, "paths of the server are in its log alone"
    assert str(path) in caplog.text
    assert free.status_code == 200
    assert conversations == (), "a probe leaves nothing behind"


async def test_a_disk_without_room_is_a_reason_until_there_is_some(
    tmp_path: Path, clock: FixedClock
) -> None:
    async with (
        Memory.open(f"sqlite:///{tmp_path / 'memory.db'}", clock=clock) as memory,
        served(create_app(memory)) as client,
    ):
        await memory.conversation("trip").append(Message.user("Hello."))
        with files_that_cannot_grow(tmp_path):
            full = await client.get("/readyz")
        free = await client.get("/readyz")
        appended = await memory.conversation("trip").append(Message.user("Hello again."))

    assert (full.status_code, codes(full)) == (503, ["store"])
    assert "cannot be read or written" in full.text
    assert free.status_code == 200
    assert [message.seq for message in appended] == [2]


@contextmanager
def files_that_cannot_grow(directory: Path) -> Iterator[None]:
    """Have the system refuse to write beyond the present end of the write-ahead log."""
    size = max(file.stat().st_size for file in directory.iterdir() if file.name.endswith("-wal"))
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


async def test_a_server_that_ends_is_not_ready(memory: Memory) -> None:
    ending = asyncio.Event()
    async with served(create_app(memory, ending=ending)) as client:
        ending.set()
        response = await client.get("/readyz")

    assert (response.status_code, codes(response)) == (503, ["ending"])


@pytest.mark.parametrize("conversations", [1, 40])
async def test_a_probe_asks_the_store_three_times_whatever_the_number_of_conversations(
    clock: FixedClock, conversations: int
) -> None:
    store = FaultyStore(await open_store("sqlite:///:memory:", clock=clock))
    for number in range(conversations):
        ref = ConversationRef("default", str(number))
        await store.append(ref, [Message.user("Hello.").replace(tokens=3)], user=None)
    clock.advance(timedelta(hours=1).total_seconds())
    store.calls.clear()

    (reason,) = await find_unready(store, clock=clock, works=True)
    calls = list(store.calls)
    await store.close()

    assert reason.code == "overdue"
    assert calls == ["probe", "looks", "outcomes"]


@pytest.fixture
def clock() -> FixedClock:
    return FixedClock()
