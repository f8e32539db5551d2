"""Conversion between database rows and values, the same for every backend."""

import json
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any, LiteralString, TypeAlias, assert_never

from remanence.errors import StoreError
from remanence.types import (
    ConversationRef,
    DroppedLine,
    Extra,
    Fact,
    FailedStretch,
    Failure,
    FilePart,
    ImagePart,
    LogEntry,
    MemoryState,
    Message,
    Note,
    OtherPart,
    Part,
    Segment,
    TextPart,
    ToolCallPart,
    ToolResultPart,
)

JsonObject = dict[str, Any]  # JSON that this module wrote; decoding restores the types
Row = Sequence[Any]  # a driver's row, typed by its columns
NO_LIMIT = 2**62
"""For a LIMIT; databases disagree on how to say none."""

KnownPart: TypeAlias = TextPart | ToolCallPart | ToolResultPart | ImagePart | FilePart

_encode = json.JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode


def encode_content(content: Sequence[Part]) -> str:
    """Parts as JSON; equal parts give equal text. A lone text part is a JSON string."""
    if len(content) == 1 and isinstance(content[0], TextPart) and content[0].extra is None:
        return _encode(content[0].text)
    return _encode([_part_to_json(part) for part in content])


def decode_content(text: str) -> tuple[Part, ...]:
    """Return the parts that `encode_content` encoded."""
    value = json.loads(text)
    if isinstance(value, str):
        return (TextPart(text=value),)
    return tuple(_part_from_json(item) for item in value)


def _part_to_json(part: Part) -> JsonObject:
    if isinstance(part, OtherPart):
        scope = {} if part.scope == "part" else {"scope": part.scope}
        return {"type": "other", "dialect": part.dialect, "raw": part.raw, **scope}
    extra = {"extra": [part.extra.dialect, part.extra.raw]} if part.extra else {}
    return {**_known_part_to_json(part), **extra}


def _known_part_to_json(part: KnownPart) -> JsonObject:
    match part:
        case TextPart():
            return {"type": "text", "text": part.text}
        case ToolCallPart():
            fields = {"id": part.id, "name": part.name, "arguments": part.arguments}
            return {"type": "tool_call", **fields}
        case ToolResultPart():
            inner = [_part_to_json(item) for item in part.content]
            result = {"type": "tool_result", "call_id": part.call_id, "content": inner}
            return {**result, "is_error": True} if part.is_error else result
        case ImagePart():
            return {"type": "image", **_present(part, _IMAGE_FIELDS)}
        case FilePart():
            return {"type": "file", **_present(part, _FILE_FIELDS)}
        case _:
            assert_never(part)


_IMAGE_FIELDS = ("media_type", "data", "url", "width", "height")
_FILE_FIELDS = ("media_type", "name", "data", "url", "file_id")


def _present(part: Part, fields: tuple[str, ...]) -> JsonObject:
    values = ((field, getattr(part, field)) for field in fields)
    return {field: value for field, value in values if value is not None}


def _part_from_json(data: JsonObject) -> Part:
    kind = data.pop("type")
    if kind == "tool_result":
        data["content"] = tuple(_part_from_json(item) for item in data["content"])
    if "extra" in data:
        dialect, raw = data["extra"]
        data["extra"] = Extra(dialect=dialect, raw=raw)
    part: Part = _PART_TYPES[kind](**data)
    return part


_PART_TYPES = {
    "text": TextPart,
    "tool_call": ToolCallPart,
    "tool_result": ToolResultPart,
    "image": ImagePart,
    "file": FilePart,
    "other": OtherPart,
}


def encode_call_ids(content: Sequence[Part]) -> str | None:
    """The ids of the tool calls as a JSON list; None where there are none."""
    ids = [part.id for part in content if isinstance(part, ToolCallPart)]
    return _encode(ids) if ids else None


def encode_notes(notes: Sequence[Note]) -> str:
    """Notes as a JSON list."""
    return _encode([_note_to_json(note) for note in notes])


def decode_notes(text: str) -> tuple[Note, ...]:
    """Return the notes that `encode_notes` encoded."""
    return tuple(_note_from_json(item) for item in json.loads(text))


_NOTE_FIELDS = ("referenced_at", "speaker", "topic", "supersedes")


