"""Values that many tests build: a test names the fields that it is about."""

from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta, tzinfo

from remanence.chat import ChatAnswer, ChatRequest
from remanence.notes import render_notes
from remanence.protocols import ObserveRequest, ReflectRequest
from remanence.testing import FixedClock
from remanence.testing.store_contract.samples import observation, usage
from remanence.types import (
    ConversationRef,
    Draft,
    MemoryState,
    Message,
    Note,
    Segment,
    TextPart,
    ToolCallPart,
)
from remanence.wire.json_value import JsonObject

REF = ConversationRef("default", "chat")
AT = datetime(2026, 3, 2, 9, 0, tzinfo=UTC)  # a Monday


def count_tokens(text: str) -> int:
    """Return a token for every four characters."""
    return (len(text) + 3) // 4


def count_utf8_tokens(text: str) -> int:
    """Return a token for every four bytes."""
    return (len(text.encode()) + 3) // 4


def call(*ids: str, text: str = "") -> Message:
    """Return a message of the assistant that calls the tool `look` once for each id."""
    calls = [ToolCallPart(id=id_, name="look", arguments="{}") for id_ in ids]
    return Message.assistant(text, tool_calls=calls)


def server_call(*ids: str) -> Message:
    """Return an answer of Anthropic with code that the provider runs, and the calls that it makes."""
    code = {"type": "server_tool_use", "id": ids[0], "name": "code_execution", "input": {}}
    caller = {"type": "code_execution_20250825", "tool_id": ids[0]}
    calls = [
        {"type": "tool_use", "id": id_, "name": "look", "input": {}, "caller": caller}
        for id_ in ids[1:]
    ]
    return Message.from_anthropic({"role": "assistant", "content": [code, *calls]})


def server_result(id_: str) -> Message:
    """Return an answer of Anthropic with the result of its code *id_*, and a text."""
    result = {"type": "code_execution_tool_result", "tool_use_id": id_, "content": {}}
    content = [result, {"type": "text", "text": "Done."}]
    return Message.from_anthropic({"role": "assistant", "content": content})


def responses(*items: JsonObject) -> tuple[Message, ...]:
    """Return items of the Responses API as messages."""
    return Message.from_openai_responses(list(items))


def numbered(*messages: Message, at: datetime = AT) -> tuple[Message, ...]:
    """Return messages as a tape has them: numbered from 1, counted, a minute apart."""
    return tuple(
        message.replace(
            seq=seq,
            created_at=message.created_at or at + timedelta(minutes=seq - 1),
            tokens=message.tokens or count_tokens(message.full_text),
        )
        for seq, message in enumerate(messages, start=1)
    )


def observe_request(*messages: Message, **changes: object) -> ObserveRequest:
    """Return a request to observe messages; *changes* are fields of it."""
    fields: dict[str, object] = {
        "conversation": REF,
        "messages": numbered(*messages),
        "known": (),
        "target_tokens": 200,
        "count_tokens": count_tokens,
        "note_format": "compact",
        "now": AT + timedelta(days=1),
    }
    return ObserveRequest(**{**fields, **changes})  # type: ignore[arg-type]  # fields by name


def reflect_request(*segments: Segment, **changes: object) -> ReflectRequest:
    """Return a request to condense segments; *changes* are fields of it."""
    fields: dict[str, object] = {
        "conversation": REF,
        "segments": segments,
        "generation": 1,
        "target_tokens": 100,
        "count_tokens": count_tokens,
        "note_format": "compact",
        "now": AT + timedelta(days=3),
    }
    return ReflectRequest(**{**fields, **changes})  # type: ignore[arg-type]  # fields by name


def segment_of(*notes: Note, **changes: object) -> Segment:
    """Return an observation with these notes; *changes* are fields of it."""
    text = render_notes(notes, "compact")
    fields = {"text": text, "notes": notes, "tokens": count_tokens(text), **changes}
    return observation(notes[0].first_seq, notes[-1].last_seq, **fields)


def state(**changes: object) -> MemoryState:
    """Return the state of a new conversation; *changes* are fields of it."""
    new = MemoryState(ref=REF, key=1, user="ana", created_at=AT)
    return replace(new, **changes)  # type: ignore[arg-type]  # fields by name


def chat_answer(request: ChatRequest, text: str, **changes: object) -> ChatAnswer:
    """Return the answer of a chat's model; *changes* are fields of its usage."""
    fields: dict[str, object] = {
        "conversation": request.conversation,
        "user": request.user,
        "purpose": "chat",
        "model": "speaker",
        "input_tokens": 100,
        "output_tokens": count_tokens(text),
        "cache_read_tokens": 0,
        "cache_write_tokens": 0,
        "cost_usd": None,
        "duration_seconds": 0.0,
        "at": FixedClock().now(),
    }
    spent = usage(**{**fields, **changes})
    return ChatAnswer(content=(TextPart(text=text),), complete=True, usage=spent)


class NoOffset(tzinfo):
    """A time zone that does not know its offset."""

    def utcoffset(self, dt: datetime | None) -> None:
        return None

    def dst(self, dt: datetime | None) -> None:
        return None

    def tzname(self, dt: datetime | None) -> None:
        return None


def drafting(
    *texts: str, complete: bool = True
) -> Callable[[ObserveRequest | ReflectRequest], Draft]:
    """Return an answer with a note of each text, which names the first message of the request."""

    def answer(request: ObserveRequest | ReflectRequest) -> Draft:
        if isinstance(request, ObserveRequest):
            first = request.messages[0].seq
        else:
            first = request.segments[0].first_seq
        notes = tuple(Note(text=text, first_seq=first, last_seq=first) for text in texts)
        return Draft(notes=notes, made_by="scripted/1", complete=complete)

    return answer
