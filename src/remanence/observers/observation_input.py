"""Prepares messages for observation without blocking the event loop."""

import asyncio
from collections.abc import Sequence

from remanence.observers.observable import observable
from remanence.pacing import Pacer
from remanence.types import Message

LONG_TEXT = 5_000
"""Characters from which secrets are looked for in a thread."""


async def observable_messages(messages: Sequence[Message]) -> tuple[Message, ...]:
    """Return the observable messages, prepared one by one so that other tasks get their turn."""
    prepared: list[Message] = []
    pacer = Pacer()
    for message in messages:
        if len(message.full_text) > LONG_TEXT:
            prepared += await asyncio.to_thread(observable, (message,))
        else:
            prepared += observable((message,))
        await pacer.pause()
    return tuple(prepared)
