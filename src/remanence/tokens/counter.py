"""Token counts of messages, part by part, based on a text counter."""

import json
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, Self, assert_never

from remanence.tokens.cache import CountCache
from remanence.tokens.estimator import TextCount
from remanence.tokens.media import ImageCount, claude_image, file_tokens
from remanence.types import (
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
        return self.frame.message + name + sum(parts)

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
                return sum(self._part(leaf, text) for leaf in _leaves(raw))
            case _:
                assert_never(part)


def _leaves(raw: str) -> Iterator[TextPart | ImagePart | FilePart]:
    """Yield texts and media in a part of unknown type, except keys, `type` values and other base64."""
    try:
        pending: list[Any] = [json.loads(raw)]  # any JSON
    except (ValueError, RecursionError):
        yield TextPart(text=raw)
        return
    while pending:
        match value := pending.pop():
            case {"data": str(data), "media_type": str(kind)} if BASE64.fullmatch(data):
                yield FilePart(media_type=kind, data=data)
            case {"data": str(data), "format": str(name)} if BASE64.fullmatch(data):
                yield FilePart(media_type=f"audio/{name}", data=data)
            case dict():
                pending.extend(item for key, item in value.items() if key != "type")
            case list():
                pending.extend(value)
            case str() if not BASE64.fullmatch(value):
                yield TextPart(text=value)
            case str() if value.startswith("data:"):
                yield FilePart(url=value)
            case str() if value.startswith(tuple(IMAGE_HEADS)):
                yield ImagePart(data=value)
