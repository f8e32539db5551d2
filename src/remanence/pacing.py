"""Running a long computation in slices, so that an event loop is not held up."""

import asyncio
import threading
import time
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from typing import TypeVar

_T = TypeVar("_T")
_SLICE_SECONDS = 0.001
_REST_SECONDS = 0.001
"""A rest and no mere yield: a store's thread needs the interpreter several times for one job, and
gets it only every 5 ms from a loop that never sleeps."""
_MOST_RESTS = 10
"""In a row, where somebody always waits: work in the background goes on, if slowly."""


class _Foreground(threading.local):
    """The calls that somebody waits for, on the event loop of each thread."""

    calls = 0


_foreground = _Foreground()


@contextmanager
def give_priority() -> Iterator[None]:
    """Somebody waits for the body: what runs in slices on the same event loop gives way to it."""
    _foreground.calls += 1
    try:
        yield
    finally:
        _foreground.calls -= 1


class Pacer:
    """Tells a loop when to let others run: a pause returns at once unless a slice of time passed."""

    def __init__(self) -> None:
        self._began = time.perf_counter()

    def is_due(self) -> bool:
        """Whether a slice of time passed since the last pause."""
        return time.perf_counter() - self._began > _SLICE_SECONDS

    async def pause(self) -> None:
        """Let others run if it is due, and longer while somebody waits for them."""
        if self.is_due():
            await asyncio.sleep(_REST_SECONDS)
            for _ in range(_MOST_RESTS):
                if not _foreground.calls:
                    break
                await asyncio.sleep(_REST_SECONDS)
            self._began = time.perf_counter()


def at_once(steps: Generator[None, None, _T]) -> _T:
    """The result of a computation that nobody interrupts."""
    while True:
        try:
            next(steps)
        except StopIteration as done:
            result: _T = done.value
            return result


async def in_slices(steps: Generator[None, None, _T]) -> _T:
    """Run a computation that yields between small steps; others run in between."""
    pacer = Pacer()
    while True:
        try:
            next(steps)
        except StopIteration as done:
            result: _T = done.value
            return result
        if pacer.is_due():
            await pacer.pause()
