"""Validation of messages, so that they can be observed, stored and sent to any provider."""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC
from functools import cache
from itertools import chain
from typing import Any, Final, Literal, get_origin

from remanence.arguments import bad_character, require_no_control
from remanence.errors import InvalidMessage
from remanence.validation import field_types, type_text
from remanence.wire import anthropic, gemini, openai, responses
from remanence.wire.content import is_reasoning, payload
from remanence.wire.json_value import loads, quote
from remanence.wire.message import Message
from remanence.wire.parts import (
    DIALECTS,
    ROLES,
    Extra,
    FilePart,
    ImagePart,
    OtherPart,
    Part,
    ToolCallPart,
    ToolResultPart,
)

_KINDS: Final = frozenset({"message", "control", "memory"})
_INSTANCES: Final = {Literal: str, tuple: tuple}

_MAX_NAME: Final = 256
"""Characters of the name of a speaker or a tool, which no excerpt shortens; providers allow fewer."""
_BASE64: Final = re.compile(r"[A-Za-z0-9+/_\s-]*+={0,2}\s*+")
_PARSE_PART: Final[Mapping[str, Callable[[dict[str, Any]], Part]]] = {
    "anthropic": anthropic.parse_part,
    "gemini": gemini.parse_part,
    "openai": openai.parse_part,
    "openai_responses": responses.parse_part,
}


class MessageTooLong(InvalidMessage):
    """A message exceeds `max_message_bytes`; the text quotes nothing of it."""


def check_message(message: Message, *, max_bytes: int) -> int:
    """Check that *message* may be appended to a tape, and return its size in bytes.

    Raises:
        InvalidMessage: the role is unknown, the content is empty or exceeds *max_bytes* bytes, a
            text is not Unicode (NUL, lone surrogates), the id has control characters, a name is too
            long, a value has the wrong type, the time has no offset or is out of range in UTC, the
            role does not allow a part, or no provider would accept a part.
    """
    size = measure_message(message, max_bytes=max_bytes)
    check_parts([message])
    return size


def check_parts(messages: Sequence[Message]) -> None:
    """Check the parts of measured messages, as `check_message` does; parses those with JSON.

    Raises:
        InvalidMessage: no provider would accept a part; names the message if there are several.
    """
    for position, message in enumerate(messages, start=1):
        with _place(position, len(messages)):
            for part in message.content:
                _check_content(part)


def measure_messages(messages: Sequence[Message], *, max_bytes: int) -> list[int]:
    """Return the sizes of messages as `measure_message` does; an error names the one of several."""
    sizes = []
    for position, message in enumerate(messages, start=1):
        with _place(position, len(messages)):
            sizes.append(measure_message(message, max_bytes=max_bytes))
    return sizes


@contextmanager
def _place(position: int, total: int) -> Iterator[None]:
    """Put the position of a message among several before the text of an error."""
    try:
        yield
    except InvalidMessage as error:
        if total == 1:
            raise
        raise type(error)(f"message {position} of {total}: {error}") from error


def measure_message(message: Message, *, max_bytes: int) -> int:
    """Check everything of a message but its parts, as `check_message` does, and return its size."""
    if not isinstance(message, Message):
        remedy = "use Message.user(...), Message.assistant(...) or Message.from_openai(...)"
        if isinstance(message, list | tuple):
            remedy = "pass its messages, as in append(*messages)"
        raise InvalidMessage(
            f"{quote(message)} is a {type(message).__name__} and not a message: {remedy}"
        )
    _check_types(message)
    _check_time(message)
    _check_roles(message)
    if message.id == "":
        raise InvalidMessage("the id of a message is empty: leave it out to get a generated one")
    require_no_control("message id", message.id or "")
    tools = [part.name for part in message.content if isinstance(part, ToolCallPart)]
    for name in (message.name or "", *tools):
        if len(name) > _MAX_NAME:
            raise InvalidMessage(
                f"name {quote(name)} is {len(name):,} characters long, more than {_MAX_NAME}: shorten it"
            )
    texts = [("id", message.id or ""), ("name", message.name or "")]
    for part in message.content:
        texts += _texts(part)
    size = sum(_size_in_bytes(place, text) for place, text in texts)
    if size > max_bytes:
        raise MessageTooLong(
            f"the {message.role} message is {size:,} bytes long, more than max_message_bytes="
            f"{max_bytes:,}: store the content elsewhere and append a reference to it"
        )
    return size


def storable(text: str) -> str:
    """Return *text* without NUL characters, and with "?" for lone surrogates, so that it can be stored.

    Two surrogates that make a character become it: a provider may cut a text between them.
    """
    text = text.replace("\0", "")
    if text.isascii():
        return text
    joined = text.encode("utf-16", "surrogatepass").decode("utf-16", "surrogatepass")
    return joined.encode(errors="replace").decode()


