import asyncio
from contextlib import suppress

import pytest

from remanence.background import Background, wait_for_end
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
