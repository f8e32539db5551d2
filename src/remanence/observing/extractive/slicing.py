"""Running a long computation in slices, so that an event loop is not held up."""

import asyncio
import time
from collections.abc import Generator
from typing import TypeVar

_T = TypeVar("_T")
_SLICE_SECONDS = 0.001


async def in_slices(steps: Generator[None, None, _T]) -> _T:
    """Run a computation that yields between small steps; others run at least each millisecond."""
    began = time.perf_counter()
    while True:
        try:
            next(steps)
        except StopIteration as done:
            result: _T = done.value
            return result
        if time.perf_counter() - began > _SLICE_SECONDS:
            await asyncio.sleep(0)
            began = time.perf_counter()


def at_once(steps: Generator[None, None, _T]) -> _T:
    """Run such a computation to its end."""
    while True:
        try:
            next(steps)
        except StopIteration as done:
            result: _T = done.value
            return result
