"""Transcripts: files of messages in the format of OpenAI, Anthropic or Gemini.

The seq of a message is its 1-based position among the messages of the file.
"""

import re
import signal
import sys
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, replace
from datetime import UTC, datetime, tzinfo
from pathlib import Path
from typing import BinaryIO, NamedTuple

from remanence.cli.chat_exports import read_export
from remanence.cli.coding_sessions import SessionReader
from remanence.cli.options import STDIN
from remanence.cli.transcript_lines import FORMATS, Record, records
from remanence.dates.local_time import to_zone
from remanence.errors import InvalidMessage, MalformedTranscript
from remanence.types import Message, MessageKind, TextPart, check_message
from remanence.wire.json_value import JsonObject, quote
from remanence.wire.nameless_calls import OpenCalls
from remanence.wire.openai import MESSAGE_FIELDS

EMPTY_MESSAGE = "[empty message]"
"""Stands in for a message without content, so that the others keep their numbers."""

ID_PREFIX = "transcript:"
"""Prefix of message ids, followed by the position, so that a replay can be repeated or resumed."""

MAX_MESSAGE_BYTES = 16 * 1024 * 1024
TIME_KEYS = ("created_at", "createdAt", "create_time", "timestamp", "date")
_MILLISECONDS_FROM = 1e11
_EPOCH = re.compile(r"[0-9]{10}(?:\.[0-9]+)?|[0-9]{13}")  # in seconds or milliseconds
_LEAP_SECOND = re.compile(r"(?<=[Tt ]\d\d:\d\d:)60")
_RESPONSES_ITEMS = {"message", "reasoning", "compaction", "item_reference", "mcp_list_tools"}
_RESPONSES_SUFFIXES = ("_call", "_output", "_approval_request", "_approval_response")
_ITEM_FIELDS = {"type", "role", "content", "id", "phase", "status"}
_ANSWER_FIELDS = {"annotations", "reasoning", "reasoning_content", "reasoning_details"}
_ANTHROPIC_BLOCKS = {"compaction", "container_upload", "document", "image", "search_result"}
_ANTHROPIC_SUFFIXES = ("thinking", "tool_result", "tool_use")

READ_KEYS = MESSAGE_FIELDS | _ANSWER_FIELDS | _ITEM_FIELDS | {"parts", "seq", *TIME_KEYS}
"""Keys of messages that are read."""


class Entry(NamedTuple):
    """A message of a transcript with its position; `empty` if it had no content."""

    place: str
    session: str
    message: Message
    empty: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Transcript:
    """A transcript whose messages have all been validated.

    `entries` streams the file again, so that it is never in memory as a whole; `lines` keeps input
    that cannot be read twice, such as a pipe.
    """

    path: Path
    lines: tuple[bytes, ...] | None
    max_message_bytes: int
    messages: int = 0
    sessions: int = 0
    empty_places: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        """The file's name."""
        return "stdin" if self.path == STDIN else self.path.name

    def entries(self) -> Iterator[Entry]:
        """Yield the messages in order."""
        with nullcontext(self.lines) if self.lines else open_lines(self.path) as lines:
            yield from entries(lines, name=self.name, max_message_bytes=self.max_message_bytes)


def open_transcript(path: Path, *, max_message_bytes: int = MAX_MESSAGE_BYTES) -> Transcript:
    """Read and validate the whole file once, so that no message is rejected later.

    Raises:
        MalformedTranscript: the file cannot be read, or a line is not a message.
    """
    lines: tuple[bytes, ...] | None = None
    if not path.is_file():
        with open_lines(path) as pipe:
            lines = tuple(pipe)
    transcript = Transcript(path=path, lines=lines, max_message_bytes=max_message_bytes)
    count = sessions = 0
    session: str | None = None
    empty: list[str] = []
    for entry in transcript.entries():
        count += 1
        sessions += entry.session != session
        session = entry.session
        if entry.empty:
            empty.append(entry.place)
    if not count:
        raise MalformedTranscript(
            f"{transcript.name} holds no message: write one as JSON on each line"
        )
    return replace(transcript, messages=count, sessions=sessions, empty_places=tuple(empty))


