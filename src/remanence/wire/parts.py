"""The parts of a message."""

import json
import re
from dataclasses import dataclass
from hashlib import blake2b
from itertools import islice
from typing import Any, Literal, NamedTuple, TypeAlias, get_args
from unicodedata import normalize

from remanence.wire.json_value import read_object

Role: TypeAlias = Literal["system", "user", "assistant", "tool"]
ROLES: frozenset[str] = frozenset(get_args(Role))
Dialect: TypeAlias = Literal["openai", "anthropic", "openai_responses", "gemini"]
DIALECTS: frozenset[str] = frozenset(get_args(Dialect))


@dataclass(frozen=True, slots=True, kw_only=True)
class Extra:
    """Unknown fields of a part, as JSON text in their own dialect.

    They are only sent back to the provider that wrote them. Keys are sorted, so that an SDK object
    and its dump are equal.
    """

    dialect: Dialect
    raw: str

    @property
    def value(self) -> dict[str, Any]:  # a provider's JSON: its shape is the provider's
        """The fields as the provider wrote them."""
        value: dict[str, Any] = json.loads(self.raw)
        return value


MAX_LABEL, MAX_NAME = 100, 1_000
"""Characters that are shown of a name, and read of it."""
_INVISIBLE = re.compile(
    "[\x00-\x08\x0e-\x1b\x7f-\x84\x86-\x9f\u200b\u200e\u200f\u202a-\u202e\u2060-\u2069\ufeff]+"
)
_LEADING_MARKS = "=|`*_-+•\\ "
_BRACKETS = str.maketrans("[]<>#", "()()-")
_DIGEST = re.compile(r"~[0-9a-fA-F]{16}\Z")


def label(name: str) -> str:
    """Return the name of a thing for prompts and notes, on one line of bounded length.

    Control, direction and zero-width characters are removed, as are leading marks of headings and list
    items; brackets become parentheses and `#` a hyphen, so that a name cannot pass for a part of the
    prompt. A letter with an accent is one character, however it was sent.
    """
    return _visible(name).translate(_BRACKETS).lstrip(_LEADING_MARKS)[:MAX_LABEL].rstrip()


def speaker_label(name: str) -> str:
    """Return the name of a speaker like a `label`, but another one for each name that reads differently.

    A name with a leading mark is quoted, and one that was changed or cut, or has no visible character,
    has a digest: `"_ana"`, `bo-1~a3d687fd67592e95`.
    """
    visible = _visible(name)
    shown = visible.translate(_BRACKETS)[:MAX_LABEL].rstrip()
    if name and (shown != visible or not visible or _DIGEST.search(visible)):
        folded = (visible or name[:MAX_NAME]).casefold().encode(errors="surrogatepass")
        shown = f"{shown}~{blake2b(folded, digest_size=8).hexdigest()}"
    return f'"{shown}"' if shown and shown[0] in f'{_LEADING_MARKS}"' else shown


def _visible(name: str) -> str:
    return " ".join(normalize("NFC", _INVISIBLE.sub("", name[:MAX_NAME])).split())


def fold_name(name: str) -> str:
    """Return the form in which names are compared, without regard to case and normalisation form."""
    return normalize("NFC", name).strip().casefold()


@dataclass(frozen=True, slots=True, kw_only=True)
class TextPart:
    """Text, kept as it is."""

    text: str
    extra: Extra | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolCallPart:
    """A tool call of the assistant; `arguments` is the JSON text as the model wrote it."""

    id: str
    name: str
    arguments: str
    extra: Extra | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ImagePart:
    """An image by URL or as base64 data, with width and height in pixels if known."""

    media_type: str | None = None
    data: str | None = None
    url: str | None = None
    width: int | None = None
    height: int | None = None
    extra: Extra | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class FilePart:
    """A file by URL, by a provider's file id, or as base64 data."""

    media_type: str | None = None
    name: str | None = None
    data: str | None = None
    url: str | None = None
    file_id: str | None = None
    extra: Extra | None = None


class _WithHead:
    """Holds the head of a part, so that a long part is parsed only once."""

    __slots__ = ("_head",)


_HEAD_FIELDS = frozenset({"type", "thought", "id", "call_id", "tool_use_id", "approval_request_id"})


@dataclass(frozen=True, slots=True, kw_only=True)
class OtherPart(_WithHead):
    """A part of an unknown type, as JSON text in its own dialect.

    With the scope `message`, it is outside of the content: fields of the message itself, or a
    separate item.
    """

    dialect: Dialect
    raw: str
    scope: Literal["part", "message"] = "part"

    @property
    def value(self) -> dict[str, Any]:  # a provider's JSON: its shape is the provider's
        """The part as the provider wrote it."""
        value: dict[str, Any] = json.loads(self.raw)
        return value

    @property
    def head(self) -> dict[str, Any]:  # as above
        """The first field and those with type and ids; values that are not short are only bool."""
        head: dict[str, Any] | None = getattr(self, "_head", None)
        if head is None:
            value = read_object(self.raw) or {}
            names = dict.fromkeys([*islice(value, 1), *_HEAD_FIELDS.intersection(value)])
            head = {name: _short(value[name]) for name in names}
            object.__setattr__(self, "_head", head)
        return head

    @property
    def type(self) -> str:
        """The part's type in its dialect, empty if it has none."""
        if self.dialect == "gemini":
            return "thinking" if self.head.get("thought") else next(iter(self.head), "")
        kind = self.head.get("type")
        return kind if isinstance(kind, str) else ""


def _short(value: object) -> object:
    return value if isinstance(value, str | int | float) else bool(value)


ResultPart: TypeAlias = TextPart | ImagePart | FilePart | OtherPart


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolResultPart:
    """The result of the tool call *call_id*."""

    call_id: str
    content: tuple[ResultPart, ...] = ()
    is_error: bool = False
    extra: Extra | None = None

    @property
    def text(self) -> str:
        """The text of the result, without images, files and unknown parts."""
        return "\n".join(part.text for part in self.content if isinstance(part, TextPart))


Part: TypeAlias = TextPart | ToolCallPart | ToolResultPart | ImagePart | FilePart | OtherPart


class ParsedMessage(NamedTuple):
    """A provider's message as role, parts and name."""

    role: Role
    content: tuple[Part, ...]
    name: str | None
