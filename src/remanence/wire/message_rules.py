"""Validation of messages: a valid one can be observed, stored and sent to any provider."""

import dataclasses
import re
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC
from itertools import chain
from types import MappingProxyType
from typing import Any, Final

from remanence.errors import InvalidMessage
from remanence.wire import anthropic, gemini, openai, responses
from remanence.wire.content import is_reasoning, payload
from remanence.wire.json_value import loads, quote
from remanence.wire.message import Message
from remanence.wire.parts import (
    DIALECTS,
    ROLES,
    Dialect,
    Extra,
    FilePart,
    ImagePart,
    OtherPart,
    Part,
    TextPart,
    ToolCallPart,
    ToolResultPart,
)

_KINDS: Final = frozenset({"message", "control", "memory"})
_PART_TYPES: Final = (TextPart, ToolCallPart, ToolResultPart, ImagePart, FilePart, OtherPart)
_TEXT_FIELDS: Final[Mapping[type, Mapping[str, bool]]] = {
    kind: {
        field.name: field.default is None
        for field in dataclasses.fields(kind)
        if field.type in (str, str | None, Dialect)
    }
    for kind in (*_PART_TYPES, Extra)
}
"""The fields that hold text, and whether they may be None."""

_BASE64: Final = re.compile(r"[A-Za-z0-9+/_\s-]*+={0,2}\s*+")
_PARSE_PART: Final[Mapping[str, Callable[[dict[str, Any]], Part]]] = MappingProxyType(
    {
        "anthropic": anthropic.parse_part,
        "gemini": gemini.parse_part,
        "openai": openai.parse_part,
        "openai_responses": responses.parse_part,
    }
)


def check_message(message: Message, *, max_bytes: int) -> int:
    """Check that *message* may be appended to a tape, and return its size in bytes.

    Raises:
        InvalidMessage: the role is unknown, the content is empty or exceeds *max_bytes* bytes, a
            text is not Unicode (NUL, lone surrogates), a value has the wrong type, the time has no
            offset or is out of range in UTC, the role does not allow a part, or no provider would
            accept a part.
    """
    if not isinstance(message, Message):
        raise InvalidMessage(
            f"{quote(message)} is a {type(message).__name__} and not a message: use "
            "Message.user(...), Message.assistant(...) or Message.from_openai(...)"
        )
    _check_fields(message)
    _check_time(message)
    for part in message.content:
        _check_types(part)
    _check_roles(message)
    texts = [("id", message.id or ""), ("name", message.name or "")]
    for part in message.content:
        texts += _texts(part)
    size = sum(_size_in_bytes(place, text) for place, text in texts)
    if size > max_bytes:
        raise InvalidMessage(
            f"the {message.role} message is {size:,} bytes long, more than max_message_bytes="
            f"{max_bytes:,}: store the content elsewhere and append a reference to it"
        )
    for part in message.content:
        _check_content(part)
    return size


def _check_fields(message: Message) -> None:
    if not isinstance(message.role, str) or message.role not in ROLES:
        raise InvalidMessage(f"role {quote(message.role)} is unknown: use one of {sorted(ROLES)}")
    if not isinstance(message.kind, str) or message.kind not in _KINDS:
        raise InvalidMessage(f"kind {quote(message.kind)} is unknown: use one of {sorted(_KINDS)}")
    for field in ("id", "name"):
        value = getattr(message, field)
        if value is not None and not isinstance(value, str):
            raise InvalidMessage(f"{field} {quote(value)} of a message is not text: use a str")
    if not isinstance(message.content, tuple):
        raise InvalidMessage(
            f"content {quote(message.content)} is a {type(message.content).__name__}: use a tuple of "
            "parts, or Message.user(...)"
        )


def _check_time(message: Message) -> None:
    at = message.created_at
    if at is None:
        return
    try:
        offset = at.utcoffset()
        if offset is not None:
            at.astimezone(UTC)
            return
    except (AttributeError, TypeError, ValueError, OverflowError) as error:
        raise InvalidMessage(
            f"created_at {quote(at)} is not a time in the range of UTC ({error}): use an aware "
            "datetime of the years 1 to 9999"
        ) from error
    raise InvalidMessage(
        f"created_at {at.isoformat()!r} has no time zone: "
        "use an aware datetime, such as one with tzinfo=datetime.UTC"
    )


def _check_types(part: object) -> None:
    if not isinstance(part, _PART_TYPES):
        raise InvalidMessage(
            f"{quote(part)} is a {type(part).__name__} and not a part of a message: use TextPart, "
            "ImagePart, FilePart, ToolCallPart, ToolResultPart or Message.from_openai(...)"
        )
    _check_texts(part)
    match part:
        case ImagePart(width=width, height=height):
            for pixels in (width, height):
                if pixels is not None and (not isinstance(pixels, int) or pixels < 0):
                    raise InvalidMessage(f"{quote(pixels)} pixels of an image: use a whole number")
        case ToolResultPart(is_error=is_error, content=content):
            if not isinstance(is_error, bool):
                raise InvalidMessage(f"is_error {quote(is_error)} of a tool result: use a bool")
            _check_result(part.call_id, content)
        case OtherPart():
            return
    extra: object = part.extra
    if isinstance(extra, Extra):
        _check_texts(extra)
    elif extra is not None:
        raise InvalidMessage(f"extra {quote(extra)} of a part is not an Extra: leave it out")


