import asyncio
import contextvars
from collections.abc import Coroutine
from contextlib import suppress
from typing import Any

import pytest

from remanence.background import Background, finish, part_of, wait_for_end
from remanence.errors import Closed


async def test_a_task_that_lost_its_cancellation_is_cancelled_again() -> None:
    async def lose_the_first() -> None:
        with suppress(asyncio.CancelledError):
            await asyncio.Event().wait()
        await asyncio.Event().wait()

    task = asyncio.create_task(lose_the_first())
    await asyncio.sleep(0)
    task.cancel()

    async with asyncio.timeout(30):
        await wait_for_end(task, seconds=0.001)

    assert task.cancelled()


async def test_work_that_comes_after_the_end_is_refused_as_by_a_closed_memory() -> None:
    async with Background() as background:
        pass

    with pytest.raises(Closed):
        background.run("late", asyncio.sleep(0))


async def test_a_caller_that_is_cancelled_stays_so_though_what_it_finished_failed() -> None:
    gate = asyncio.Event()

    async def fail() -> None:
        await gate.wait()
        raise ValueError("no")

    async def go_on_after_errors() -> None:
        with suppress(ValueError):
            await finish(asyncio.create_task(fail()))

    caller = asyncio.create_task(go_on_after_errors())
    await asyncio.sleep(0)
    caller.cancel()
    gate.set()
    await asyncio.wait({caller}, timeout=5)

    assert caller.cancelled()


async def test_work_that_a_closed_loop_left_is_destroyed_quietly() -> None:
    async def work() -> None:
        with part_of("the memory"):
            await asyncio.Event().wait()

    running = work()
    contextvars.copy_context().run(running.send, None)
    running.close()


class Unscheduled(Background):
    """Keeps the work that it is given, and runs none of it."""

    def run(self, name: str, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        self.work = work
        task = asyncio.current_task()
        assert task is not None
        return task


def test_work_that_fails_as_its_closed_loop_is_destroyed_is_not_tried_again(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def fail_at_the_end() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            raise RuntimeError("Event loop is closed")

    async def begin() -> Unscheduled:
        background = Unscheduled()
        background.spawn("scan", fail_at_the_end)
        background.work.send(None)
        return background

    background = asyncio.run(begin())
    background.work.close()

    assert caplog.records == []