def entries(
    lines: Iterable[bytes], *, name: str, max_message_bytes: int = MAX_MESSAGE_BYTES
) -> Iterator[Entry]:
    """Yield the messages in *lines*, in order, each with the id `transcript:<position>`.

    Raises:
        MalformedTranscript: a line is not a message, or a tool result has no earlier call.
    """
    calls: set[str] = set()
    open_calls = OpenCalls()
    for position, record in enumerate(records(lines, name=name), start=1):
        try:
            message, empty = read_message(record, f"{ID_PREFIX}{position}")
            message = open_calls.pair(message)
            check_message(message, max_bytes=max_message_bytes)
            _check_results(message, calls)
        except InvalidMessage as error:
            raise MalformedTranscript(f"{name}, {record.place}: {error}") from error
        calls.update(call.id for call in message.tool_calls)
        yield Entry(record.place, record.session, message, empty)


def read_message(record: Record, message_id: str, timezone: tzinfo = UTC) -> tuple[Message, bool]:
    """Return the message of a record, and whether it was empty.

    Its time has the offset of *timezone* if it has none of its own, or that of UTC.

    Raises:
        InvalidMessage: the record is not a message, or its time cannot be read.
    """
    data = record.value
    if "role" not in data or "parts" in data:
        _refuse_export(data)
    try:
        message = _read(data)
    except InvalidMessage as error:
        raise InvalidMessage(f"{error}; {FORMATS}") from error
    message = message.replace(name=_name(record, message), kind=_kind(data))
    if empty := message.is_empty:
        message = message.replace(content=(TextPart(text=EMPTY_MESSAGE),), kind="control")
    at = _creation_time(record, timezone)
    return message.replace(id=message_id, created_at=at), empty


@contextmanager
def open_lines(path: Path) -> Iterator[Iterable[bytes]]:
    """Open a file for reading, or stdin for `-`; raise `MalformedTranscript` if that fails."""
    if path == STDIN:
        yield _read_lines("stdin", _read_pipe(sys.stdin.buffer))
        return
    name = repr(str(path))
    try:
        file = path.open("rb")
    except OSError as error:
        raise _unreadable(name, error) from error
    with file:
        yield _read_lines(name, file if path.is_file() else _read_pipe(file))


def _read_lines(name: str, lines: Iterable[bytes]) -> Iterator[bytes]:
    try:
        yield from lines
    except OSError as error:
        raise _unreadable(name, error) from error


def _unreadable(name: str, error: OSError) -> MalformedTranscript:
    return MalformedTranscript(f"{name} cannot be read ({error.strerror}): name a file of messages")


def _read_pipe(pipe: BinaryIO) -> Iterator[bytes]:
    """Yield the lines of a pipe, which Ctrl-C ends at once: asyncio's handler waits for the next one.

    A SIGINT that is ignored, as in a job in the background, stays so.
    """
    own = signal.getsignal(signal.SIGINT)
    waiting = own if own is signal.SIG_IGN else signal.default_int_handler
    line = None
    while line != b"":
        signal.signal(signal.SIGINT, waiting)
        try:
            line = pipe.readline()
        finally:
            signal.signal(signal.SIGINT, own)
        if line:
            yield line


def instant(value: object, key: str, timezone: tzinfo = UTC) -> datetime:
    """Parse ISO 8601 text (in *timezone* if it has no offset), or seconds or milliseconds since 1970.

    A leap second, which `datetime` lacks, is read as the second before it.
    """
    try:
        if isinstance(value, str) and _EPOCH.fullmatch(value.strip()):
            value = float(value)
        if isinstance(value, str):
            read = datetime.fromisoformat(_LEAP_SECOND.sub("59", value.strip()))
            aware = read if read.tzinfo else read.replace(tzinfo=timezone).astimezone(UTC)
            aware.astimezone(UTC)
            return aware
        if isinstance(value, int | float) and not isinstance(value, bool):
            seconds = value / 1000 if abs(value) >= _MILLISECONDS_FROM else value
            return datetime.fromtimestamp(seconds, UTC)
    except (ValueError, OverflowError, OSError):
        pass
    raise InvalidMessage(
        f"{key} {quote(value)} is not a time: write ISO 8601, such as '2026-03-02T09:12:17+01:00'"
    )