def _check_texts(value: Part | Extra) -> None:
    for name, is_optional in _TEXT_FIELDS[type(value)].items():
        text = getattr(value, name)
        if not isinstance(text, str) and not (is_optional and text is None):
            raise InvalidMessage(
                f"{name} {quote(text)} of a message is not text: use a str for "
                f"{type(value).__name__}.{name}"
            )


def _check_result(call_id: str, content: object) -> None:
    if not isinstance(content, tuple):
        raise InvalidMessage(
            f"the result of tool call {quote(call_id)} is a {type(content).__name__}: use a tuple of "
            "parts, or Message.tool(...)"
        )
    for inner in content:
        _check_types(inner)
        is_beside = isinstance(inner, OtherPart) and (
            inner.scope == "message" or is_reasoning(inner)
        )
        if is_beside or isinstance(inner, ToolCallPart | ToolResultPart):
            raise InvalidMessage(
                f"the result of tool call {quote(call_id)} holds {quote(inner)}: use text, images "
                "and files"
            )


def _check_roles(message: Message) -> None:
    if not any(not isinstance(p, TextPart) or p.text.strip() for p in message.content):
        raise InvalidMessage(
            f"the {message.role} message is empty: append a message with text, a tool call, "
            "a tool result, an image or a file"
        )
    ids = [part.id for part in message.content if isinstance(part, ToolCallPart)]
    if ids and message.role != "assistant":
        raise InvalidMessage(
            f"tool call {quote(ids[0])} is in a {message.role} message: only the assistant calls "
            "tools"
        )
    if len(set(ids)) < len(ids):
        raise InvalidMessage(
            f"the message calls tools under the ids {quote(ids)}, one of them twice: give each "
            "call an id of its own"
        )
    if message.role not in ("tool", "user") and message.tool_results:
        raise InvalidMessage(
            f"the result of tool call {quote(message.tool_results[0].call_id)} is in a "
            f"{message.role} message: use Message.tool(...)"
        )


def _texts(part: Part) -> Iterator[tuple[str, str]]:
    """Yield the texts in a part, each with its place."""
    kind = type(part).__name__
    for name in _TEXT_FIELDS[type(part)]:
        if text := getattr(part, name):
            yield f"{kind}.{name}", text
    if not isinstance(part, OtherPart) and part.extra is not None:
        yield f"{kind}.extra", part.extra.raw
    if isinstance(part, ToolResultPart):
        yield from chain.from_iterable(map(_texts, part.content))


def _size_in_bytes(place: str, text: str) -> int:
    nul = text.find("\0")
    if nul >= 0:
        raise InvalidMessage(f"{place} has a NUL character at position {nul}: remove it")
    try:
        return len(text.encode())
    except UnicodeEncodeError as error:
        raise InvalidMessage(
            f"{place} has the lone surrogate {text[error.start]!r} at position {error.start}: "
            "decode the text with errors='replace' first"
        ) from error


def _check_content(part: Part) -> None:
    """Reject a part that no request could contain, or no provider could read."""
    match part:
        case ToolCallPart(id="") | ToolCallPart(name=""):
            raise InvalidMessage(f"tool call {quote(part)} has no id or no name: give it both")
        case ToolResultPart(call_id=""):
            raise InvalidMessage("a tool result names no tool call: set its call_id")
        case ToolResultPart():
            for inner in part.content:
                _check_content(inner)
        case ImagePart() | FilePart():
            _check_media(part)
        case OtherPart():
            _check_other(part)
        case _:
            pass
    if not isinstance(part, OtherPart) and part.extra is not None:
        _json_object(part.extra.dialect, part.extra.raw)


def _check_media(part: ImagePart | FilePart) -> None:
    what, remedy, reference = "image", "data or a url", part.url
    if isinstance(part, FilePart):
        what, remedy = "file", "data, a url or a file_id"
        reference = part.url or part.file_id or part.name
    if not part.data and not reference:
        raise InvalidMessage(f"the {what} is empty: give it {remedy}")
    content = payload(part)
    if content is not None and (not content.data or not _BASE64.fullmatch(content.data)):
        raise InvalidMessage(
            f"the {what}'s data {content.data!r:.40} is not base64: use base64.b64encode(...)"
        )


def _check_other(part: OtherPart) -> None:
    value = _json_object(part.dialect, part.raw)
    if part.scope == "message":
        if part.dialect == "openai_responses" and not part.type:
            raise InvalidMessage(f"item {quote(part.raw)} has no type: add one")
        return
    if part.scope != "part":
        raise InvalidMessage(f"scope {quote(part.scope)} of an OtherPart: use 'part' or 'message'")
    _PARSE_PART[part.dialect](value)


def _json_object(dialect: str, raw: str) -> dict[str, Any]:
    if dialect not in DIALECTS:
        raise InvalidMessage(f"dialect {quote(dialect)} is unknown: use one of {sorted(DIALECTS)}")
    try:
        value = loads(raw)
    except ValueError as error:
        raise InvalidMessage(f"{quote(raw)} is not JSON ({error}): use json.dumps(...)") from error
    if not isinstance(value, dict):
        raise InvalidMessage(f"{quote(raw)} is not a JSON object: use json.dumps({{...}})")
    return value
