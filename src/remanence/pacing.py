"""Long computations in slices, so that they do not block an event loop."""

import asyncio
import threading
import time
from collections.abc import Callable, Generator
from typing import Final, TypeVar

_R = TypeVar("_R")
_T = TypeVar("_T")
_SLICE_SECONDS = 0.001
_REST_SECONDS = 0.001
"""Seconds of sleep, as a mere yield is not enough: a store's thread needs the interpreter several
times for one job, and gets it only every 5 ms from a loop that never sleeps."""
_MOST_RESTS = 10
"""Consecutive rests at most while calls are always waiting, so that background work advances."""


class _Foreground(threading.local):
    """A context that may be entered many times; counts its entries on the loop of each thread."""

    calls = 0

    def __enter__(self) -> None:
        self.calls += 1

    def __exit__(self, *_: object) -> None:
        self.calls -= 1


FOREGROUND: Final = _Foreground()
"""Blocks in this context have priority over sliced computations on the same event loop."""


class Pacer:
    """Paces a loop: a pause returns at once unless a slice of time has passed."""

    def __init__(self) -> None:
        self._began = time.perf_counter()

    def is_due(self) -> bool:
        """Return whether a slice of time has passed since the last pause."""
        return time.perf_counter() - self._began > _SLICE_SECONDS

    async def pause(self) -> None:
        """Let other tasks run if a pause is due, and longer for foreground calls."""
        if self.is_due():
            await asyncio.sleep(_REST_SECONDS)
            for _ in range(_MOST_RESTS):
                if not FOREGROUND.calls:
                    break
                await asyncio.sleep(_REST_SECONDS)
            self._began = time.perf_counter()


def at_once(steps: Generator[None, None, _T]) -> _T:
    """Run a sliced computation without pauses and return its result."""
    while True:
        try:
            next(steps)
        except StopIteration as done:
            result: _T = done.value
            return result


async def compute_in_slices(steps: Callable[[_R], Generator[None, None, _T]], request: _R) -> _T:
    """Compute in this process by a function that yields between small steps; others run there."""
    pacer, computation = Pacer(), steps(request)
    while True:
        try:
            next(computation)
        except StopIteration as done:
            result: _T = done.value
            return result
        if pacer.is_due():
            await pacer.pause()
