"""Messages as a model reads them: numbered, dated, without secrets, and cut to fit."""

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from typing import NamedTuple, assert_never

from remanence.dates.local_time import local_times
from remanence.notes import one_line
from remanence.notes.excerpts import beginning, ending
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
from remanence.wire.parts import ROLES

RESULT_TOKENS = 500
"""Of a longer tool result the head and the tail are shown: its outcome is wanted, not its bulk."""

ARGUMENT_TOKENS = 200
LEAST_TOKENS = 16
_WIDEST = 16
_LEAST_CHARACTERS = 48
_LONGEST_NAME = 80
_HEADING_TOKENS = 4
"""A time heading stands above some messages only."""


class Shown(NamedTuple):
    """A message as it is shown, its time by the user's clock, and what a person or model wrote."""

    message: Message
    at: datetime | None
    entry: Entry
    said: str


def transcript(
    messages: Sequence[Message], *, message_tokens: int, room_tokens: int, count: CountTokens
) -> tuple[Shown, ...]:
    """The messages within *room_tokens*, one of them within *message_tokens*.

    What is too long is shown as a marked excerpt of its head and tail; where all together are too
    long, the longest give way first. Each message keeps at least `LEAST_TOKENS`.
    """
    whole = tuple(_whole(messages, message_tokens, count))
    room = room_tokens - sum(
        count(shown.entry.head) + _HEADING_TOKENS + LEAST_TOKENS // 2 for shown in whole
    )
    level = _level([count(shown.entry.body) for shown in whole], room)
    return tuple(
        shown._replace(entry=Entry(shown.entry.head, shorten(shown.entry.body, level, count)))
        for shown in whole
    )


def _whole(messages: Sequence[Message], most_tokens: int, count: CountTokens) -> Iterator[Shown]:
    times = local_times(messages)
    tools: dict[str, str] = {}
    for message, head in zip(messages, _heads(messages), strict=True):
        # Ids of calls may come again: a result belongs to the latest call before it.
        tools.update((call.id, call.name) for call in message.tool_calls)
        parts = [(part, _part(part, tools, most_tokens, count)) for part in message.content]
        said = "\n".join(text for part, text in parts if isinstance(part, TextPart | ToolCallPart))
        body = shorten("\n".join(text for _, text in parts), most_tokens, count)
        yield Shown(message, times.get(message.seq), Entry(head, body), said)


def shorten(text: str, most_tokens: int, count: CountTokens) -> str:
    """The text without secrets, above *most_tokens* only its head and tail with a mark between."""
    reach = most_tokens * _WIDEST
    if len(text) > 2 * reach:
        # A secret cut in half where these pieces end is no longer found, but not shown either.
        head, tail = redact(text[:reach]), redact(text[-reach:])
        characters = reach // 2
    else:
        head = tail = text = redact(text)
        tokens = count(text)
        if tokens <= most_tokens:
            return text
        characters = max(1, len(text) * most_tokens // tokens)
    while True:
        short = _head_and_tail(head, tail, len(text), characters)
        tokens = count(short)
        if tokens <= most_tokens or characters <= _LEAST_CHARACTERS:
            return short
        shrunk = int(characters * min(0.8, most_tokens / tokens))
        characters = max(_LEAST_CHARACTERS, shrunk)


def _head_and_tail(head: str, tail: str, length: int, characters: int) -> str:
    first = beginning(head, characters * 2 // 3)
    last = ending(tail, characters - characters * 2 // 3)
    left_out = length - len(first) - len(last)
    return f"{first}\n[… {left_out:,} characters left out …]\n{last}"


def _level(sizes: Sequence[int], room: int) -> int:
    """The size under which *sizes*, cut to it, fit *room*; at least `LEAST_TOKENS`."""
    ascending = sorted(sizes)
    for index, size in enumerate(ascending):
        share = room // (len(ascending) - index)
        if size > share:
            return max(LEAST_TOKENS, share)
        room -= size
    return max(LEAST_TOKENS, ascending[-1] if ascending else 0)


def _heads(messages: Sequence[Message]) -> Iterator[str]:
    """The number and speaker of each message; a name has its role with it where it first stands."""
    introduced: dict[str, str] = {}
    for message in messages:
        who: str = message.role
        if message.name:
            name = _label(message.name)
            is_known = introduced.get(name) == message.role and name not in ROLES
            introduced[name] = message.role
            who = name if is_known else f"{message.role} {name}"
        yield f"#{message.seq} {who}:"


def _label(name: str) -> str:
    return one_line(redact(name[: 2 * _LONGEST_NAME]))[:_LONGEST_NAME]


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
