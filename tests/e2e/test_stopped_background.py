"""If background work ends before the memory is closed, nobody waits for it and everybody is told."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

import pytest

from remanence import Memory, Message, Policy
from remanence.background import Background
from remanence.errors import Closed
from remanence.testing import ScriptedObserver

POLICY = Policy(observe_tokens=100, tail_tokens=400, tail_keep_tokens=50, keep_last=1)
WORDS = "the quick brown fox jumps over a lazy dog near the old river bank at dawn "


def cancel_task(name: str) -> None:
    """Cancel a task of the memory, as a host does that cancels all tasks it finds."""
    (task,) = [task for task in asyncio.all_tasks() if task.get_name() == name]
    task.cancel()


@asynccontextmanager
async def observing(policy: Policy = POLICY) -> AsyncIterator[Memory]:
    """A memory in the middle of an observation."""
    observer = ScriptedObserver(gate=asyncio.Event())
    async with Memory.open("sqlite:///:memory:", policy=policy, observer=observer) as memory:
        await append(memory)
        async with asyncio.timeout(60):
            await observer.called.wait()
        yield memory


async def append(memory: Memory) -> None:
    turns = (Message.user(f"Question {number}: {WORDS}") for number in range(12))
    await memory.conversation("a", user="ana").append(*turns)


async def stopped(memory: Memory) -> None:
    """Wait until the memory is unready."""
    async with asyncio.timeout(60):
        while not await memory.unready():  # noqa: ASYNC110 - the end of a task tells nobody
            await asyncio.sleep(0.01)


@pytest.mark.parametrize("task", ["remanence", "remanence-worker-0", "remanence-ledger"])
async def test_calls_that_wait_and_later_ones_are_told_that_background_work_has_stopped(
    task: str,
) -> None:
    async with observing() as memory, asyncio.timeout(60):
        chat = memory.conversation("a", user="ana")
        flushing = asyncio.ensure_future(chat.flush())
        await asyncio.sleep(0)
        cancel_task(task)

        with pytest.raises(Closed, match="stopped after CancelledError"):
            await flushing
        with pytest.raises(Closed, match="background work has stopped"):
            await chat.end()
        with pytest.raises(Closed, match="background work has stopped"):
            await memory.forget_user("ana")


async def test_it_is_logged_once_and_told_by_unready_and_check(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async with observing() as memory:
        cancel_task("remanence-worker-0")
        await stopped(memory)
        (reason,) = await memory.unready()
        problems = await memory.check()

    assert reason.code == "stopped"
    assert "CancelledError in 'worker-0'" in reason.detail
    assert [problem.what for problem in problems if problem.level == "error"] == [reason.detail]
    assert [record.levelname for record in caplog.records if "stopped" in record.message] == [
        "ERROR"
    ]


async def test_messages_are_still_kept_and_shown_and_no_context_waits_for_notes() -> None:
    async with observing(policy=POLICY.replace(block_after=1.0)) as memory:
        cancel_task("remanence-worker-0")
        await stopped(memory)
        await memory.conversation("a", user="ana").append(Message.user("And this?"))
        context = await memory.conversation("a", user="ana").context()

    assert context.messages[-1].text == "And this?"


async def test_a_wait_for_vectors_is_told_so() -> None:
    reached = asyncio.Event()

    async def never(texts: Sequence[str]) -> list[list[float]]:
        reached.set()
        await asyncio.Event().wait()
        return []

    async with Memory.open("sqlite:///:memory:", policy=POLICY, embedder=never) as memory:
        await append(memory)
        flushing = asyncio.ensure_future(memory.conversation("a", user="ana").flush())
        async with asyncio.timeout(60):
            await reached.wait()
            cancel_task("remanence-embedding")
            with pytest.raises(Closed, match="background work has stopped"):
                await flushing


async def test_an_error_of_a_task_that_is_not_restarted_ends_the_others() -> None:
    async def fail() -> None:
        raise OSError("the clock is gone")

    async with Background() as background:
        other = background.spawn("other", asyncio.Event().wait)  # type: ignore[arg-type]  # never ends
        background.run("odd", fail())
        await asyncio.wait({other}, timeout=60)

        assert background.failure == "background work has stopped after OSError in 'odd'"
        with pytest.raises(Closed, match="OSError"):
            background.spawn("late", asyncio.Event().wait)  # type: ignore[arg-type]  # as above


async def test_a_memory_that_is_closed_in_order_logs_no_error(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async with Memory.open("sqlite:///:memory:", policy=POLICY) as memory:
        await append(memory)
        await memory.conversation("a", user="ana").flush()

    assert [record for record in caplog.records if record.levelname == "ERROR"] == []