def _note_to_json(note: Note) -> JsonObject:
    data: JsonObject = {
        "text": note.text,
        "first_seq": note.first_seq,
        "last_seq": note.last_seq,
        "priority": note.priority,
        "tag": note.tag,
    }
    if note.observed_at is not None:
        data["observed_at"] = note.observed_at.isoformat()
    optional = ((field, getattr(note, field)) for field in _NOTE_FIELDS)
    data.update((field, value) for field, value in optional if value is not None)
    return data


def _note_from_json(data: JsonObject) -> Note:
    if (observed_at := data.get("observed_at")) is not None:
        data["observed_at"] = datetime.fromisoformat(observed_at)
    return Note(**data)


def encode_lost(lost: Sequence[str]) -> str:
    """Lost literals as a JSON list."""
    return _encode(list(lost))


def encode_dropped(dropped: Sequence[DroppedLine]) -> str:
    """Dropped lines as a JSON list."""
    return _encode([[line.text, line.reason, line.detail] for line in dropped])


def _decode_dropped(text: str) -> tuple[DroppedLine, ...]:
    rows = json.loads(text)
    return tuple(DroppedLine(text=line, reason=why, detail=detail) for line, why, detail in rows)


def encode_failed(failed: Sequence[FailedStretch]) -> str:
    """Failed stretches as a JSON list."""
    return _encode([list(stretch) for stretch in failed])


def decode_failed(text: str) -> tuple[FailedStretch, ...]:
    """Return the stretches that `encode_failed` encoded."""
    return tuple(FailedStretch(*row) for row in json.loads(text))


def encode_time(value: datetime) -> str:
    """Return ISO 8601 with the caller's offset, as a person's day depends on it."""
    return value.isoformat(timespec="microseconds")


def encode_instant(value: datetime) -> str:
    """Return ISO 8601 in UTC and of fixed width, so that texts sort like instants."""
    utc = value if value.tzinfo is UTC else value.astimezone(UTC)
    return utc.isoformat(timespec="microseconds")


def decode_time(value: datetime | str) -> datetime:
    """Return a time from a driver's value, a text or a datetime."""
    return datetime.fromisoformat(value) if isinstance(value, str) else value


def _time(value: datetime | str | None) -> datetime | None:
    return None if value is None else decode_time(value)


MESSAGE_COLUMNS: LiteralString = "seq, id, role, kind, name, content, created_at, tokens, digest"


def message_from_row(row: Row) -> Message:
    """Return the message of a row of MESSAGE_COLUMNS; raise `StoreError` if it is damaged."""
    try:
        return _message(row)
    except Exception as error:
        raise _damaged_row_error(f"message {row[0]}", error) from error


def _message(row: Row) -> Message:
    seq, id_, role, kind, name, content, created_at, tokens, digest = row
    return Message(
        role=role,
        content=decode_content(content),
        id=id_,
        name=name,
        created_at=decode_time(created_at),
        kind=kind,
        seq=seq,
        tokens=tokens,
        digest=digest,
    )


SEGMENT_COLUMNS: LiteralString = (
    "id, generation, first_seq, last_seq, text, notes, tokens, source_tokens, sum_tokens, lost, "
    "made_by, created_at, version, superseded, dropped, failed, notes_version"
)


def segment_from_row(row: Row) -> Segment:
    """Return the segment of a row of SEGMENT_COLUMNS; raise `StoreError` if it is damaged."""
    try:
        return _segment(row)
    except Exception as error:
        raise _damaged_row_error(f"segment {row[0]!r}", error) from error


def _segment(row: Row) -> Segment:
    return Segment(
        id=row[0],
        generation=row[1],
        first_seq=row[2],
        last_seq=row[3],
        text=row[4],
        notes=decode_notes(row[5]),
        tokens=row[6],
        source_tokens=row[7],
        sum_tokens=row[8],
        lost=tuple(json.loads(row[9])),
        made_by=row[10],
        created_at=decode_time(row[11]),
        version=row[12],
        superseded=row[13],
        dropped=_decode_dropped(row[14]),
        failed=decode_failed(row[15]),
        notes_version=row[16],
    )


