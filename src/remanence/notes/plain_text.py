"""Texts in one form for comparison, whoever wrote them: Unicode's forms, marks, apostrophes."""

import base64
import binascii
import json
import re
import unicodedata
from collections.abc import Iterator
from functools import lru_cache
from typing import Any

from remanence.wire.message import Message
from remanence.wire.parts import (
    FilePart,
    ImagePart,
    OtherPart,
    Part,
    TextPart,
    ToolCallPart,
    ToolResultPart,
)

# Accents of Latin, Greek and Cyrillic, vowel marks of Hebrew and Arabic, and the Arabic filler.
_MARKS = "\u0300-\u036f\u0591-\u05c7\u0610-\u061a\u0640\u064b-\u065f\u0670\u06d6-\u06ed"
_DROPPED = re.compile(f"[{_MARKS}]")
_SIGNS = str.maketrans(dict.fromkeys("’‘ʼ＇`´", "'") | dict.fromkeys("‐‑‒–—−", "-"))
_TEXT_TYPES = ("text/", "application/json", "application/xml", "application/yaml")


def plain_text(text: str) -> str:
    """Return a text in small letters on one line, without accents, vowel marks and format signs.

    Equal for texts that differ only in Unicode's forms, in typographic signs and in white space.
    """
    if not text.isascii():
        text = unicodedata.normalize("NFKC", text.translate(_SIGNS)).casefold()
        text = _DROPPED.sub("", unicodedata.normalize("NFD", text))
        text = unicodedata.normalize("NFC", "".join(c for c in text if not _is_format(c)))
    return " ".join(text.casefold().split())


def everything_in(message: Message) -> str:
    """Return all that a message says: name, texts, decoded arguments, names and texts of files."""
    pieces = [message.name or "", *(piece for part in message.content for piece in _texts(part))]
    return "\n".join(filter(None, pieces))


@lru_cache(maxsize=4_096)
def _is_format(character: str) -> bool:
    return unicodedata.category(character) == "Cf"


def _texts(part: Part) -> Iterator[str]:
    match part:
        case TextPart():
            yield part.text
        case ToolCallPart():
            yield f"{part.name} {part.arguments}"
            yield from _strings(part.arguments)
        case ToolResultPart():
            for inner in part.content:
                yield from _texts(inner)
        case ImagePart():
            yield part.url or ""
        case FilePart():
            yield from (part.name or "", part.url or "", _file_text(part))
        case OtherPart():
            yield from _strings(part.raw)


def _file_text(file: FilePart) -> str:
    if not file.data or not (file.media_type or "").startswith(_TEXT_TYPES):
        return ""
    try:
        return base64.b64decode(file.data).decode("utf-8", "replace")
    except (binascii.Error, ValueError):
        return ""


def _strings(raw: str) -> Iterator[str]:
    """Yield the keys and strings of JSON text; nothing for another text."""
    try:
        pending: list[Any] = [json.loads(raw)]  # any JSON
    except (ValueError, RecursionError):
        return
    while pending:
        match pending.pop():
            case str(text):
                yield text
            case dict(fields):
                pending += (*fields.values(), *fields)
            case list(items):
                pending += items
            case _:
                pass
