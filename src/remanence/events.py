"""Following events of an open memory as they are committed, and delivering them to consumers."""

import asyncio
import math
from collections import defaultdict
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from typing import Final

from remanence.arguments import is_plain
from remanence.background import Pauses
from remanence.runtime import Runtime
from remanence.types import Event, EventType

POLL_SECONDS: Final = 0.5
"""The longest delay between a commit and its event reaching a follower."""

_FIRST_POLL_SECONDS: Final = 0.05
_PAGE: Final = 200


async def follow(
    runtime: Runtime,
    tenant: str,
    *,
    after: int | None,
    conversation: str | None,
    types: Sequence[EventType],
) -> AsyncGenerator[Event, None]:
    """Yield events above *after*, by default new ones, as they come; raise `Closed` on closing."""
    pause_seconds = _FIRST_POLL_SECONDS
    while True:
        runtime.check_open()
        page = await runtime.store.events(
            tenant, after=after, limit=_PAGE, conversation=conversation, types=types
        )
        for event in page.events:
            yield event
        after = page.last
        if page.events:
            pause_seconds = _FIRST_POLL_SECONDS
            continue
        await asyncio.sleep(pause_seconds)
        pause_seconds = min(2 * pause_seconds, POLL_SECONDS)


async def deliver(
    runtime: Runtime, consumer: str, send: Callable[[Event], Awaitable[None] | None]
) -> None:
    """Call *send* with each undelivered event of all tenants, until cancelled.

    If *send* raises, the event is sent again after a growing pause of up to a minute, while later
    events of its tenant wait.
    """
    store, name, now = runtime.store, f"delivery to {consumer}", asyncio.get_running_loop().time
    reading, sending, ends = Pauses(), defaultdict[str, Pauses](Pauses), dict[str, float]()
    while True:
        runtime.check_open()
        ends = {tenant: end for tenant, end in ends.items() if end > now()}
        try:
            events = await store.pending_events(consumer, limit=_PAGE, without=ends)
        except Exception as error:  # noqa: BLE001 - whatever it is, events are still to be sent
            await asyncio.sleep(reading.after(name, error))
            continue
        reading.reset()
        for event in events:
            if event.tenant in ends:
                continue
            try:
                sent = await asyncio.to_thread(send, event) if is_plain(send) else send(event)
                if sent is not None:
                    await sent
                await store.mark_delivered(consumer, event)
                sending.pop(event.tenant, None)
            except Exception as error:  # noqa: BLE001 - whatever it is, the event is still to be sent
                ends[event.tenant] = now() + sending[event.tenant].after(name, error)
        if not events:
            next_end = min(ends.values(), default=math.inf)
            await asyncio.sleep(min(POLL_SECONDS, max(0, next_end - now())))
