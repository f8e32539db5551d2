"""Content handling shared by the dialects: parts, unknown fields, payloads, and stand-ins."""

import base64
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from typing import NamedTuple, TypeVar

from remanence.errors import InvalidMessage
from remanence.wire.json_value import JsonObject, dumps, loads, quote
from remanence.wire.parts import (
    Dialect,
    Extra,
    FilePart,
    ImagePart,
    OtherPart,
    Part,
    ResultPart,
    TextPart,
    ToolCallPart,
    ToolResultPart,
    speaker_label,
)

ERROR_MARK = "[the tool failed]"
"""Prefix of the result of a failed tool in protocols without a field for errors."""

SYSTEM_MARK = "[system message]"
"""Prefix of system text within a conversation that is moved to a user turn."""

NOTHING_READABLE = "[content that only another provider can read]"

_REASONING = frozenset({"thinking", "redacted_thinking", "reasoning"})
_REASONING_WORDS = ("thinking", "reasoning", "thought")
"""One of these is in the JSON of each such part; that of another one need not be parsed."""

IMAGE_HEADS = {
    "iVBORw0KGgo": "image/png",
    "/9j/": "image/jpeg",
    "R0lGOD": "image/gif",
    "UklGR": "image/webp",
}
"""Media types of images by the beginning of their base64 data."""

BASE64 = re.compile(r"(?:data:[^,]{0,200};base64,)?[A-Za-z0-9+/_-]{200,}={0,2}")
"""Data that is no text: media, or encrypted."""

_NO_TEXT = frozenset({"type", "status", "format", "media_type", "mime_type", "mimeType"})
"""Fields that describe a part, such as the format of a recording."""
_NAMES_ID = re.compile(r"(?:^|_)id$|I[dD]$")
_STANDARD_ALPHABET = str.maketrans("-_", "+/")

PartT = TypeVar("PartT", bound=Part)


def read_content(
    content: object, read: Callable[[object], PartT], *, what: str = "content"
) -> tuple[PartT, ...] | tuple[TextPart, ...]:
    """Parse a message's content: text, or a list whose items *read* parses."""
    if isinstance(content, str):
        return (TextPart(text=content),) if content else ()
    if not isinstance(content, list):
        raise InvalidMessage(
            f"{what} {quote(content)} is not a text: pass a string or a list of parts"
        )
    return tuple(map(read, content))


def read_fields(part: object, *, mark: str) -> JsonObject:
    """Return the fields of a part, without nulls and the *mark* of a cache breakpoint."""
    if not isinstance(part, dict):
        raise InvalidMessage(
            f"content part {part!r:.80} is not an object: pass {{'type': ..., ...}}"
        )
    return {key: value for key, value in present(part).items() if key != mark}


def read_other(fields: JsonObject, dialect: Dialect, needs: Mapping[str, str]) -> OtherPart:
    """Keep a part of an unknown type; reject one that lacks fields that its type *needs*."""
    kind = fields.get("type")
    if not isinstance(kind, str) or not kind:
        raise InvalidMessage(f"content part {fields!r:.80} has no type: add 'type': 'text'")
    if kind in needs:
        raise InvalidMessage(
            f"content part {fields!r:.160} is incomplete: a part of type {kind!r} needs "
            f"{needs[kind]}"
        )
    return OtherPart(dialect=dialect, raw=dumps(fields))


def read_extra(
    dialect: Dialect, fields: JsonObject, *known: str, **inner: JsonObject
) -> Extra | None:
    """Keep the fields that are not *known*, and non-empty *inner* ones."""
    rest = {key: value for key, value in fields.items() if key not in known}
    rest |= {key: value for key, value in inner.items() if value}
    return Extra(dialect=dialect, raw=dumps(rest, sort_keys=True)) if rest else None


def read_result_parts(parts: Iterable[Part], call: str) -> tuple[ResultPart, ...]:
    """Return the content of a tool result, which must not contain calls or results."""
    content: list[ResultPart] = []
    for part in parts:
        if isinstance(part, ToolCallPart | ToolResultPart):
            raise InvalidMessage(
                f"the result of {call!r:.80} contains a tool call or result: use text, images or files"
            )
        content.append(part)
    return tuple(content)


def present(fields: JsonObject) -> JsonObject:
    """Return the fields that are not null."""
    return {key: value for key, value in fields.items() if value is not None}


def extra_fields(part: Part, dialect: Dialect) -> JsonObject:
    """Return the fields of *dialect* that are unknown to remanence."""
    extra: Extra | None = getattr(part, "extra", None)
    return extra.value if extra is not None and extra.dialect == dialect else {}


def put_name_first(content: tuple[Part, ...], name: str | None) -> tuple[Part, ...]:
    """Put a speaker's name before the first text, for protocols that have no field for it."""
    shown = speaker_label(name or "")
    if not shown:
        return content
    for index, part in enumerate(content):
        if isinstance(part, TextPart) and part.text.strip():
            named = replace(part, text=f"{shown}: {part.text}")
            return (*content[:index], named, *content[index + 1 :])
    results = sum(isinstance(part, ToolResultPart) for part in content)
    return (*content[:results], TextPart(text=f"{shown}:"), *content[results:])


