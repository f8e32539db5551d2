"""The deadline of a step, which the models of a chain share."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from contextvars import ContextVar

_deadline: ContextVar[float | None] = ContextVar("deadline", default=None)


@asynccontextmanager
async def step_timeout(seconds: float) -> AsyncIterator[None]:
    """Raise `TimeoutError` if the block takes longer; `seconds_left` counts down within it."""
    async with asyncio.timeout(seconds) as limit:
        token = _deadline.set(limit.when())
        try:
            yield
        finally:
            _deadline.reset(token)


def seconds_left() -> float | None:
    """Return the seconds until the deadline of this task's step; None outside of steps."""
    deadline = _deadline.get()
    return None if deadline is None else max(0.0, deadline - asyncio.get_running_loop().time())
