import asyncio
from contextlib import suppress

from remanence.background import wait_for_end


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
