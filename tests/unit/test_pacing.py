import asyncio
import contextlib
import time
from collections.abc import Generator

from remanence.pacing import FOREGROUND, compute_in_slices

SLICE_SECONDS = 0.002


def slices(count: int, done: list[int]) -> Generator[None, None, int]:
    """So many steps, each longer than a slice may be."""
    for number in range(count):
        began = time.perf_counter()
        while time.perf_counter() - began < SLICE_SECONDS:
            pass
        done.append(number)
        yield
    return count


async def in_slices(count: int, done: list[int]) -> int:
    return await compute_in_slices(lambda steps: slices(steps, done), count)


async def test_others_run_between_slices() -> None:
    done: list[int] = []
    seen: list[int] = []
    work = asyncio.create_task(in_slices(5, done))
    while not work.done():
        seen.append(len(done))
        await asyncio.sleep(0)

    assert await work == 5
    assert {1, 2, 3, 4} <= set(seen)


async def test_work_in_slices_rests_while_somebody_waits() -> None:
    done: list[int] = []
    work = asyncio.create_task(in_slices(50, done))
    await asyncio.sleep(0)
    with FOREGROUND:
        before = len(done)
        for _ in range(5):
            await asyncio.sleep(0.001)
        assert len(done) <= before + 1

    assert await work == 50


async def test_work_in_slices_ends_although_somebody_always_waits() -> None:
    with FOREGROUND:
        assert await in_slices(5, []) == 5


async def test_nobody_waits_any_more_after_an_error() -> None:
    with contextlib.suppress(TimeoutError), FOREGROUND:
        raise TimeoutError
    done: list[int] = []
    work = asyncio.create_task(in_slices(2, done))
    rests = 0
    while not work.done():
        rests += 1
        await asyncio.sleep(0.001)

    assert rests < 10
