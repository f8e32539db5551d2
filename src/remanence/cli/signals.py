"""Signals that end a service."""

import asyncio
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

from remanence.telemetry import logger


@contextmanager
def ending_on_signals() -> Iterator[asyncio.Event]:
    """Yield an event that SIGINT and SIGTERM set, instead of ending the process."""
    ending, loop = asyncio.Event(), asyncio.get_running_loop()

    def end(_number: int, _frame: FrameType | None) -> None:
        loop.call_soon_threadsafe(begin_to_end)

    def begin_to_end() -> None:
        if not ending.is_set():
            logger.info("shutting down: steps and requests in progress have some seconds left")
        ending.set()

    before = {number: signal.signal(number, end) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield ending
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
