"""Optional writes of a reader, such as filling an index or moving a cursor."""

import asyncio
from collections.abc import Awaitable
from typing import TypeVar

from remanence.errors import StoreUnavailable

T = TypeVar("T")

PATIENCE_SECONDS = 0.25
"""Seconds that a reader waits: enough for commits to a slow disk, too short to wait out a lock."""


async def write_if_possible(write: Awaitable[T]) -> T | None:
    """Return the result of *write*; None if the store cannot be written now.

    A write that takes too long is abandoned, or completes later without the reader.
    """
    try:
        async with asyncio.timeout(PATIENCE_SECONDS):
            return await write
    except (StoreUnavailable, TimeoutError):
        return None
