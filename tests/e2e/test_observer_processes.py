"""The embedded observer in processes of its own: the same notes, and no harm when one dies."""

import asyncio
import multiprocessing
import os
import signal
import threading
import time
from collections.abc import Generator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from tests.builders import observe_request

from remanence import Memory, Message, Policy, Settings
from remanence.errors import ObservationRejected
from remanence.observers.process_pool import ProcessPool
from remanence.protocols import ObserveRequest
from remanence.testing import check_tiling
from remanence.types import Segment

# The processes compute only while no other program wants the processor.
pytestmark = pytest.mark.timeout(600)

POLICY = Policy(
    observe_tokens=300,
    tail_tokens=600,
    tail_keep_tokens=100,
    reflect_tokens=(150, 2_000),
    reflect_ratio=0.5,
    observe_timeout_seconds=600,
)
SAID = (
    "I am vegetarian and I moved to Lisbon in May.",
    "Please always answer in short sentences.",
    "We decided to take the night train to Porto on 14 June.",
    "The budget for the kitchen is 8,400 euros.",
)
IN_A_PROCESS = Settings(observer_processes=1, workers=1)


@pytest.fixture
def url(tmp_path: Path) -> str:
    return f"sqlite:///{tmp_path / 'memory.db'}"


async def say(url: str, count: int) -> None:
    """Append messages without having them observed."""
    async with Memory.open(url, policy=POLICY, settings=Settings(workers=0)) as memory:
        chat = memory.conversation("a", user="ana")
        for number in range(count):
            text = f"{SAID[number % 4]} That is number {number} of the things."
            await chat.append(Message.user(text))


async def notes(url: str, settings: Settings, *, killing: bool = False) -> list[Segment]:
    """Have all messages observed, and return the live segments."""
    async with Memory.open(url, policy=POLICY, settings=settings) as memory:
        chat = memory.conversation("a", user="ana")
        await chat.flush()
        if killing:
            (process,) = multiprocessing.active_children()
            os.kill(process.pid or 0, signal.SIGKILL)
        await chat.flush(everything=True)
        assert bool(multiprocessing.active_children()) == bool(settings.observer_processes)
        state, segments = await chat.state(), (await chat.snapshot()).segments
        assert (state.observed_seq, state.failures) == (state.last_seq, 0)
        check_tiling(state, segments)
        assert await memory.facts.list(user="ana")
    return list(segments)


async def test_notes_are_those_that_one_process_makes(url: str, tmp_path: Path) -> None:
    other = f"sqlite:///{tmp_path / 'other.db'}"
    await say(url, 60)
    await say(other, 60)

    alone = await notes(url, Settings(workers=1))
    pooled = await notes(other, IN_A_PROCESS)

    assert max(segment.generation for segment in pooled) > 0
    assert [(s.generation, s.first_seq, s.last_seq, s.text) for s in pooled] == [
        (s.generation, s.first_seq, s.last_seq, s.text) for s in alone
    ]


def end_the_process(request: ObserveRequest) -> Generator[None, None, None]:
    """End the process that computes it, as one that runs out of memory; the message names a log."""
    assert multiprocessing.parent_process() is not None, "computed in the main process"
    with Path(request.messages[0].text).open("a") as tries:
        tries.write("x")
    os.kill(os.getpid(), signal.SIGKILL)
    yield


async def test_a_request_that_ends_its_process_twice_is_rejected(tmp_path: Path) -> None:
    tries = tmp_path / "tries"
    pool = ProcessPool(1, counter="gpt-5")
    with pytest.raises(ObservationRejected, match="see if the machine has enough memory") as caught:
        await pool(end_the_process, observe_request(Message.user(str(tries))))
    pool.close()

    assert caught.value.reason == "process_ended"
    assert tries.read_text() == "xx"


def end_computing(request: ObserveRequest) -> Generator[None, None, None]:
    """End the process, and write `+` for one that computes meanwhile; the message names a folder."""
    folder = Path(request.messages[0].text)
    try:
        (folder / "computing").mkdir()
    except FileExistsError:
        (folder / "overlaps").write_text("+")
    time.sleep(0.2)  # so that another one would meet it
    (folder / "computing").rmdir()
    os.kill(os.getpid(), signal.SIGKILL)
    yield


