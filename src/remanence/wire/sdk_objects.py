"""Payloads, extra fields and stand-ins of parts that a provider's request cannot contain."""

import base64
import binascii
from typing import Any, NamedTuple

from remanence.wire.parts import Dialect, Extra, FilePart, ImagePart, OtherPart, Part, TextPart

JsonObject = dict[str, Any]  # a provider's JSON: its shape is the provider's

ERROR_MARK = "[the tool failed]"
"""Prefix of the result of a failed tool in protocols without a field for errors."""

SYSTEM_MARK = "[system message]"
"""Prefix of system text within a conversation that is moved to a user turn."""

NOTHING_READABLE = "[content that only another provider can read]"

_REASONING = frozenset({"thinking", "redacted_thinking", "reasoning"})
_IMAGE_HEADS = {
    "iVBORw0KGgo": "image/png",
    "/9j/": "image/jpeg",
    "R0lGOD": "image/gif",
    "UklGR": "image/webp",
}
_STANDARD_ALPHABET = str.maketrans("-_", "+/")


class Payload(NamedTuple):
    """The bytes of an image or a file as base64 without a data URL's head, and their media type."""

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
        except (binascii.Error, ValueError):
            return None


def payload(part: ImagePart | FilePart) -> Payload | None:
    """Return the part's payload; None if it has no data."""
    if part.data is None:
        return None
    head, separator, data = part.data.partition(";base64,")
    if not separator or not head.startswith("data:"):
        head, data = "", part.data
    if "-" in data or "_" in data:
        data = data.translate(_STANDARD_ALPHABET)
    media_type = part.media_type or head.removeprefix("data:") or None
    if media_type is None and isinstance(part, ImagePart):
        media_type = next(
            (kind for start, kind in _IMAGE_HEADS.items() if data.startswith(start)), "image/png"
        )
    return Payload(media_type, data)


def split_data_url(url: str) -> Payload | None:
    """Return the payload of a base64 data URL, None for any other URL."""
    head, separator, data = url.partition(";base64,")
    if not separator or not head.startswith("data:"):
        return None
    return Payload(head.removeprefix("data:") or None, data)


def stand_in(part: Part) -> str | None:
    """Return a text in place of a part that a request cannot contain; None for reasoning."""
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


def is_reasoning(part: OtherPart) -> bool:
    """Return whether a part is a model's reasoning, which only its own provider may see."""
    return part.type in _REASONING


def extra_fields(part: Part, dialect: Dialect) -> JsonObject:
    """Return the fields of *dialect* that are unknown to remanence."""
    extra: Extra | None = getattr(part, "extra", None)
    return extra.value if extra is not None and extra.dialect == dialect else {}
