"""Token counts of messages, part by part, based on a text counter."""

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, Final, NamedTuple, Self, assert_never

from remanence.tokens.cache import CountCache
from remanence.tokens.estimator import TextCount
from remanence.tokens.media import ImageCount, claude_image, file_tokens
from remanence.types import (
    Extra,
    FilePart,
    ImagePart,
    Message,
    OtherPart,
    Part,
    TextPart,
    ToolCallPart,
    ToolResultPart,
)
from remanence.wire.content import BASE64, IMAGE_HEADS

_DATA_FIELD: Final = re.compile(r"data$|b(?:ase)?64|[._]id$|\.encrypted_|[sS]ignature$")
"""Fields of providers, behind their type, with long data that no model reads as text."""

_ENCRYPTED_RESULT: Final = re.compile(r"_result\.encrypted_")
"""Fields with pages that a provider's tool found, which a model also reads in later turns."""

_FREE_CHARACTERS: Final = 2_000
"""Keys, numbers and punctuation of unknown JSON in an ordinary message, which count nothing."""
_CHARACTERS_PER_TOKEN: Final = 3

_ENCRYPTED_CHARACTERS_PER_TOKEN: Final = 5
"""Base64 of a text, which has almost 4 bytes per token."""

_CITING: Final = 6
"""Citations are about as many times as long as their text; providers do not charge for them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Frame:
    """Tokens that a provider adds around content."""

    message: int
    tool_call: int = 0
    tool_result: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenCounter:
    """Counts tokens of texts and messages; pure, and never raises for any text or part.

    `text` counts the tokens of a text, 0 if it is empty; `result_text`, if set, counts the texts of
    tool results.
    """

    name: str
    text: TextCount
    frame: Frame
    result_text: TextCount | None = None
    image: ImageCount = claude_image

    def with_cache(self) -> Self:
        """Return a counter that remembers the latest counts, but not their texts."""
        result_text = CountCache(self.result_text) if self.result_text else None
        return replace(self, text=CountCache(self.text), result_text=result_text)

    def message(self, message: Message) -> int:
        """Count the tokens that `message` adds to a request, including its framing."""
        name = self.text(message.name) if message.name else 0
        parts = (self._part(part, self.text) for part in message.content)
        beside = sum(map(_characters_beside, message.content)) - _FREE_CHARACTERS
        return self.frame.message + name + sum(parts) + max(0, beside) // _CHARACTERS_PER_TOKEN

    def _part(self, part: Part, text: TextCount) -> int:
        match part:
            case TextPart(text=content):
                return text(content)
            case ToolCallPart(name=name, arguments=arguments):
                return self.frame.tool_call + text(name) + text(arguments)
            case ToolResultPart(content=content):
                text = self.result_text or text
                return self.frame.tool_result + sum(self._part(inner, text) for inner in content)
            case ImagePart():
                return self.image(part)
            case FilePart():
                return file_tokens(part, text=text, image=self.image)
            case OtherPart(raw=raw):
                return sum(
                    self._part(leaf.part, text) if leaf.part else leaf.tokens
                    for leaf in _leaves(raw)
                )
            case _:
                assert_never(part)


class _Leaf(NamedTuple):
    """A string in JSON, and the part that it counts as; None for data, of which some has tokens."""

    string: str
    part: TextPart | ImagePart | FilePart | None
    tokens: int = 0


def _leaves(raw: str) -> Iterator[_Leaf]:
    """Yield the strings in JSON of a provider, except keys and `type` values."""
    try:
        pending: list[tuple[str, Any]] = [("", json.loads(raw))]  # any JSON
    except (ValueError, RecursionError):
        yield _Leaf(raw, TextPart(text=raw))
        return
    while pending:
        name, value = pending.pop()
        match value:
            case {"data": str(data), "media_type": str(kind)} if BASE64.fullmatch(data):
                yield _Leaf(data, FilePart(media_type=kind, data=data))
            case {"data": str(data), "format": str(kind)} if BASE64.fullmatch(data):
                yield _Leaf(data, FilePart(media_type=f"audio/{kind}", data=data))
            case {"type": "file" | "input_image" | "computer_screenshot", "file_id": str(id_)}:
                yield _Leaf(id_, FilePart(file_id=id_))
            case dict():
                pending.extend(_fields(value))
            case list():
                pending.extend((name, item) for item in value)
            case str():
                yield _read_string(name, value)


def _fields(value: dict[str, Any]) -> Iterator[tuple[str, Any]]:  # as above
    """Yield the fields of an object, named by its type and their keys."""
    kind = value.get("type")
    prefix = f"{kind}." if isinstance(kind, str) else "."
    return ((prefix + key, item) for key, item in value.items() if key != "type")


def _read_string(name: str, value: str) -> _Leaf:
    """Return a string in the field *name*, a type and a key, as the part that it counts as."""
    if not BASE64.fullmatch(value):
        return _Leaf(value, TextPart(text=value))
    if value.startswith("data:"):
        return _Leaf(value, FilePart(url=value))
    if value.startswith(tuple(IMAGE_HEADS)):
        return _Leaf(value, ImagePart(data=value))
    if _ENCRYPTED_RESULT.search(name):
        return _Leaf(value, None, len(value) // _ENCRYPTED_CHARACTERS_PER_TOKEN)
    return _Leaf(value, None if _DATA_FIELD.search(name) else TextPart(text=value))


def _characters_beside(part: Part) -> int:
    """Return how many characters of a part's JSON count as no string, less those that are ordinary."""
    extra: Extra | None = getattr(part, "extra", None)
    characters = 0 if extra is None else _rest(extra.raw, ordinary=0)
    match part:
        case TextPart(text=text):
            characters = max(0, characters - _CITING * len(text))
        case ToolResultPart(content=content):
            characters += sum(map(_characters_beside, content))
        case OtherPart(raw=raw):  # its texts count, and have about as many characters beside them
            characters += _rest(raw, ordinary=2)
    return characters


def _rest(raw: str, *, ordinary: int) -> int:
    """Return the length of JSON without data, and without *ordinary* characters for one of text."""
    rest = len(raw) - 5 * raw.count("\\u")
    for string, part, _ in _leaves(raw):
        rest -= len(string) * (ordinary if isinstance(part, TextPart) else 1)
    return max(0, rest)
