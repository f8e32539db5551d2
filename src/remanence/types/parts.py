"""The parts a message is made of."""

import json
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple, TypeAlias, get_args

Role: TypeAlias = Literal["system", "user", "assistant", "tool"]
ROLES: frozenset[str] = frozenset(get_args(Role))


@dataclass(frozen=True, slots=True, kw_only=True)
class TextPart:
    """Text, kept as it is."""

    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolCallPart:
    """A tool call of the assistant; `arguments` is JSON text, kept as the model wrote it."""

    id: str
    name: str
    arguments: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ImagePart:
    """An image by URL or as base64 data; width and height in pixels where they are known."""

    media_type: str | None = None
    data: str | None = None
    url: str | None = None
    width: int | None = None
    height: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class FilePart:
    """A file by URL, by a provider's file id, or as base64 data."""

    media_type: str | None = None
    name: str | None = None
    data: str | None = None
    url: str | None = None
    file_id: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class OtherPart:
    """A part of a type that remanence does not know, whole, as JSON text in its own dialect."""

    dialect: Literal["openai", "anthropic"]
    raw: str

    @property
    def value(self) -> dict[str, Any]:  # a provider's JSON: its shape is the provider's
        """The part as the provider wrote it."""
        value: dict[str, Any] = json.loads(self.raw)
        return value


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolResultPart:
    """The result of the tool call *call_id*."""

    call_id: str
    content: tuple["TextPart | ImagePart | FilePart | OtherPart", ...] = ()
    is_error: bool = False

    @property
    def text(self) -> str:
        """The text of the result; images, files and unknown parts are left out."""
        return "\n".join(part.text for part in self.content if isinstance(part, TextPart))


Part: TypeAlias = TextPart | ToolCallPart | ToolResultPart | ImagePart | FilePart | OtherPart


class Parsed(NamedTuple):
    """A provider's message in our words."""

    role: Role
    content: tuple[Part, ...]
    name: str | None
