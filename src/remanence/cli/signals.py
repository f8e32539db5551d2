"""Signals that end a service."""

import asyncio
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType


@contextmanager
def ending_on_signals() -> Iterator[asyncio.Event]:
    """Yield an event that SIGINT and SIGTERM set, instead of ending the process."""
    ending, loop = asyncio.Event(), asyncio.get_running_loop()

    def end(_number: int, _frame: FrameType | None) -> None:
        loop.call_soon_threadsafe(ending.set)

    before = {number: signal.signal(number, end) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield ending
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
