"""What of a conversation may be observed: not the memory itself, nor the host's control text."""

import re
from collections.abc import Iterator, Sequence

from remanence.observing.turns import VOLATILE_TAG
from remanence.types import Message, TextPart

_CONTROL = re.compile(rf"<({VOLATILE_TAG}|system-reminder)>.*?</\1>\s*", re.DOTALL)


def observable(messages: Sequence[Message]) -> tuple[Message, ...]:
    """The messages that people, models and tools wrote, without injected memory and reminders."""
    return tuple(_observable(messages))


def _observable(messages: Sequence[Message]) -> Iterator[Message]:
    for message in messages:
        if message.kind != "message" or message.role == "system":
            continue
        if "</" not in message.text:
            yield message
            continue
        content = tuple(
            TextPart(text=_CONTROL.sub("", part.text)) if isinstance(part, TextPart) else part
            for part in message.content
        )
        if any(not isinstance(part, TextPart) or part.text.strip() for part in content):
            yield message.replace(content=content)