def split_piece(text: str) -> tuple[str, str]:
    """Return what is whole of a text that goes on, as `storable` has it, and the half of a character."""
    half = text[-1:] if "\ud800" <= text[-1:] <= "\udbff" else ""
    return storable(text.removesuffix(half)), half


def _check_types(value: Message | Part | Extra) -> None:
    """Check the types of all fields, including those of nested parts and extra fields."""
    owner: Any = type(value)  # hashable, unlike what mypy makes of it
    for name, kind in _field_types(owner).items():
        field = getattr(value, name)
        if not isinstance(field, kind):
            remedy = f"use {type_text(field_types(owner)[name], series='a tuple')}"
            if name == "content" and isinstance(field, str):
                remedy = "use a tuple, such as (TextPart(text=...),), or Message.user(...)"
            raise InvalidMessage(
                f"{owner.__name__}.{name} {quote(field)} is of the wrong type: {remedy}"
            )
        if isinstance(field, Extra):
            _check_types(field)
        elif kind is tuple:
            for part in field:
                if not isinstance(part, Part):
                    raise InvalidMessage(
                        f"{quote(part)} is a {type(part).__name__} and not a part of a message: use "
                        "TextPart, ImagePart, FilePart, ToolCallPart, ToolResultPart or "
                        "Message.from_openai(...)"
                    )
                _check_types(part)


@cache
def _field_types(kind: Any) -> Mapping[str, Any]:  # a class; types or unions of them
    """Return the types of a class's fields for `isinstance`."""
    hints = field_types(kind)
    return {name: _INSTANCES.get(get_origin(hint), hint) for name, hint in hints.items()}


def _check_time(message: Message) -> None:
    at = message.created_at
    if at is None:
        return
    try:
        offset = at.utcoffset()
        if offset is not None:
            at.astimezone(UTC)
            return
    except (TypeError, ValueError, OverflowError) as error:
        value = at.isoformat() if isinstance(error, OverflowError) else at
        raise InvalidMessage(
            f"created_at {quote(value)} is not a time in the range of UTC ({error}): use an aware "
            "datetime of the years 1 to 9999"
        ) from error
    raise InvalidMessage(
        f"created_at {at.isoformat()!r} has no time zone: "
        "use an aware datetime, such as one with tzinfo=datetime.UTC"
    )


def _check_roles(message: Message) -> None:
    for name, value, known in (("role", message.role, ROLES), ("kind", message.kind, _KINDS)):
        if value not in known:
            names = ", ".join(sorted(known))
            raise InvalidMessage(f"{name} {value!r:.80} is unknown: use one of {names}")
    if message.is_empty:
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
    """Yield the strings in a part, each with its location."""
    owner: Any = type(part)  # as above
    for name in _field_types(owner):
        place = f"{owner.__name__}.{name}"
        match getattr(part, name):
            case str(text) | Extra(raw=text):
                yield place, text
            case tuple(parts):
                yield from chain.from_iterable(map(_texts, parts))


def _size_in_bytes(place: str, text: str) -> int:
    if problem := bad_character(text):
        raise InvalidMessage(f"{place} {problem}")
    return len(text.encode())


def _check_content(part: Part) -> None:
    """Reject a part that no provider would accept."""
    match part:
        case ToolCallPart(id="") | ToolCallPart(name=""):
            raise InvalidMessage(f"tool call {quote(part)} has no id or no name: give it both")
        case ToolResultPart(call_id=""):
            raise InvalidMessage("a tool result names no tool call: set its call_id")
        case ToolResultPart():
            for inner in part.content:
                _check_in_result(inner, part.call_id)
        case ImagePart() | FilePart():
            _check_media(part)
        case OtherPart():
            _check_other(part)
        case _:
            pass
    if not isinstance(part, OtherPart) and part.extra is not None:
        _json_object(part.extra.dialect, part.extra.raw)


def _check_in_result(part: Part, call_id: str) -> None:
    is_beside = isinstance(part, OtherPart) and (part.scope == "message" or is_reasoning(part))
    if is_beside or isinstance(part, ToolCallPart | ToolResultPart):
        raise InvalidMessage(
            f"the result of tool call {quote(call_id)} holds {quote(part)}: use text, images and files"
        )
    _check_content(part)


def _check_media(part: ImagePart | FilePart) -> None:
    what, remedy, reference = "image", "data or a url", part.url
    if isinstance(part, ImagePart) and (pixels := min(part.width or 0, part.height or 0)) < 0:
        raise InvalidMessage(
            f"an image has a size of {pixels} pixels: use a whole number of 0 or more"
        )
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
        names = ", ".join(sorted(DIALECTS))
        raise InvalidMessage(f"dialect {quote(dialect)} is unknown: use one of {names}")
    try:
        value = loads(raw)
    except ValueError as error:
        raise InvalidMessage(f"{quote(raw)} is not JSON ({error}): use json.dumps(...)") from error
    if not isinstance(value, dict):
        raise InvalidMessage(f"{quote(raw)} is not a JSON object: use json.dumps({{...}})")
    return value
