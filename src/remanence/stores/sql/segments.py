"""Segments, and the commits that write them and move the cursors."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from typing import LiteralString

from remanence.errors import StoreError
from remanence.stores import transitions
from remanence.stores.rows import (
    SEGMENT_COLUMNS,
    encode_dropped,
    encode_failed,
    encode_instant,
    encode_lost,
    encode_notes,
    segment_from_row,
)
from remanence.stores.sql import search, states, tape, vectors
from remanence.stores.sql.connection import Connection
from remanence.types import ConversationRef, Failure, LogKind, MemoryState, Segment

_SELECT: LiteralString = f"SELECT {SEGMENT_COLUMNS} FROM segments "  # noqa: S608 - a constant
_OF_REF: LiteralString = (
    "WHERE conversation = (SELECT key FROM conversations WHERE tenant = ? AND id = ?) "
)


def live(connection: Connection, key: int) -> tuple[Segment, ...]:
    """Return the live segments of a conversation, in tape order."""
    rows = connection.execute(
        _SELECT + "WHERE conversation = ? AND superseded IS NULL ORDER BY first_seq", (key,)
    )
    return tuple(segment_from_row(row) for row in rows)


def live_of(connection: Connection, ref: ConversationRef) -> tuple[Segment, ...]:
    """The same, by the conversation's name."""
    rows = connection.execute(_SELECT + _OF_REF + "AND superseded IS NULL ORDER BY first_seq", ref)
    return tuple(segment_from_row(row) for row in rows)


def every(connection: Connection, ref: ConversationRef) -> tuple[Segment, ...]:
    """All segments, oldest version first."""
    rows = connection.execute(_SELECT + _OF_REF + "ORDER BY version", ref)
    return tuple(segment_from_row(row) for row in rows)


def one(connection: Connection, ref: ConversationRef, segment_id: str) -> Segment | None:
    """Return the segment with this id."""
    row = connection.execute(_SELECT + _OF_REF + "AND id = ?", (*ref, segment_id)).fetchone()
    return segment_from_row(row) if row else None


def commit_observation(
    connection: Connection, expected: MemoryState, segment: Segment
) -> MemoryState | None:
    """Write an observation and the state it leads to."""
    current = states.current(connection, expected)
    sum_tokens = tape.sum_tokens_at(connection, expected.key, segment.last_seq)
    state = transitions.after_observation(current, expected, segment, sum_tokens=sum_tokens)
    if state is None:
        return None
    segment = _account(connection, state, segment)
    _insert(connection, state.key, segment)
    detail = transitions.describe(segment, "messages")
    entry = transitions.log_entry(state, "observed", segment.created_at, detail)
    states.write(connection, state, entry)
    return state


def commit_reflection(
    connection: Connection,
    expected: MemoryState,
    segment: Segment,
    replaced: Sequence[str],
    *,
    purge: bool,
) -> MemoryState | None:
    """Write a reflection in the place of the segments it replaces."""
    current = states.current(connection, expected)
    live_spans = spans(connection, expected.key)
    state = transitions.after_reflection(current, segment, replaced, live=live_spans)
    if state is None:
        return None
    segment = _account(connection, state, segment)
    _supersede(connection, state, replaced)
    if purge:
        connection.execute(
            "DELETE FROM segments WHERE conversation = ? AND superseded = ?",
            (state.key, state.lock_version),
        )
    _insert(connection, state.key, segment)
    detail = transitions.describe(segment, f"messages in {len(replaced)} segments")
    entry = transitions.log_entry(state, "reflected", segment.created_at, detail)
    states.write(connection, state, entry)
    return state


def replace_observation(
    connection: Connection, expected: MemoryState, segment: Segment, replaced: str
) -> MemoryState | None:
    """Replace an observation by another of the same range."""
    current = states.current(connection, expected)
    live_spans = spans(connection, expected.key)
    state = transitions.after_reobservation(current, segment, replaced, live=live_spans)
    if state is None:
        return None
    segment = _account(connection, state, segment)
    _supersede(connection, state, (replaced,))
    _insert(connection, state.key, segment)
    detail = f"in the place of {replaced}: {transitions.describe(segment, 'messages')}"
    entry = transitions.log_entry(state, "observed", segment.created_at, detail)
    states.write(connection, state, entry)
    return state