def _refuse_export(data: JsonObject) -> None:
    message = read_export(SessionReader(Counter()).read(data), Counter())
    remedy = "" if message is data else "use 'remanence import'"
    if data.get("line") == "user":
        remedy = (
            "it is only for reading; copy a conversation with 'remanence messages' and "
            "'remanence import', or a whole memory with 'remanence copy'"
        )
    if remedy:
        raise InvalidMessage(f"{quote(data)} is part of an export: {remedy}")


def _read(data: JsonObject) -> Message:
    """Read a message in the dialect that its keys imply."""
    content, calls = data.get("content"), data.get("tool_calls")
    if "parts" in data and "content" not in data:
        return Message.from_gemini({"role": data.get("role"), "parts": data["parts"]})
    parts = [p for p in (content if isinstance(content, list) else ()) if isinstance(p, dict)]
    types = [str(part.get("type")) for part in parts]
    if data.get("type") == "message" and not {"output_text", "refusal"}.isdisjoint(types):
        item = {key: value for key, value in data.items() if key in _ITEM_FIELDS}
        (message,) = Message.from_openai_responses([item])
        return message
    is_item = any(name.startswith(("input_image", "input_file")) for name in types)
    if is_item if "role" in data else isinstance(data.get("type"), str):
        kind = str(data.get("type", "message"))
        if kind not in _RESPONSES_ITEMS and not kind.endswith(_RESPONSES_SUFFIXES):
            raise InvalidMessage(
                f"type {quote(kind)} is not one of OpenAI's Responses API, and there is no role"
            )
        item = {key: value for key, value in data.items() if key not in TIME_KEYS}
        (message,) = Message.from_openai_responses([item])
        return message
    if calls is not None and not isinstance(calls, list):
        raise InvalidMessage(f"tool_calls {quote(calls)} is not a list: write a list of calls")
    if not isinstance(data.get("role"), str):
        raise InvalidMessage(f"{quote(data)} has no role")
    if "content" not in data and not calls and not data.get("refusal"):
        raise InvalidMessage(f'{quote(data)} has no content: add "content": "..."')
    # Other keys, such as times and sessions, are not part of the provider's message.
    fields = {k: v for k, v in data.items() if k in MESSAGE_FIELDS | _ANSWER_FIELDS}
    is_anthropic = any(
        part.get("citations") or kind in _ANTHROPIC_BLOCKS or kind.endswith(_ANTHROPIC_SUFFIXES)
        for part, kind in zip(parts, types, strict=True)
    )
    return (Message.from_anthropic if is_anthropic else Message.from_openai)(fields)


def _kind(data: JsonObject) -> MessageKind:
    """Return the kind that `remanence messages` prints; a tombstone becomes text that is not observed."""
    kind = data.get("kind")
    if kind == "memory":
        return "memory"
    return "control" if kind in ("control", "forgotten") else "message"


def _name(record: Record, message: Message) -> str | None:
    """Return the name of a message, or for a user's without one that beside its `messages`."""
    name = record.value.get("name") if "role" in record.value else None
    if name is None and message.role == "user":
        name = next((outer.get("name") for outer in record.outer[-1:] if "messages" in outer), None)
    if name is not None and not isinstance(name, str):
        raise InvalidMessage(f"name {quote(name)} is not a string: write text or leave it out")
    return name or None


def _creation_time(record: Record, timezone: tzinfo) -> datetime | None:
    """Return the time of a message, or else of the innermost session around it."""
    for values, owner in ((record.value, ""), *((v, "the session's ") for v in record.outer[::-1])):
        for key in TIME_KEYS:
            if values.get(key) is not None:
                at = instant(values[key], f"{owner}{key}", timezone)
                return at if at.utcoffset() else to_zone(at, timezone)
    return None


def _check_results(message: Message, calls: set[str]) -> None:
    for result in message.tool_results:
        if result.call_id not in calls:
            raise InvalidMessage(
                f"the tool result answers call {result.call_id!r}, which no earlier message "
                "makes: add the assistant's message with that call, or remove the result"
            )
