"""Conversion between database rows and values, the same for every backend."""

import dataclasses
import json
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from operator import attrgetter
from typing import Any, Generic, LiteralString, TypeVar, get_type_hints

from remanence.errors import StoreError
from remanence.types import (
    APIKey,
    ConversationRef,
    DroppedLine,
    Event,
    EventValue,
    Extra,
    Fact,
    FactsPin,
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
    Scope,
    Segment,
    TextPart,
    ToolCallPart,
    ToolResultPart,
    Usage,
)

T = TypeVar("T")
JsonObject = dict[str, Any]  # JSON that this module wrote; decoding restores the types
Row = Sequence[Any]  # a driver's row, typed by its columns
NO_LIMIT = 2**62
"""A LIMIT that never applies; databases differ in how to write an unlimited one."""

_PART_TYPES = {
    "text": TextPart,
    "tool_call": ToolCallPart,
    "tool_result": ToolResultPart,
    "image": ImagePart,
    "file": FilePart,
    "other": OtherPart,
}
_KINDS = {part_type: kind for kind, part_type in _PART_TYPES.items()}


def encode_time(value: datetime) -> str:
    """Return ISO 8601 with the caller's UTC offset, which decides on which day a message was sent."""
    return value.isoformat("T", "microseconds")


def encode_instant(value: datetime) -> str:
    """Return ISO 8601 in UTC with a fixed width, so that strings sort chronologically."""
    utc = value if value.tzinfo is UTC else value.astimezone(UTC)
    return utc.isoformat("T", "microseconds")


decode_time = datetime.fromisoformat
encode_json = json.JSONEncoder(
    ensure_ascii=False, separators=(",", ":"), default=encode_time
).encode


_decode_json = json.JSONDecoder().decode


def encode_content(content: Sequence[Part]) -> str:
    """Return parts as canonical JSON; a single text part is a JSON string."""
    if len(content) == 1 and isinstance(content[0], TextPart) and content[0].extra is None:
        return encode_json(content[0].text)
    return encode_json([_part_to_json(part) for part in content])


def decode_content(text: str) -> tuple[Part, ...]:
    """Return the parts that `encode_content` encoded."""
    value = _decode_json(text)
    if isinstance(value, str):
        return (TextPart(text=value),)
    return tuple(_part_from_json(item) for item in value)


def _part_to_json(part: Part) -> JsonObject:
    """Return the fields of a part that differ from their defaults."""
    data: JsonObject = {"type": _KINDS[type(part)]}
    for field in dataclasses.fields(part):
        value = getattr(part, field.name)
        if isinstance(part, ToolResultPart) and field.name == "content":
            data["content"] = [_part_to_json(inner) for inner in part.content]
        elif isinstance(value, Extra):
            data["extra"] = [value.dialect, value.raw]
        elif value != field.default:
            data[field.name] = value
    return data


def _part_from_json(data: JsonObject) -> Part:
    kind = data.pop("type")
    if kind == "tool_result":
        data["content"] = tuple(_part_from_json(item) for item in data["content"])
    if "extra" in data:
        dialect, raw = data["extra"]
        data["extra"] = Extra(dialect=dialect, raw=raw)
    part: Part = _PART_TYPES[kind](**data)
    return part


def encode_call_ids(content: Sequence[Part]) -> str | None:
    """Return the ids of the tool calls as a JSON list; None without calls."""
    ids = [part.id for part in content if isinstance(part, ToolCallPart)]
    return encode_json(ids) if ids else None


def encode_notes(notes: Sequence[Note]) -> str:
    """Notes as a JSON list."""
    return encode_json([_without_nulls(note) for note in notes])


def decode_notes(text: str) -> tuple[Note, ...]:
    """Return the notes that `encode_notes` encoded."""
    return tuple(Note(**_restore_times(item, "observed_at")) for item in _decode_json(text))


def _without_nulls(value: Note | Failure) -> JsonObject:
    fields = ((field.name, getattr(value, field.name)) for field in dataclasses.fields(value))
    return {name: field for name, field in fields if field is not None}


def _restore_times(data: JsonObject, *names: str) -> JsonObject:
    return data | {name: decode_time(data[name]) for name in names if name in data}


def decode_failed(text: str) -> tuple[FailedStretch, ...]:
    """Return the stretches of a segment's column `failed`."""
    return tuple(FailedStretch(*row) for row in _decode_json(text))


def _encode_dropped(dropped: Sequence[DroppedLine]) -> str:
    return encode_json([dataclasses.astuple(line) for line in dropped])


def _decode_dropped(text: str) -> tuple[DroppedLine, ...]:
    rows = _decode_json(text)
    return tuple(DroppedLine(text=line, reason=why, detail=detail) for line, why, detail in rows)


def encode_failure(failure: Failure) -> str:
    """Return a failure as JSON, for a column of a state."""
    return encode_json(_without_nulls(failure))


