"""What may be observed of messages, made without holding up the event loop."""

import asyncio
from collections.abc import Sequence

from remanence.observers.observable import observable
from remanence.pacing import Pacer
from remanence.types import Message

LONG_TEXT = 5_000
"""Characters from which looking for secrets leaves the event loop."""


async def observable_messages(messages: Sequence[Message]) -> tuple[Message, ...]:
    """The messages without what may not be observed, made one by one so that others go on."""
    seen: list[Message] = []
    pacer = Pacer()
    for message in messages:
        if len(message.full_text) > LONG_TEXT:
            seen += await asyncio.to_thread(observable, (message,))
        else:
            seen += observable((message,))
        await pacer.pause()
    return tuple(seen)
