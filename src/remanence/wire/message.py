"""One message of a conversation."""

import dataclasses
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal, NamedTuple, Self, TypeAlias

from remanence.errors import InvalidMessage
from remanence.wire import anthropic, gemini, openai, responses
from remanence.wire.content import other_texts
from remanence.wire.json_value import ClientObject, quote
from remanence.wire.parts import (
    OtherPart,
    ParsedMessage,
    Part,
    Role,
    TextPart,
    ToolCallPart,
    ToolResultPart,
    speaker_label,
)

MessageKind: TypeAlias = Literal["message", "control", "memory", "forgotten"]
"""`control` is the host's text (reminders, instructions), `memory` is text that a memory added to a
prompt. Both stay on the tape and in the raw tail, but are never observed. A `forgotten` message is a
tombstone without content."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Message:
    """A message; `seq` and `tokens` are 0 until it is appended to a tape.

    `id` is unique in its conversation. Appending the same message with the same id again has no
    effect, so that a caller may retry. A forgotten message has the `digest` of its former content.
    """

    role: Role
    content: tuple[Part, ...]
    id: str | None = None
    name: str | None = None
    created_at: datetime | None = None
    kind: MessageKind = "message"
    seq: int = 0
    tokens: int = 0
    digest: str | None = None

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
        """Create a user message.

        Args:
            text: the text; parts other than text need `Message(role="user", content=...)`.
            name: the member who wrote it, in a conversation of several people.
            id: your own id, under which the message is written only once; by default a new one.
            created_at: when it was said, with a time zone; by default the time of `append`.
            kind: `control` for text of the program, such as a reminder, or `memory` for text that a
                memory added; neither is observed.

        Raises:
            InvalidMessage: *text* is not a str.
        """
        return cls(
            role="user",
            content=(_text_part(text),),
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
        """Create a message of the model, with text and tool calls; the rest is as for `user`."""
        if not isinstance(tool_calls, Iterable):
            raise InvalidMessage(
                f"tool_calls {tool_calls!r:.80} of a message are not a list: leave them out, or pass a "
                "list of ToolCallPart"
            )
        content = ((_text_part(text),) if text else ()) + tuple(tool_calls)
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
        """Create a message with the result of the tool call *call_id*; the rest is as for `user`.

        With *is_error*, *text* says why the tool failed.
        """
        result = ToolResultPart(
            call_id=call_id, content=(_text_part(text),) if text else (), is_error=is_error
        )
        return cls(role="tool", content=(result,), name=name, id=id, created_at=created_at)

    @classmethod
    def from_openai(cls, data: Mapping[str, Any] | ClientObject) -> Self:
        """Read a message of OpenAI's Chat Completions.

        *data* is a dict, the SDK's object such as `completion.choices[0].message`, or its dump. A
        dict may also have an `id` and a `created_at`, ISO 8601 with an offset or a datetime.

        Raises:
            InvalidMessage: *data* is malformed, or has calls or results in Anthropic's format.
        """
        if not isinstance(data, Mapping):
            return cls(**_parse_openai(data)._asdict())
        id_, created_at, fields = split_record(data)
        return cls(**_parse_openai(fields)._asdict(), id=id_, created_at=created_at)

    @classmethod
    def from_anthropic(cls, data: Mapping[str, Any] | ClientObject) -> Self:
        """Read a message of Anthropic's Messages API.

        *data* is a dict, whose content may have SDK objects, the SDK's object such as a response,
        or its dump.

        Raises:
            InvalidMessage: *data* is malformed.
        """
        return cls(**anthropic.parse(data)._asdict())

    @classmethod
    def from_openai_responses(cls, items: object) -> tuple[Self, ...]:
        """Read items of OpenAI's Responses API: an output, an input, or a part of one.

        *items* is a response, a list of items, one item, or a user's text; as dicts, SDK objects,
        or their dumps. Successive reasoning, calls and texts of the model become one message.

        Raises:
            InvalidMessage: *items* is malformed.
        """
        return tuple(cls(**parsed._asdict()) for parsed in responses.parse(items))

    @classmethod
    def from_gemini(cls, data: Mapping[str, Any] | ClientObject) -> Self:
        """Read a content of Gemini's `generateContent`.

        *data* is a dict, the SDK's object such as `response.candidates[0].content`, or its dump.

        Raises:
            InvalidMessage: *data* is malformed.
        """
        return cls(**gemini.parse(data)._asdict())

    @property
    def text(self) -> str:
        """The message's own text, without tool calls and results."""
        return "\n".join(part.text for part in self.content if isinstance(part, TextPart))

    @property
    def is_empty(self) -> bool:
        """True if the message has nothing but white space, so that no tape accepts it."""
        return all(isinstance(part, TextPart) and not part.text.strip() for part in self.content)

    @property
    def full_text(self) -> str:
        """All readable text: the speaker, the text, tool calls with arguments, results, and others."""
        pieces = [f"{self.speaker}: {self.text}"]
        pieces += [f"[calls {call.name} {call.arguments}]" for call in self.tool_calls]
        pieces += [f"[result] {result.text}" for result in self.tool_results]
        pieces += other_texts(self.content)
        return "\n".join(pieces)

    @property
    def tool_calls(self) -> tuple[ToolCallPart, ...]:
        """The tool calls of the message, in order."""
        return tuple(part for part in self.content if isinstance(part, ToolCallPart))

    @property
    def tool_results(self) -> tuple[ToolResultPart, ...]:
        """The tool results of the message, in order."""
        return tuple(part for part in self.content if isinstance(part, ToolResultPart))

    @property
    def speaker(self) -> str:
        """The name on one line, or else the role."""
        return speaker_label(self.name or "") or self.role

    def replace(self, **changes: Any) -> Self:  # the fields' own types
        """Return a copy with some fields changed."""
        return dataclasses.replace(self, **changes)


class Record(NamedTuple):
    """A message's id and time, and the provider's fields."""

    id: str | None
    created_at: datetime | None
    fields: dict[str, object]


def split_record(data: Mapping[str, object]) -> Record:
    """Separate `id` and `created_at` from a provider's message.

    Raises:
        InvalidMessage: the id is not a string, or the time is malformed or has no offset.
    """
    id_, at = data.get("id"), data.get("created_at")
    if id_ is not None and not isinstance(id_, str):
        raise InvalidMessage(f"the id {id_!r:.80} of a message is not a string: use a string")
    fields = {key: value for key, value in data.items() if key not in ("id", "created_at")}
    return Record(id_, None if at is None else _time(at), fields)


def _parse_openai(data: object) -> ParsedMessage:
    parsed = openai.parse(data)
    for part in parsed.content:
        if isinstance(part, OtherPart) and part.type in ("tool_use", "tool_result"):
            raise InvalidMessage(
                f"{quote(part.value)} is not a block of the format 'openai': use "
                "the format 'anthropic', which Message.from_anthropic reads"
            )
    return parsed


def _text_part(text: object) -> TextPart:
    if not isinstance(text, str):
        raise InvalidMessage(
            f"text {quote(text)} of a message is not a str: convert it, or use "
            "Message.from_openai(...) for a provider's parts"
        )
    return TextPart(text=text)


def _time(value: object) -> datetime:
    try:
        at = value if isinstance(value, datetime) else datetime.fromisoformat(str(value))
    except ValueError:
        at = None
    if at is None or at.tzinfo is None:
        raise InvalidMessage(
            f"created_at {value!r:.80} of a message is not a time: use ISO 8601 with an offset, "
            "such as 2026-05-01T09:30:00+02:00"
        )
    return at