async def test_no_more_processes_try_again_at_once_than_the_pool_has(tmp_path: Path) -> None:
    pool, request = ProcessPool(1, counter="gpt-5"), observe_request(Message.user(str(tmp_path)))

    async def compute() -> None:
        with pytest.raises(ObservationRejected):
            await pool(end_computing, request)

    async with asyncio.TaskGroup() as group:
        for _ in range(2):
            group.create_task(compute())
    pool.close()

    assert not (tmp_path / "overlaps").exists()


async def test_ctrl_c_does_not_reach_a_process_that_is_still_starting() -> None:
    pool, others = ProcessPool(1, counter="gpt-5"), pids_of_children()
    work = asyncio.create_task(pool(process_id, observe_request(Message.user("hello"))))
    async with asyncio.timeout(300):
        while not (started := pids_of_children() - others):  # noqa: ASYNC110 - another process
            await asyncio.sleep(0.001)
        os.kill(min(started), signal.SIGINT)
        computed_by = await work
    pool.close()

    assert {computed_by} == started


def pids_of_children() -> set[int]:
    return {child.pid or 0 for child in multiprocessing.active_children()}


def process_id(request: ObserveRequest) -> Generator[None, None, int]:
    yield
    return os.getpid()


def scheduling(request: ObserveRequest) -> Generator[None, None, int]:
    yield
    return os.sched_getscheduler(0)


@pytest.mark.skipif(not hasattr(os, "SCHED_IDLE"), reason="only Linux has it")
async def test_turns_go_before_the_processes() -> None:
    pool = ProcessPool(1, counter="gpt-5")
    policy: object = await pool(scheduling, observe_request(Message.user("hello")))
    pool.close()

    assert policy == os.SCHED_IDLE


def never_end(request: ObserveRequest) -> Generator[None, None, None]:
    """Compute until the process is ended, as one without processor time; the message names a file."""
    Path(request.messages[0].text).write_text(str(os.getpid()))
    while True:
        yield


@pytest.mark.skipif(not hasattr(os, "SCHED_IDLE"), reason="only Linux has it")
async def test_after_a_request_that_took_too_long_the_processes_get_a_share_of_a_busy_processor(
    tmp_path: Path,
) -> None:
    begun = tmp_path / "begun"
    pool = ProcessPool(1, counter="gpt-5")
    request = asyncio.create_task(pool(never_end, observe_request(Message.user(str(begun)))))
    async with asyncio.timeout(300):
        while not (begun.exists() and begun.read_text()):  # noqa: ASYNC110 - another process's file
            await asyncio.sleep(0.01)
    request.cancel()
    await asyncio.wait({request})

    async with asyncio.timeout(300):
        policy: object = await pool(scheduling, observe_request(Message.user("hello")))
    pool.close()
    os.kill(int(begun.read_text()), signal.SIGKILL)

    assert request.cancelled()
    assert policy == os.SCHED_OTHER


@pytest.mark.skipif(not hasattr(os, "SCHED_IDLE"), reason="only Linux has it")
async def test_a_request_that_begins_when_another_is_cancelled_is_computed() -> None:
    pool = ProcessPool(1, counter="gpt-5")
    slots, gate = ThreadPoolExecutor(1), threading.Event()
    loop = asyncio.get_running_loop()
    loop.set_default_executor(slots)
    async with asyncio.timeout(300):
        slots.submit(gate.wait)  # requests wait for this before they are submitted
        first, second = (
            asyncio.create_task(pool(scheduling, observe_request(Message.user("hello"))))
            for _ in range(2)
        )
        await asyncio.sleep(0)
        first.cancel()
        await asyncio.wait({first})
        gate.set()
        policy: object = await second
    pool.close()

    assert first.cancelled()
    assert policy is not None


async def test_work_goes_on_when_the_process_is_killed_and_the_log_says_so(
    url: str, caplog: pytest.LogCaptureFixture
) -> None:
    await say(url, 60)

    assert await notes(url, IN_A_PROCESS, killing=True)
    assert "observer processes died" in caplog.text
