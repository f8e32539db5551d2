"""The observable part of a conversation, without injected memory and the host's control text."""

import asyncio
import re
from collections.abc import Sequence
from dataclasses import replace

from remanence.notes.elements import replace_elements
from remanence.notes.program_text import own_text
from remanence.notes.redact import redact
from remanence.pacing import Pacer
from remanence.types import Message, Part, TextPart, ToolCallPart, ToolResultPart
from remanence.wire.content import read_result_parts
from remanence.wire.turns import VOLATILE_TAG

_CONTROL = re.compile(rf"<({VOLATILE_TAG}|system-reminder)>")
_DIRECTION = re.compile("[\u202a-\u202e\u2066-\u2069]")
"""Embeddings, overrides and isolates, which would reorder what a note shows behind its piece of the
text; the marks beside letters of Arabic and Hebrew are others.
"""

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


def observable(messages: Sequence[Message]) -> tuple[Message, ...]:
    """Return the messages of people, models and tools without memory, text of programs and secrets."""
    seen: list[Message] = []
    for message in messages:
        if message.kind != "message" or message.role == "system":
            continue
        parts = message.content if message.role == "assistant" else map(_own_part, message.content)
        content = tuple(map(_clean_part, parts))
        if any(not isinstance(part, TextPart) or part.text.strip() for part in content):
            seen.append(message if content == message.content else message.replace(content=content))
    return tuple(seen)


def _own_part(part: Part) -> Part:
    """Return a part of a user's message without the text of the user's program."""
    return TextPart(text=own_text(part.text)) if isinstance(part, TextPart) else part


def _clean_part(part: Part) -> Part:
    match part:
        case TextPart():
            text = replace_elements(part.text, _CONTROL, "")
            return TextPart(text=redact(_DIRECTION.sub("", text)))
        case ToolCallPart():
            return replace(part, arguments=redact(part.arguments))
        case ToolResultPart():
            content = read_result_parts(map(_clean_part, part.content), part.call_id)
            return replace(part, content=content)
        case _:
            return part