_TEXTS = (encode_json, lambda text: tuple(_decode_json(text)))
_TIMES = (encode_instant, decode_time)
_CODECS: Mapping[object, tuple[Callable[[Any], object], Callable[[Any], Any]]] = {
    tuple[Part, ...]: (encode_content, decode_content),
    tuple[Note, ...]: (encode_notes, decode_notes),
    tuple[DroppedLine, ...]: (_encode_dropped, _decode_dropped),
    tuple[FailedStretch, ...]: (encode_json, decode_failed),
    Mapping[str, EventValue]: (encode_json, _decode_json),
    Failure | None: (
        encode_failure,
        lambda text: Failure(**_restore_times(_decode_json(text), "at", "next_attempt_at")),
    ),
    tuple[str, ...]: _TEXTS,
    tuple[Scope, ...]: _TEXTS,
    datetime: _TIMES,
    datetime | None: _TIMES,
}
"""Encoder and decoder for each field type that is not stored unchanged."""


class Rows(Generic[T]):
    """Maps values of a type to rows; the columns are named like the fields."""

    def __init__(self, kind: type[T], name: str, columns: LiteralString) -> None:
        self.columns = columns
        self.places: LiteralString = ", ".join("?" for _ in columns.split(","))
        self._kind = kind
        self._name = name
        self._fields = [column.strip('" ') for column in columns.split(",")]
        self._values = attrgetter(*self._fields)
        types = get_type_hints(kind)
        typed = [(place, types[name]) for place, name in enumerate(self._fields)]
        codecs = [(place, *_CODECS[of]) for place, of in typed if of in _CODECS]
        self._encoders = [(place, encode) for place, encode, _ in codecs]
        self._decoders = [(place, decode) for place, _, decode in codecs]

    def encode(self, value: T) -> list[Any]:
        """Return the columns of a value."""
        row = list(self._values(value))
        for place, encode in self._encoders:
            if row[place] is not None:
                row[place] = encode(row[place])
        return row

    def decode(self, row: Row, *, name: object = None, **others: object) -> T:
        """Return the value of a row; *others* are fields without a column.

        Raises:
            StoreError: the row is damaged; the message shows *name*, by default the first column.
        """
        try:
            values = list(row)
            for place, decode in self._decoders:
                if values[place] is not None:
                    values[place] = decode(values[place])
            others.update(zip(self._fields, values, strict=True))
            return self._kind(**others)
        except Exception as error:
            raise StoreError(
                f"{self._name} {row[0] if name is None else name!r} cannot be read: "
                f"{type(error).__name__}: {error}; run 'remanence doctor' to list all damage, "
                "and restore an earlier backup"
            ) from error


MESSAGES = Rows(
    Message, "message", "seq, id, role, kind, name, content, created_at, tokens, digest"
)
SEGMENTS = Rows(
    Segment,
    "segment",
    "id, generation, first_seq, last_seq, text, notes, tokens, source_tokens, sum_tokens, lost, "
    "made_by, created_at, version, superseded, dropped, failed, notes_version",
)
LOG = Rows(
    LogEntry,
    "log entry",
    "version, kind, at, observed_seq, active_seq, reflected_seq, tail_seq, detail, last_seq",
)
REPETITIONS = Rows(
    Fact,
    "fact",
    "id, summary, type, tags, conversation, first_seq, last_seq, made_by, created_at, valid_from",
)
FACTS = Rows(Fact, "fact", f"{REPETITIONS.columns}, valid_to, superseded_by")
PINS = Rows(FactsPin, "the pin of conversation", "marker, text, own_marker, own_text, at")
USAGES = Rows(
    Usage,
    "model call",
    "purpose, model, input_tokens, output_tokens, cache_read_tokens, cache_write_tokens, cost_usd, "
    "duration_seconds, outcome, at",
)
API_KEYS = Rows(
    APIKey, "key", "id, name, tenant, scopes, created_at, expires_at, revoked_at, digest"
)
EVENTS = Rows(Event, "event", 'id, type, at, tenant, conversation, "user", data')
STEPS = Rows(
    MemoryState,
    "state",
    "observed_seq, active_seq, reflected_seq, tail_seq, observed_sum_tokens, active_sum_tokens, "
    "tail_sum_tokens, last_observed_at, last_reflected_at, observe_failure, reflect_failure, "
    "facts_seq, facts_failure, lock_version",
)
"""The columns of a state that background work changes."""

_STATES = Rows(
    MemoryState,
    "the state of conversation",
    f'key, "user", created_at, {STEPS.columns}, lease_owner, lease_until, erasures, look_tokens, '
    "last_seq, last_sum_tokens, last_message_at, look_at",
)
# Columns changed by an append come last.
STATE_COLUMNS: LiteralString = f"tenant, id, {_STATES.columns}"


def state_from_row(row: Row) -> MemoryState:
    """Return the state of a row of STATE_COLUMNS; raise `StoreError` if it is damaged."""
    tenant, id_, *values = row
    return _STATES.decode(values, name=id_, ref=ConversationRef(tenant, id_))


def plain_summary(summary: str) -> str:
    """Return the normal form of a summary, in which equal wording compares equal."""
    return " ".join(summary.casefold().split()).rstrip(".")
