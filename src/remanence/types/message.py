"""One message of a conversation."""

import dataclasses
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal, Self, TypeAlias

from remanence.errors import InvalidMessage
from remanence.types import anthropic, openai
from remanence.types.parts import ROLES, Part, Role, TextPart, ToolCallPart, ToolResultPart

MessageKind: TypeAlias = Literal["message", "control", "memory"]
"""`control` is text of the host (reminders, instructions), `memory` is text that a memory put
into a prompt. Both stay on the tape and in the raw tail; neither is ever observed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Message:
    """A message; `seq` and `tokens` are 0 until a tape gave it its place.

    `id` is unique in its conversation. Appending the same message under the same id twice keeps
    one, so that a caller may retry.
    """

    role: Role
    content: tuple[Part, ...]
    id: str | None = None
    name: str | None = None
    created_at: datetime | None = None
    kind: MessageKind = "message"
    seq: int = 0
    tokens: int = 0

    @classmethod
    def user(
        cls,
        text: str,
        *,
        name: str | None = None,
        id: str | None = None,  # noqa: A002 - the field's name
        created_at: datetime | None = None,
        kind: MessageKind = "message",
    ) -> Self:
        """What a person said."""
        return cls(
            role="user",
            content=(TextPart(text=text),),
            name=name,
            id=id,
            created_at=created_at,
            kind=kind,
        )

    @classmethod
    def assistant(
        cls,
        text: str = "",
        *,
        tool_calls: Iterable[ToolCallPart] = (),
        name: str | None = None,
        id: str | None = None,  # noqa: A002 - the field's name
        created_at: datetime | None = None,
    ) -> Self:
        """What the model said, and the tools it called."""
        content = ((TextPart(text=text),) if text else ()) + tuple(tool_calls)
        return cls(role="assistant", content=content, name=name, id=id, created_at=created_at)

    @classmethod
    def tool(
        cls,
        call_id: str,
        text: str,
        *,
        name: str | None = None,
        is_error: bool = False,
        id: str | None = None,  # noqa: A002 - the field's name
        created_at: datetime | None = None,
    ) -> Self:
        """What the tool call *call_id* gave back."""
        result = ToolResultPart(
            call_id=call_id,
            content=(TextPart(text=text),) if text else (),
            is_error=is_error,
        )
        return cls(role="tool", content=(result,), name=name, id=id, created_at=created_at)

    @classmethod
    def from_openai(cls, data: dict[str, Any]) -> Self:
        """Read a message of OpenAI's Chat Completions; `InvalidMessage` says what is wrong."""
        role, content, name = openai.parse(data)
        return cls(role=role, content=content, name=name)

    @classmethod
    def from_anthropic(cls, data: dict[str, Any]) -> Self:
        """Read a message of Anthropic's Messages API; `InvalidMessage` says what is wrong."""
        role, content, name = anthropic.parse(data)
        return cls(role=role, content=content, name=name)

    @property
    def text(self) -> str:
        """The message's own text; tool calls and results are left out."""
        return "\n".join(part.text for part in self.content if isinstance(part, TextPart))

    @property
    def full_text(self) -> str:
        """All that can be read: the speaker, the text, tool calls with arguments, and results."""
        pieces = [f"{self.speaker}: {self.text}"]
        pieces += [f"[calls {call.name} {call.arguments}]" for call in self.tool_calls]
        pieces += [f"[result] {result.text}" for result in self.tool_results]
        return "\n".join(pieces)

    @property
    def tool_calls(self) -> tuple[ToolCallPart, ...]:
        return tuple(part for part in self.content if isinstance(part, ToolCallPart))

    @property
    def tool_results(self) -> tuple[ToolResultPart, ...]:
        return tuple(part for part in self.content if isinstance(part, ToolResultPart))

    @property
    def speaker(self) -> str:
        """The name where there is one, otherwise the role."""
        return self.name or self.role

    def replace(self, **changes: Any) -> Self:  # the fields' own types
        """A copy with some fields changed."""
        return dataclasses.replace(self, **changes)


def check_message(message: Message, *, max_bytes: int) -> None:
    """Raise `InvalidMessage` for a message that no tape may hold.

    Refused are unknown roles, empty content, text that is not Unicode (NUL, lone surrogates),
    parts in a role that cannot carry them, and content of more than *max_bytes* bytes.
    """
    if not isinstance(message, Message):
        raise InvalidMessage(
            f"{message!r:.80} is a {type(message).__name__} and no message: use Message.user(...), "
            "Message.assistant(...) or Message.from_openai(...)"
        )
    for part in message.content:
        if isinstance(part, TextPart) and not isinstance(part.text, str):
            raise InvalidMessage(f"text {part.text!r:.80} of a message is no text: use a str")
    if message.role not in ROLES:
        raise InvalidMessage(f"role {message.role!r} is unknown: use one of {sorted(ROLES)}")
    if message.created_at is not None and message.created_at.tzinfo is None:
        raise InvalidMessage(
            f"created_at {message.created_at.isoformat()!r} has no time zone: "
            "use an aware datetime, such as one with tzinfo=datetime.UTC"
        )
    _check_parts(message)
    size = 0
    for place, text in _texts(message):
        size += _encoded_size(place, text)
    if size > max_bytes:
        raise InvalidMessage(
            f"the {message.role} message is {size:,} bytes long, more than max_message_bytes="
            f"{max_bytes:,}: store the content elsewhere and append a reference to it"
        )


def _check_parts(message: Message) -> None:
    if not any(_has_content(part) for part in message.content):
        raise InvalidMessage(
            f"the {message.role} message is empty: append a message with text, a tool call, "
            "a tool result, an image or a file"
        )
    if message.tool_calls and message.role != "assistant":
        raise InvalidMessage(
            f"tool call {message.tool_calls[0].id!r} stands in a {message.role} message: "
            "only the assistant calls tools"
        )
    if message.tool_results and message.role not in ("tool", "user"):
        raise InvalidMessage(
            f"the result of tool call {message.tool_results[0].call_id!r} stands in a "
            f"{message.role} message: use Message.tool(...)"
        )


def _has_content(part: Part) -> bool:
    return not isinstance(part, TextPart) or bool(part.text.strip())


def _texts(message: Message) -> Iterable[tuple[str, str]]:
    for field in ("id", "name"):
        value = getattr(message, field)
        if value is not None:
            yield field, value
    for part in message.content:
        yield from _part_texts(part)


def _part_texts(part: Part) -> Iterable[tuple[str, str]]:
    if isinstance(part, ToolResultPart):
        yield "call_id", part.call_id
        for inner in part.content:
            yield from _part_texts(inner)
        return
    for field in dataclasses.fields(part):
        value = getattr(part, field.name)
        if isinstance(value, str):
            yield f"{type(part).__name__}.{field.name}", value


def _encoded_size(place: str, text: str) -> int:
    nul = text.find("\0")
    if nul >= 0:
        raise InvalidMessage(f"{place} has a NUL character at position {nul}: remove it")
    try:
        return len(text.encode())
    except UnicodeEncodeError as error:
        raise InvalidMessage(
            f"{place} has the lone surrogate {text[error.start]!r} at position {error.start}: "
            "decode the text with errors='replace' first"
        ) from error