def mark_error(content: tuple[ResultPart, ...]) -> tuple[ResultPart, ...]:
    """Mark the content of a failed tool's result, for protocols that have no field for it."""
    if content and isinstance(content[0], TextPart):
        return (replace(content[0], text=f"{ERROR_MARK}\n{content[0].text}"), *content[1:])
    return (TextPart(text=ERROR_MARK), *content)


def shortest(blocks: list[JsonObject]) -> str | list[JsonObject]:
    """Return blocks as a string if there is only one text block without further fields."""
    if len(blocks) == 1 and blocks[0].keys() == {"type", "text"}:
        text: str = blocks[0]["text"]
        return text
    return blocks


def arguments_object(text: str) -> JsonObject:
    """Return a call's arguments as an object, wrapping other values."""
    try:
        value = loads(text or "{}")
    except ValueError:
        return {"arguments": text}
    return value if isinstance(value, dict) else {"arguments": value}


class Payload(NamedTuple):
    """The base64 data of an image or file, without the prefix of a data URL, and its media type."""

    media_type: str | None
    data: str

    @property
    def url(self) -> str:
        """The payload as a data URL."""
        return f"data:{self.media_type or 'application/octet-stream'};base64,{self.data}"

    @property
    def kind(self) -> str:
        """The media type without parameters, in lower case."""
        return (self.media_type or "").partition(";")[0].strip().lower()

    @property
    def text(self) -> str | None:
        """The payload as UTF-8 text, None if it is not text."""
        try:
            return base64.b64decode(self.data).decode()
        except ValueError:
            return None


def payload(part: ImagePart | FilePart) -> Payload | None:
    """Return the payload in a part's data or data URL, or None."""
    found = split_data_url(part.data or part.url or "")
    if found is None and part.data is None:
        return None
    media_type, data = found or Payload(None, part.data or "")
    if "-" in data or "_" in data:
        data = data.translate(_STANDARD_ALPHABET)
    media_type = part.media_type or media_type
    if media_type is None and isinstance(part, ImagePart):
        media_type = next(
            (kind for start, kind in IMAGE_HEADS.items() if data.startswith(start)), "image/png"
        )
    return Payload(media_type, data)


def image_url(part: ImagePart) -> str | None:
    """Return the URL of an image, or its data as one; None for what every provider rejects."""
    content = payload(part)
    if content is not None:
        return content.url if content.kind.startswith("image/") else None
    return part.url if is_remote(part) else None


def is_remote(part: ImagePart | FilePart) -> bool:
    """Return whether a provider, or a gateway to Google's, can fetch a part by its URL."""
    return (part.url or "").lower().startswith(("https://", "http://", "gs://"))


def split_data_url(url: str) -> Payload | None:
    """Return the payload of a base64 data URL, None for any other URL."""
    head, separator, data = url.partition(";base64,")
    if not separator or not head.startswith("data:"):
        return None
    return Payload(head.removeprefix("data:") or None, data)


def as_text(part: Part) -> str | None:
    """Return a text for a part that a request cannot contain; None for reasoning."""
    match part:
        case ImagePart(url=str(url)) if not url.startswith("data:"):
            return f"[image: {url}]"
        case ImagePart():
            return f"[image of type {part.media_type or 'unknown'}]"
        case FilePart(url=str(url)) if not url.startswith("data:"):
            return f"[file {part.name or 'without a name'}: {url}]"
        case FilePart():
            kind = f" of type {part.media_type}" if part.media_type else ""
            return f"[file {part.name or part.file_id or 'without a name'}{kind}]"
        case OtherPart() if not is_reasoning(part) and (part.type or part.scope == "part"):
            return f"[{part.type or 'content'} in the format of another provider]"
        case TextPart():
            return part.text
        case _:
            return None


def replace_media(content: Iterable[Part]) -> Iterator[Part]:
    """Yield parts for a text-only reader, with stand-ins for images, files and unknown parts."""
    for part in content:
        match part:
            case ToolCallPart():
                yield part
            case ToolResultPart():
                inner = read_result_parts(replace_media(part.content), part.call_id)
                yield replace(part, content=inner)
            case _ if (text := as_text(part)) is not None:
                yield TextPart(text=text)


def other_texts(content: Iterable[Part]) -> Iterator[str]:
    """Yield the texts in parts of unknown types, also of tool results, but not reasoning."""
    for part in content:
        match part:
            case ToolResultPart():
                yield from other_texts(part.content)
            case OtherPart() if part.type and not is_reasoning(part):
                yield from _strings(part.value)


def _strings(value: object) -> Iterator[str]:
    match value:
        case dict():
            for key, inner in value.items():
                if key not in _NO_TEXT and not _NAMES_ID.search(key):
                    yield from _strings(inner)
        case list():
            for inner in value:
                yield from _strings(inner)
        case str() if not BASE64.fullmatch(value):
            yield value


def is_reasoning(part: OtherPart) -> bool:
    """Return whether a part is a model's reasoning, which only its own provider may see."""
    return any(word in part.raw for word in _REASONING_WORDS) and part.type in _REASONING
