"""Writes that a reader can do without, such as filling an index or moving a cursor."""

import asyncio
from collections.abc import Awaitable
from typing import TypeVar

from remanence.errors import StoreUnavailable

T = TypeVar("T")

PATIENCE_SECONDS = 0.25
"""How long a reader waits for such a write: some commits of a slow disk, no lock of another."""


async def write_if_possible(write: Awaitable[T]) -> T | None:
    """The result of *write*; None where the store cannot be written now.

    A write that takes too long is given up, or is made after the reader has gone on.
    """
    try:
        async with asyncio.timeout(PATIENCE_SECONDS):
            return await write
    except (StoreUnavailable, TimeoutError):
        return None