# The columns that an append changes come last.
STATE_COLUMNS: LiteralString = (
    'tenant, id, key, "user", created_at, observed_seq, active_seq, reflected_seq, tail_seq, '
    "observed_sum_tokens, active_sum_tokens, tail_sum_tokens, last_observed_at, "
    "last_reflected_at, observe_failure, reflect_failure, lock_version, lease_owner, "
    "lease_until, facts_seq, facts_failure, erasures, look_tokens, last_seq, last_sum_tokens, "
    "last_message_at, look_at"
)


def state_from_row(row: Row) -> MemoryState:
    """Return the state of a row of STATE_COLUMNS; raise `StoreError` if it is damaged."""
    try:
        return _state(row)
    except Exception as error:
        raise _damaged_row_error(f"the state of conversation {row[1]!r}", error) from error


def _damaged_row_error(what: str, error: Exception) -> StoreError:
    return StoreError(
        f"{what} cannot be read: {type(error).__name__}: {error}; 'remanence doctor' lists what is "
        "damaged: restore a backup that was made before"
    )


def _state(row: Row) -> MemoryState:
    return MemoryState(
        ref=ConversationRef(row[0], row[1]),
        key=row[2],
        user=row[3],
        created_at=decode_time(row[4]),
        observed_seq=row[5],
        active_seq=row[6],
        reflected_seq=row[7],
        tail_seq=row[8],
        observed_sum_tokens=row[9],
        active_sum_tokens=row[10],
        tail_sum_tokens=row[11],
        last_observed_at=_time(row[12]),
        last_reflected_at=_time(row[13]),
        observe_failure=_failure(row[14]),
        reflect_failure=_failure(row[15]),
        lock_version=row[16],
        lease_owner=row[17],
        lease_until=_time(row[18]),
        facts_seq=row[19],
        facts_failure=_failure(row[20]),
        erasures=row[21],
        look_tokens=row[22],
        last_seq=row[23],
        last_sum_tokens=row[24],
        last_message_at=_time(row[25]),
        look_at=_time(row[26]),
    )


def encode_failure(failure: Failure | None) -> str | None:
    """A failure as JSON; None stays None."""
    if failure is None:
        return None
    return _encode(
        {
            "step": failure.step,
            "reason": failure.reason,
            "message": failure.message,
            "at": encode_instant(failure.at),
            "next_attempt_at": encode_instant(failure.next_attempt_at),
            "failures": failure.failures,
            "last_seq": failure.last_seq,
            "skips": failure.skips,
            "made_by": failure.made_by,
            "rejections": failure.rejections,
        }
    )


def _failure(text: str | None) -> Failure | None:
    if text is None:
        return None
    data = json.loads(text)
    for field in ("at", "next_attempt_at"):
        data[field] = datetime.fromisoformat(data[field])
    return Failure(**data)


LOG_COLUMNS: LiteralString = (
    "version, kind, at, observed_seq, active_seq, reflected_seq, tail_seq, detail, last_seq"
)


def log_entry_from_row(row: Row) -> LogEntry:
    """Return the log entry of a row of LOG_COLUMNS."""
    return LogEntry(
        version=row[0],
        kind=row[1],
        at=decode_time(row[2]),
        observed_seq=row[3],
        active_seq=row[4],
        reflected_seq=row[5],
        tail_seq=row[6],
        detail=row[7],
        last_seq=row[8],
    )


FACT_COLUMNS: LiteralString = (
    'tenant, "user", facts.id, summary, type, tags, facts.conversation, first_seq, last_seq, '
    "made_by, facts.created_at, valid_from, valid_to, superseded_by"
)


def fact_from_row(row: Row) -> Fact:
    """Return the fact of a row of FACT_COLUMNS."""
    return Fact(
        tenant=row[0],
        user=row[1],
        id=row[2],
        summary=row[3],
        type=row[4],
        tags=tuple(json.loads(row[5])),
        conversation=row[6],
        first_seq=row[7],
        last_seq=row[8],
        made_by=row[9],
        created_at=decode_time(row[10]),
        valid_from=decode_time(row[11]),
        valid_to=_time(row[12]),
        superseded_by=row[13],
    )


def encode_tags(tags: Sequence[str]) -> str:
    """Tags as a JSON list."""
    return _encode(list(tags))


def plain_summary(summary: str) -> str:
    """Return a summary in normal form: equal for summaries with the same words."""
    return " ".join(summary.casefold().split()).rstrip(".")