def activate(
    connection: Connection,
    expected: MemoryState,
    *,
    active_seq: int,
    tail_seq: int,
    at: datetime,
) -> MemoryState | None:
    """Write the state with its cursor moved."""
    connection.lock(expected.ref)
    key = expected.key
    live_spans = spans(connection, key)
    state = transitions.after_activation(
        states.by_key(connection, key),
        expected,
        active_seq=active_seq,
        tail_seq=tail_seq,
        is_boundary=any(span.last_seq == active_seq for span in live_spans),
        active_sum_tokens=tape.sum_tokens_at(connection, key, active_seq),
        tail_sum_tokens=tape.sum_tokens_at(connection, key, tail_seq - 1),
    )
    if state is not None:
        detail = f"notes up to {active_seq}, messages from {tail_seq}"
        states.write(connection, state, transitions.log_entry(state, "activated", at, detail))
    return state


def record_failure(
    connection: Connection, expected: MemoryState, failure: Failure
) -> MemoryState | None:
    """Write a failure to the state."""
    state = transitions.after_failure(states.current(connection, expected), expected, failure)
    if state is not None:
        kind: LogKind = "skipped" if failure.skips else "failed"
        detail = f"{failure.step}: {failure.reason}: {failure.message}"
        states.write(connection, state, transitions.log_entry(state, kind, failure.at, detail))
    return state


def forget_failures(
    connection: Connection, expected: MemoryState, *, at: datetime
) -> MemoryState | None:
    """Write the state without failures, where it has any."""
    current = states.current(connection, expected)
    state = transitions.after_retry(current)
    if state is not None and current is not None:
        detail = f"was waiting after {current.last_error}"
        states.write(connection, state, transitions.log_entry(state, "retried", at, detail))
    return state


def erase(connection: Connection, conversation: int, segment_ids: Sequence[str]) -> None:
    """Erase segments, live or superseded, with their words and vectors."""
    for segment_id in segment_ids:
        row = connection.execute(
            "SELECT key, superseded FROM segments WHERE conversation = ? AND id = ?",
            (conversation, segment_id),
        ).fetchone()
        if row is None:
            continue
        if row[1] is None:
            search.remove_segment(connection, row[0])
            vectors.remove_segment(connection, row[0])
        connection.execute("DELETE FROM segments WHERE key = ?", (row[0],))


def remake(connection: Connection, state: MemoryState, remade: Sequence[Segment]) -> None:
    """Write live segments in the place of erased ones."""
    for segment in remade:
        _insert(connection, state.key, _account(connection, state, segment))


def spans(connection: Connection, key: int) -> list[transitions.Span]:
    """Return the live segments of a conversation without their texts, in tape order."""
    rows = connection.execute(
        "SELECT id, generation, first_seq, last_seq FROM segments "
        "WHERE conversation = ? AND superseded IS NULL ORDER BY first_seq",
        (key,),
    )
    return [transitions.Span(*row) for row in rows]


def _account(connection: Connection, state: MemoryState, segment: Segment) -> Segment:
    """Return the segment with the tape's token counts and its version of the log."""
    before = tape.sum_tokens_at(connection, state.key, segment.first_seq - 1)
    sum_tokens = tape.sum_tokens_at(connection, state.key, segment.last_seq)
    newest: int | None = connection.execute(
        "SELECT notes_version FROM segments WHERE conversation = ? "
        "ORDER BY version DESC, notes_version DESC LIMIT 1",
        (state.key,),
    ).get
    return replace(
        segment,
        source_tokens=sum_tokens - before,
        sum_tokens=sum_tokens,
        version=state.lock_version,
        superseded=None,
        notes_version=(newest or 0) + 1,
    )


def _insert(connection: Connection, conversation: int, segment: Segment) -> None:
    key: int | None = connection.execute(
        "INSERT INTO segments (conversation, id, generation, first_seq, last_seq, text, notes, "
        "tokens, source_tokens, sum_tokens, lost, made_by, created_at, version, dropped, "
        "failed, notes_version) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) "
        "ON CONFLICT (conversation, id) DO NOTHING RETURNING key",
        (
            conversation,
            segment.id,
            segment.generation,
            segment.first_seq,
            segment.last_seq,
            segment.text,
            encode_notes(segment.notes),
            segment.tokens,
            segment.source_tokens,
            segment.sum_tokens,
            encode_lost(segment.lost),
            segment.made_by,
            encode_instant(segment.created_at),
            segment.version,
            encode_dropped(segment.dropped),
            encode_failed(segment.failed),
            segment.notes_version,
        ),
    ).get
    if key is None:
        raise StoreError(f"segment id {segment.id!r} is taken: take a new id from the clock")
    search.add_segment(connection, conversation, key, segment)


def _supersede(connection: Connection, state: MemoryState, replaced: Sequence[str]) -> None:
    for segment_id in replaced:
        key = connection.execute(
            "UPDATE segments SET superseded = ? WHERE conversation = ? AND id = ? RETURNING key",
            (state.lock_version, state.key, segment_id),
        ).get
        search.remove_segment(connection, key)
        vectors.remove_segment(connection, key)
