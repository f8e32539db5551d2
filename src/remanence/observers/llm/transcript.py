"""Messages as shown to a model: numbered, dated, redacted and shortened to fit."""

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from typing import NamedTuple, assert_never

from remanence.dates.local_time import local_times
from remanence.notes.excerpts import beginning, ending, fair_share
from remanence.notes.redact import redact
from remanence.observers.llm.prompt import Entry
from remanence.protocols import CountTokens
from remanence.types import (
    FilePart,
    ImagePart,
    Message,
    OtherPart,
    Part,
    TextPart,
    ToolCallPart,
    ToolResultPart,
)
from remanence.wire.parts import MAX_LABEL, MAX_NAME, ROLES, label, speaker_label

RESULT_TOKENS = 500
"""Longer tool results are shortened to their head and tail."""

ARGUMENT_TOKENS = 200
MIN_TOKENS = 16
_MAX_TOKEN_CHARACTERS = 16
_MIN_CHARACTERS = 48
_HEADING_TOKENS = 4
"""An average: only some messages have a time heading."""


class Shown(NamedTuple):
    """A message with its local time, its entry, and its text and tool calls (`said`)."""

    message: Message
    at: datetime | None
    entry: Entry
    said: str


def transcript(
    messages: Sequence[Message], *, message_tokens: int, room_tokens: int, count: CountTokens
) -> tuple[Shown, ...]:
    """Shorten the messages to *room_tokens* in all and *message_tokens* each.

    A message that is too long becomes a marked excerpt of its head and tail. If they are too long
    together, the longest are shortened first. Each message keeps at least `MIN_TOKENS`.
    """
    whole = tuple(_whole(messages, message_tokens, count))
    room = room_tokens - sum(
        count(shown.entry.head) + _HEADING_TOKENS + MIN_TOKENS // 2 for shown in whole
    )
    level = max(MIN_TOKENS, fair_share((count(shown.entry.body) for shown in whole), room))
    return tuple(
        shown._replace(entry=Entry(shown.entry.head, shorten(shown.entry.body, level, count)))
        for shown in whole
    )


def _whole(messages: Sequence[Message], most_tokens: int, count: CountTokens) -> Iterator[Shown]:
    times = local_times(messages)
    tools: dict[str, str] = {}
    for message, head in zip(messages, _heads(messages), strict=True):
        # Call ids may be reused: a result belongs to the latest call before it.
        tools.update((call.id, call.name) for call in message.tool_calls)
        parts = [(part, _part(part, tools, most_tokens, count)) for part in message.content]
        said = "\n".join(text for part, text in parts if isinstance(part, TextPart | ToolCallPart))
        body = shorten("\n".join(text for _, text in parts), most_tokens, count)
        yield Shown(message, times.get(message.seq), Entry(head, body), said)


def shorten(text: str, most_tokens: int, count: CountTokens) -> str:
    """Redact a text and, above *most_tokens*, reduce it to its head and tail with a mark between."""
    reach = most_tokens * _MAX_TOKEN_CHARACTERS
    if len(text) > 2 * reach:
        # A secret cut in half at the edge of these pieces goes undetected, but is not shown either.
        head, tail = redact(text[:reach]), redact(text[-reach:])
        characters = reach // 2
    else:
        head = tail = text = redact(text)
        tokens = count(text)
        if tokens <= most_tokens:
            return text
        characters = max(1, len(text) * most_tokens // tokens)
    while True:
        first = beginning(head, characters * 2 // 3)
        last = ending(tail, characters - characters * 2 // 3)
        left_out = len(text) - len(first) - len(last)
        short = f"{first}\n[… {left_out:,} characters left out …]\n{last}"
        tokens = count(short)
        if tokens <= most_tokens or characters <= _MIN_CHARACTERS:
            return short
        shrunk = int(characters * min(0.8, most_tokens / tokens))
        characters = max(_MIN_CHARACTERS, shrunk)


def _heads(messages: Sequence[Message]) -> Iterator[str]:
    """Yield the number and speaker of each message; a name first appears with its role."""
    introduced: dict[str, str] = {}
    for message in messages:
        who: str = message.role
        if message.name and (name := speaker_label(redact(message.name[:MAX_NAME]))):
            is_known = introduced.get(name) == message.role and name.casefold() not in ROLES
            introduced[name] = message.role
            who = name if is_known else f"{message.role} {name}"
        yield f"#{message.seq} {who}:"


def _label(name: str) -> str:
    return label(redact(name[: 2 * MAX_LABEL]))


def _part(part: Part, tools: Mapping[str, str], most_tokens: int, count: CountTokens) -> str:
    match part:
        case TextPart():
            return shorten(part.text, most_tokens, count)
        case ToolCallPart():
            arguments = shorten(part.arguments, ARGUMENT_TOKENS, count)
            return f"[calls {_label(part.name)} {arguments}]"
        case ToolResultPart():
            name = tools.get(part.call_id)
            of = f" of {_label(name)}" if name else ""
            body = "\n".join(_part(inner, tools, RESULT_TOKENS, count) for inner in part.content)
            error = ", an error" if part.is_error else ""
            return f"[result{of}{error}] {shorten(body, RESULT_TOKENS, count)}"
        case ImagePart():
            return "[image]"
        case FilePart():
            return f"[file {_label(part.name)}]" if part.name else "[file]"
        case OtherPart():
            return "[content of another kind]"
        case _:
            assert_never(part)
