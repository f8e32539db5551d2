"""Running long computations in slices, so that they do not block the event loop."""

import asyncio
import threading
import time
from collections.abc import Callable, Generator
from typing import Final, TypeVar

_R = TypeVar("_R")
_T = TypeVar("_T")
_SLICE_SECONDS = 0.001
_SLEEP_SECONDS = 0.001
"""A real sleep, as `sleep(0)` is not enough: a store's thread needs the GIL several times per job,
and gets it only every 5 ms from a loop that never sleeps."""
_MAX_SLEEPS = 10
"""Limit of consecutive sleeps while foreground calls keep coming, so that background work advances."""


class _Foreground(threading.local):
    """A reentrant context that counts its entries per thread, and so per event loop."""

    calls = 0

    def __enter__(self) -> None:
        self.calls += 1

    def __exit__(self, *_: object) -> None:
        self.calls -= 1


FOREGROUND: Final = _Foreground()
"""Code in this context has priority over sliced computations on the same event loop."""


class Pacer:
    """Paces a loop: `pause` returns at once unless a time slice has passed."""

    def __init__(self) -> None:
        self._began = time.perf_counter()

    def is_due(self) -> bool:
        """Return whether a time slice has passed since the last pause."""
        return time.perf_counter() - self._began > _SLICE_SECONDS

    async def pause(self) -> None:
        """Let other tasks run if a pause is due, and longer for foreground calls."""
        if self.is_due():
            await asyncio.sleep(_SLEEP_SECONDS)
            for _ in range(_MAX_SLEEPS):
                if not FOREGROUND.calls:
                    break
                await asyncio.sleep(_SLEEP_SECONDS)
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
    """Run a stepwise computation on this event loop, letting other tasks run between slices."""
    pacer, computation = Pacer(), steps(request)
    while True:
        try:
            next(computation)
        except StopIteration as done:
            result: _T = done.value
            return result
        if pacer.is_due():
            await pacer.pause()
