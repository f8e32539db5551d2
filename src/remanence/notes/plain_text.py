"""Texts in one form for comparison, whoever wrote them: Unicode's forms, marks, apostrophes."""

import base64
import codecs
import contextlib
import json
import re
import unicodedata
from collections.abc import Collection, Iterator
from functools import lru_cache
from typing import Any

from remanence.wire.content import payload
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

VOWEL_MARKS = "\u0591-\u05bd\u05bf\u05c1\u05c2\u05c4\u05c5\u05c7\u0610-\u061a\u0640\u064b-\u065f\u0670\u06d6-\u06ed"
"""Vowel marks of Hebrew and Arabic, which most texts leave out, and the Arabic filler."""
_DROPPED = re.compile(f"[{VOWEL_MARKS}\u05be\u05c0\u05c3\u05c6\u0300-\u036f]")  # and accents
_DIGIT = re.compile(r"(?![0-9])\d")
_GAP = re.compile(r"(?<=\d)[ ./()-]+(?=\d)")  # between groups of digits, as in a phone number
_MIN_DIGITS = 6
"""Digits of a text from which their groups do not matter: 15 is not 1.5."""
_SIGNS = str.maketrans(dict.fromkeys("’‘ʼ＇`´", "'") | dict.fromkeys("‐‑‒–—−", "-"))
_TEXT_TYPES = re.compile(r"text/|application/(json|xml|yaml)|.*\+(json|xml)$|$")


def plain_text(text: str) -> str:
    """Return a text in small letters on one line, without accents, vowel marks and format signs.

    Equal for texts that differ only in Unicode's forms, in typographic signs and in white space.
    """
    if not text.isascii():
        text = unicodedata.normalize("NFKC", text.translate(_SIGNS)).casefold()
        text = western_digits(_DROPPED.sub("", unicodedata.normalize("NFD", text)))
        text = unicodedata.normalize("NFC", "".join(c for c in text if not _is_format(c)))
    return " ".join(text.casefold().split())


def contains_any(text: str, sought: Collection[str]) -> bool:
    """Return whether a text has one of these, which are in plain form; long numbers in any groups."""
    plain = plain_text(text)
    numbers = [each for each in sought if sum(map(str.isdigit, each)) >= _MIN_DIGITS]
    joined = _GAP.sub("", plain) if numbers else ""
    return any(each in plain for each in sought) or any(
        _GAP.sub("", number) in joined for number in numbers
    )


def western_digits(text: str) -> str:
    """Return a text with the digits of all scripts as 0 to 9."""
    return _DIGIT.sub(lambda digit: str(int(digit[0])), text)


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
            yield from _strings(part.text)
        case ToolCallPart():
            yield f"{part.name} {part.arguments}"
            yield from _strings(part.arguments)
        case ToolResultPart():
            for inner in part.content:
                yield from _texts(inner)
        case ImagePart():
            yield from (part.url or "", _file_text(part))
        case FilePart():
            yield from (part.name or "", part.url or "", part.file_id or "", _file_text(part))
        case OtherPart():
            yield from _strings(part.raw)
    if not isinstance(part, OtherPart) and part.extra is not None:
        yield from _strings(part.extra.raw)


def _file_text(part: ImagePart | FilePart) -> str:
    """Return the text of a file that is text by its media type, or has none and no zero bytes."""
    content = payload(part)
    if content is None or not _TEXT_TYPES.match(content.kind):
        return ""
    try:
        data = base64.b64decode(content.data)
    except ValueError:
        return ""
    if data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return data.decode("utf-16", "replace")
    if not content.kind and b"\0" in data:
        return ""
    text = data.decode("utf-8", "replace")
    return f"{text}\n{data.decode('cp1252', 'replace')}" if "\ufffd" in text else text


def _strings(raw: str) -> Iterator[str]:
    """Yield the keys and strings of JSON text and of JSON within them; nothing for another text."""
    pending = [*_parse(raw)]
    while pending:
        match pending.pop():
            case str(text):
                yield text
                pending += _parse(text)
            case dict(fields):
                pending += (*fields.values(), *fields)
            case list(items):
                pending += items
            case _:
                pass


def _parse(text: str) -> Iterator[Any]:  # any JSON
    with contextlib.suppress(ValueError, RecursionError):
        yield json.loads(text)
