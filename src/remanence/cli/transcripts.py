"""Transcripts: files of messages as OpenAI or Anthropic write them, read into our words.

The seq of a message is its 1-based position among the messages of the file.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

from remanence.cli.transcript_lines import Record, quoted, records
from remanence.errors import InvalidMessage, MalformedTranscript
from remanence.types import Message, TextPart, check_message

JsonObject = dict[str, Any]  # a transcript's JSON: its shape is its writer's

EMPTY_MESSAGE = "[empty message]"
"""Stands for a message without content, so that the numbers of the others stay."""

MAX_MESSAGE_BYTES = 16 * 1024 * 1024
TIME_KEYS = ("created_at", "timestamp")
SESSION_TIME_KEYS = (*TIME_KEYS, "date")
_MILLISECONDS_FROM = 1e11
_ANTHROPIC_BLOCKS = {
    "container_upload",
    "document",
    "image",
    "mcp_tool_result",
    "mcp_tool_use",
    "redacted_thinking",
    "search_result",
    "server_tool_use",
    "thinking",
    "tool_result",
    "tool_use",
    "web_search_tool_result",
}


class Entry(NamedTuple):
    """A message of a transcript: where it stands, and whether it had no content."""

    place: str
    session: str
    message: Message
    empty: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Transcript:
    """A file that was read to its end and holds only good messages.

    `entries` reads it again, message by message, so that a large one never stands in memory.
    """

    path: Path
    name: str
    messages: int
    sessions: int
    empty_places: tuple[str, ...]
    last_at: datetime | None

    def entries(self) -> Iterator[Entry]:
        with _opened(self.path) as file:
            yield from entries(file, name=self.name)


def open_transcript(path: Path) -> Transcript:
    """Read the whole file once, to know that nothing in it will be refused later.

    Raises:
        MalformedTranscript: it cannot be read, or a line is no message; the text names the line.
    """
    name = path.name
    count = sessions = 0
    session: str | None = None
    empty: list[str] = []
    last_at: datetime | None = None
    with _opened(path) as file:
        for entry in entries(file, name=name):
            count += 1
            sessions += entry.session != session
            session = entry.session
            last_at = entry.message.created_at or last_at
            if entry.empty:
                empty.append(entry.place)
    if not count:
        raise MalformedTranscript(f"{name} holds no message: write one message on each line")
    return Transcript(
        path=path,
        name=name,
        messages=count,
        sessions=sessions,
        empty_places=tuple(empty),
        last_at=last_at,
    )


def entries(lines: Iterable[bytes], *, name: str) -> Iterator[Entry]:
    """The messages in *lines*, in order, each under the id `transcript:<position>`.

    Raises:
        MalformedTranscript: a line is no message, or its tool result answers no earlier call.
    """
    calls: set[str] = set()
    for position, record in enumerate(records(lines, name=name), start=1):
        try:
            message, empty = _message(record, position)
            _check_results(message, calls)
        except InvalidMessage as error:
            raise MalformedTranscript(f"{name}, {record.place}: {error}") from error
        calls.update(call.id for call in message.tool_calls)
        yield Entry(record.place, record.session, message, empty)


def instant(value: object, key: str) -> datetime:
    """A time from ISO 8601 text (UTC where it names no zone) or from seconds since 1970."""
    try:
        if isinstance(value, str):
            read = datetime.fromisoformat(value.strip())
            aware = read if read.tzinfo else read.replace(tzinfo=UTC)
            aware.astimezone(UTC)
            return aware
        if isinstance(value, int | float) and not isinstance(value, bool):
            seconds = value / 1000 if abs(value) >= _MILLISECONDS_FROM else value
            return datetime.fromtimestamp(seconds, UTC)
    except (ValueError, OverflowError, OSError):
        pass
    raise InvalidMessage(
        f"{key} {quoted(value)} is no time: write ISO 8601, such as '2026-03-02T09:12:17+01:00'"
    )


def _opened(path: Path) -> Any:  # a binary file: its class is an implementation detail of open
    try:
        return path.open("rb")
    except OSError as error:
        raise MalformedTranscript(
            f"{str(path)!r} cannot be read ({error.strerror}): name a file of messages"
        ) from error


def _message(record: Record, position: int) -> tuple[Message, bool]:
    data = record.value
    _check_shape(data)
    message = (Message.from_anthropic if _is_anthropic(data) else Message.from_openai)(data)
    empty = _is_blank(message)
    message = message.replace(
        id=f"transcript:{position}", name=_name(data), created_at=_created_at(record)
    )
    if empty:
        message = message.replace(content=(TextPart(text=EMPTY_MESSAGE),), kind="control")
    check_message(message, max_bytes=MAX_MESSAGE_BYTES)
    return message, empty


def _check_shape(data: JsonObject) -> None:
    calls = data.get("tool_calls")
    if calls is not None and not isinstance(calls, list):
        raise InvalidMessage(f"tool_calls {quoted(calls)} is not a list: write a list of calls")
    if "role" not in data:
        raise InvalidMessage(f'{quoted(data)} has no role: add "role": "user" or \'assistant\'')
    if "content" not in data and not calls and not data.get("refusal"):
        raise InvalidMessage(f'{quoted(data)} has no content: add "content": "..."')


def _is_anthropic(data: JsonObject) -> bool:
    content = data.get("content")
    return isinstance(content, list) and any(
        isinstance(block, dict) and block.get("type") in _ANTHROPIC_BLOCKS for block in content
    )


def _is_blank(message: Message) -> bool:
    return all(isinstance(part, TextPart) and not part.text.strip() for part in message.content)


def _name(data: JsonObject) -> str | None:
    name = data.get("name")
    if name is not None and not isinstance(name, str):
        raise InvalidMessage(f"name {quoted(name)} is not a string: write text or leave it out")
    return name or None


def _created_at(record: Record) -> datetime | None:
    for key in TIME_KEYS:
        if record.value.get(key) is not None:
            return instant(record.value[key], key)
    for outer in reversed(record.outer):
        for key in SESSION_TIME_KEYS:
            if outer.get(key) is not None:
                return instant(outer[key], f"the session's {key}")
    return None


def _check_results(message: Message, calls: set[str]) -> None:
    for result in message.tool_results:
        if result.call_id not in calls:
            raise InvalidMessage(
                f"the tool result answers call {result.call_id!r}, which no earlier message "
                "makes: add the assistant's message with that call, or take the result out"
            )
