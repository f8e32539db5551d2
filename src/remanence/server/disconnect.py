"""Cancellation of work when its client disconnects."""

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

from starlette.types import Receive

T = TypeVar("T")


async def run_while_connected(receive: Receive, work: Coroutine[Any, Any, T]) -> T | None:
    """Return the result of *work*; if the client disconnects first, cancel it and return None.

    The body of the request must have been read.
    """

    async def wait_for_disconnect() -> None:
        while (await receive())["type"] != "http.disconnect":
            pass

    async with asyncio.TaskGroup() as group:
        working = group.create_task(work, name="remanence-working")
        leaving = group.create_task(wait_for_disconnect(), name="remanence-leaving")
        await asyncio.wait({working, leaving}, return_when=asyncio.FIRST_COMPLETED)
        working.cancel()
        leaving.cancel()
    return None if working.cancelled() else working.result()
