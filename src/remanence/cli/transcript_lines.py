"""Reading the JSON objects of a file, each with its position."""

import json
from collections.abc import Callable, Iterable, Iterator
from itertools import chain, islice
from typing import NamedTuple, TypeAlias

from remanence.errors import MalformedTranscript
from remanence.wire.json_value import JsonObject, quote

SESSION_KEYS = ("messages", "sessions", "input", "output", "contents", "conversations")
"""Keys under which an object has messages: `input` and `output` come from OpenAI's Responses,
`contents` from Gemini, `conversations` from exports."""

FORMATS = (
    "messages are read in the JSON of OpenAI (Chat Completions and Responses), Anthropic, Gemini or "
    "the Vercel AI SDK (docs/howto/import.md shows how to convert others)"
)
"""Remedy for a file of another format."""

_ZIP = b"PK\x03\x04"
_GZIP = b"\x1f\x8b"

Convert: TypeAlias = Callable[[object], object]
"""Converts an object of another format to a message, or to an object with messages, and lists of such."""


class Record(NamedTuple):
    """A message object, its position for error messages, and the objects around it."""

    place: str
    value: JsonObject
    session: str
    outer: tuple[JsonObject, ...] = ()


def records(
    lines: Iterable[bytes], *, name: str, convert: Convert | None = None
) -> Iterator[Record]:
    """Yield the message objects of JSON Lines (streamed) or of one JSON document (read whole).

    A line or document is a message, a list of messages, or an object with one of `SESSION_KEYS`;
    *convert* handles objects and lists of other formats. Blank lines are skipped.

    Raises:
        MalformedTranscript: a line is not UTF-8, not JSON, or not a message.
    """
    numbered = ((number, text) for number, text in _decode(lines, name) if text.strip())
    head = list(islice(numbered, 2))
    if not head:
        raise MalformedTranscript(f"{name} is empty: write one message as JSON on each line")
    first, *second = (text for _, text in head)
    is_lines = not second or _is_json(first)
    if is_lines or (first.strip() not in ("[", "{") and _is_json(second[0])):
        for number, text in chain(head, numbered):
            yield from _flatten(_load(text, name, number), f"line {number}", name, convert)
    else:
        document = "".join(text for _, text in chain(head, numbered))
        yield from _flatten(_load(document, name, head[0][0]), "", name, convert)


def _decode(lines: Iterable[bytes], name: str) -> Iterator[tuple[int, str]]:
    for number, line in enumerate(lines, start=1):
        if number == 1 and line.startswith(_ZIP):
            raise MalformedTranscript(
                f"{name} is a ZIP archive: unpack it, and name a file in it, such as conversations.json "
                "in an export of ChatGPT or Claude"
            )
        if number == 1 and line.startswith(_GZIP):
            raise MalformedTranscript(f"{name} is compressed by gzip: unpack it with gunzip")
        try:
            yield number, line.decode("utf-8-sig")  # joined files have marks in between
        except UnicodeDecodeError as error:
            raise MalformedTranscript(
                f"{name}, line {number}: byte {line[error.start]:#04x} at position {error.start} "
                "is not UTF-8: convert the file to UTF-8"
            ) from error


def _is_json(text: str) -> bool:
    try:
        json.loads(text)
    except (ValueError, RecursionError):
        return False
    return True


def _load(text: str, name: str, first_line: int) -> object:
    text = text.strip()
    try:
        return json.loads(text)
    except json.JSONDecodeError as error:
        line, wrong = first_line + error.lineno - 1, text.split("\n")[error.lineno - 1].strip()
        is_cut = error.pos == len(text) or error.msg.startswith("Unterminated string")
        remedy = "it is cut off at its end: get the whole file again" if is_cut else FORMATS
        raise MalformedTranscript(
            f"{name}, line {line}: {quote(wrong)} is not JSON "
            f"({error.msg.removesuffix(' at')} at column {error.colno}): {remedy}"
        ) from error
    except (ValueError, RecursionError) as error:
        raise MalformedTranscript(
            f"{name}, line {first_line}: {quote(text)} cannot be read ({error}): "
            "write plain numbers and less deeply nested JSON"
        ) from error


def _flatten(
    value: object,
    place: str,
    name: str,
    convert: Convert | None,
    session: str = "",
    outer: tuple[JsonObject, ...] = (),
) -> Iterator[Record]:
    items: list[object]
    if convert is not None:
        value = convert(value)
    if isinstance(value, dict):
        inner = next((key for key in SESSION_KEYS if isinstance(value.get(key), list)), None)
        if inner is None or "role" in value or "type" in value:
            yield Record(place or "message 1", value, str(value.get("session", session)), outer)
            return
        items, outer, is_sessions = value[inner], (*outer, value), inner == "sessions"
    elif isinstance(value, list):
        items, is_sessions = value, all(isinstance(item, list) for item in value)
    else:
        raise MalformedTranscript(
            f"{name}, {place or 'line 1'}: {quote(value)} is not an object: {FORMATS}"
        )
    for number, item in enumerate(items, start=1):
        kind = "session" if is_sessions else "message"
        deeper = f"{place}, {kind} {number}" if place else f"{kind} {number}"
        yield from _flatten(item, deeper, name, convert, deeper if is_sessions else place, outer)
