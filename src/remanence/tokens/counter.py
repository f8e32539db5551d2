"""Token counts of messages, part by part, on top of a text count."""

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, assert_never

from remanence.tokens.estimator import TextCount
from remanence.tokens.media import ImageCount, file_tokens
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

_BASE64 = re.compile(r"(?:data:[^,]{0,200};base64,)?[A-Za-z0-9+/_-]{200,}={0,2}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Frame:
    """Tokens that a provider adds around content."""

    message: int
    tool_call: int = 0
    tool_result: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenCounter:
    """Counts tokens of texts and messages; pure, and never raises for any text or part."""

    name: str
    text_count: TextCount
    result_count: TextCount
    image_count: ImageCount
    frame: Frame

    def text(self, text: str) -> int:
        """Count the tokens of `text`, 0 if it is empty."""
        return self.text_count(text)

    def message(self, message: Message) -> int:
        """Count the tokens that `message` adds to a request, its frame included."""
        name = self.text_count(message.name) if message.name else 0
        return self.frame.message + name + sum(map(self.part, message.content))

    def part(self, part: Part) -> int:
        """Count the tokens of one part of a message."""
        match part:
            case ToolResultPart(content=content):
                return self.frame.tool_result + sum(
                    self._content(inner, self.result_count) for inner in content
                )
            case ToolCallPart(name=name, arguments=arguments):
                call = self.text_count(name) + self.text_count(arguments)
                return self.frame.tool_call + call
            case _:
                return self._content(part, self.text_count)

    def _content(
        self, part: TextPart | ImagePart | FilePart | OtherPart, text_count: TextCount
    ) -> int:
        match part:
            case TextPart(text=text):
                return text_count(text)
            case ImagePart():
                return self.image_count(part)
            case FilePart():
                return file_tokens(part, text=text_count, image=self.image_count)
            case OtherPart(raw=raw):
                return sum(map(text_count, _leaf_texts(raw)))
            case _:
                assert_never(part)


def _leaf_texts(raw: str) -> Iterator[str]:
    """Yield the texts in a part of unknown type, without keys, `type` values and base64 data."""
    try:
        pending: list[Any] = [json.loads(raw)]  # any JSON
    except (ValueError, RecursionError):
        yield raw
        return
    while pending:
        value = pending.pop()
        if isinstance(value, dict):
            pending.extend(item for key, item in value.items() if key != "type")
        elif isinstance(value, list):
            pending.extend(value)
        elif isinstance(value, str) and not _BASE64.fullmatch(value):
            yield value
