"""Gauges of the due work, as last read from the store."""

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from typing import Final

from opentelemetry import metrics

from remanence.errors import StoreError
from remanence.types import Backlog

STORE_SECONDS: Final = 5.0
"""Seconds within which the store must answer."""

_latest: Backlog | None = None


async def refresh_backlog(read: Callable[[], Awaitable[Backlog]]) -> None:
    """Set the gauges, which are not exported while the store cannot be read."""
    global _latest  # noqa: PLW0603 - gauges belong to the process, as all instruments do
    try:
        async with asyncio.timeout(STORE_SECONDS):
            _latest = await read()
    except (StoreError, TimeoutError):
        _latest = None


def _gauge(name: str, unit: str, value: Callable[[Backlog], float]) -> None:
    def observe(_: metrics.CallbackOptions) -> Iterable[metrics.Observation]:
        return [] if _latest is None else [metrics.Observation(value(_latest))]

    _meter.create_observable_gauge(name, unit=unit, callbacks=[observe])


_meter = metrics.get_meter("remanence")
_gauge("remanence.backlog.conversations", "{conversation}", lambda backlog: backlog.conversations)
_gauge("remanence.backlog.tokens", "{token}", lambda backlog: backlog.tokens)
_gauge("remanence.backlog.age", "s", lambda backlog: backlog.age_seconds)
