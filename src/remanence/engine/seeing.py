"""What may be observed of messages, made without holding up the event loop."""

from collections.abc import Sequence

from remanence.observing.observable import observable
from remanence.observing.slicing import Pacer
from remanence.types import Message


async def seen_messages(messages: Sequence[Message]) -> tuple[Message, ...]:
    """The messages without what may not be observed, made one by one so that others go on."""
    seen: list[Message] = []
    pacer = Pacer()
    for message in messages:
        seen += observable((message,))
        await pacer.pause()
    return tuple(seen)
