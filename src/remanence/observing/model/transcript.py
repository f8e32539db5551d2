"""Messages as a model reads them: numbered, dated, without secrets, and cut to fit."""

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import NamedTuple, assert_never

from remanence.observing.model.prompting import Entry
from remanence.observing.notes import one_line
from remanence.observing.secrets import scrubbed
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

RESULT_TOKENS = 500
"""Of a longer tool result the head and the tail are shown: its outcome is wanted, not its bulk."""

ARGUMENT_TOKENS = 200
LEAST_TOKENS = 16
PAUSE_SECONDS = 3_600.0
_WIDEST = 16
_LEAST_CHARACTERS = 48
_LONGEST_NAME = 80
_WEEKDAYS = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")


class Shown(NamedTuple):
    """A message as it is shown, and what of it a person or the model wrote: no tool results."""

    message: Message
    entry: Entry
    said: str


def transcript(
    messages: Sequence[Message], *, message_tokens: int, room_tokens: int, count: CountTokens
) -> tuple[Shown, ...]:
    """The messages within *room_tokens*, one of them within *message_tokens*.

    What is too long is shown as a marked excerpt of its head and tail; where all together are too
    long, the longest give way first. Each message keeps at least `LEAST_TOKENS`.
    """
    tools = {call.id: call.name for message in messages for call in message.tool_calls}
    whole: list[Shown] = []
    earlier: datetime | None = None
    for message in messages:
        parts = [(part, _part(part, tools, message_tokens, count)) for part in message.content]
        said = "\n".join(text for part, text in parts if isinstance(part, TextPart | ToolCallPart))
        body = shortened("\n".join(text for _, text in parts), message_tokens, count)
        whole.append(Shown(message, Entry(_head(message, earlier), body), said))
        earlier = message.created_at or earlier
    room = room_tokens - sum(count(shown.entry.head) + LEAST_TOKENS // 2 for shown in whole)
    level = _level([count(shown.entry.body) for shown in whole], room)
    return tuple(
        shown._replace(entry=Entry(shown.entry.head, shortened(shown.entry.body, level, count)))
        for shown in whole
    )


def shortened(text: str, most_tokens: int, count: CountTokens) -> str:
    """The text without secrets, above *most_tokens* only its head and tail with a mark between."""
    reach = most_tokens * _WIDEST
    if len(text) > 2 * reach:
        # A secret cut in half where these pieces end is no longer found, but not shown either.
        head, tail = scrubbed(text[:reach]), scrubbed(text[-reach:])
        characters = reach // 2
    else:
        head = tail = text = scrubbed(text)
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
    first = characters * 2 // 3
    last = characters - first
    return f"{head[:first]}\n[… {length - characters:,} characters left out …]\n{tail[-last:]}"


def _level(sizes: Sequence[int], room: int) -> int:
    """The size under which *sizes*, cut to it, fit *room*; at least `LEAST_TOKENS`."""
    ascending = sorted(sizes)
    for index, size in enumerate(ascending):
        share = room // (len(ascending) - index)
        if size > share:
            return max(LEAST_TOKENS, share)
        room -= size
    return max(LEAST_TOKENS, ascending[-1] if ascending else 0)


def _head(message: Message, earlier: datetime | None) -> str:
    who = message.role if message.name is None else f"{message.role} {_label(message.name)}"
    pieces = [f"#{message.seq}", who]
    if message.created_at is not None:
        at = message.created_at.astimezone(UTC)
        pieces.append(f"{at:%Y-%m-%d} {_WEEKDAYS[at.weekday()]} {at:%H:%M}")
        pieces += _pause(earlier, message.created_at)
    return " | ".join(pieces)


def _label(name: str) -> str:
    return one_line(scrubbed(name[: 2 * _LONGEST_NAME]))[:_LONGEST_NAME]


def _pause(earlier: datetime | None, later: datetime) -> list[str]:
    seconds = (later - earlier).total_seconds() if earlier else 0.0
    if seconds < PAUSE_SECONDS:
        return []
    for unit, size in (("day", 86_400), ("hour", 3_600)):
        number = round(seconds / size)
        if seconds >= size:
            return [f"after a pause of {number} {unit}{'s' if number > 1 else ''}"]
    return []


def _part(part: Part, tools: dict[str, str], most_tokens: int, count: CountTokens) -> str:
    match part:
        case TextPart():
            return shortened(part.text, most_tokens, count)
        case ToolCallPart():
            arguments = shortened(part.arguments, ARGUMENT_TOKENS, count)
            return f"[calls {_label(part.name)} {arguments}]"
        case ToolResultPart():
            name = tools.get(part.call_id)
            of = f" of {_label(name)}" if name else ""
            body = "\n".join(_part(inner, tools, RESULT_TOKENS, count) for inner in part.content)
            error = ", an error" if part.is_error else ""
            return f"[result{of}{error}] {shortened(body, RESULT_TOKENS, count)}"
        case ImagePart():
            return "[image]"
        case FilePart():
            return f"[file {_label(part.name)}]" if part.name else "[file]"
        case OtherPart():
            return "[content of another kind]"
        case _:
            assert_never(part)
