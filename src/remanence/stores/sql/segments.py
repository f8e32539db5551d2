"""Segments, and the commits that write them and advance the cursors."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from typing import LiteralString

from remanence.errors import StoreError
from remanence.stores import transitions
from remanence.stores.rows import SEGMENTS, encode_instant
from remanence.stores.sql import search, states, tape, vectors
from remanence.stores.sql.connection import Connection
from remanence.types import ConversationRef, EventValue, Failure, LogKind, MemoryState, Segment

_SELECT: LiteralString = f"SELECT {SEGMENTS.columns} FROM segments "  # noqa: S608 - a constant
_LIVE: LiteralString = "AND superseded IS NULL ORDER BY first_seq"


def live(connection: Connection, key: int) -> tuple[Segment, ...]:
    """Return the live segments of a conversation, in tape order."""
    rows = connection.execute(_SELECT + "WHERE conversation = ? " + _LIVE, (key,))
    return tuple(SEGMENTS.decode(row) for row in rows)


def of_ref(connection: Connection, ref: ConversationRef, *, live: bool) -> tuple[Segment, ...]:
    rows = connection.execute(_SELECT + tape.OF_REF + (_LIVE if live else "ORDER BY version"), ref)
    return tuple(SEGMENTS.decode(row) for row in rows)


def get(connection: Connection, ref: ConversationRef, segment_id: str) -> Segment | None:
    row = connection.execute(_SELECT + tape.OF_REF + "AND id = ?", (*ref, segment_id)).fetchone()
    return SEGMENTS.decode(row) if row else None


def commit_observation(
    connection: Connection, state: MemoryState, segment: Segment
) -> MemoryState | None:
    current = states.current(connection, state)
    after = transitions.after_observation(current, state, segment)
    return _commit(connection, after, segment, "messages")


def replace_observation(
    connection: Connection, state: MemoryState, segment: Segment, replaced: str
) -> MemoryState | None:
    current = states.current(connection, state)
    live_spans = spans(connection, state.key)
    after = transitions.after_reobservation(current, segment, replaced, live=live_spans)
    return _commit(connection, after, segment, "messages", replaced=[replaced])


def commit_reflection(
    connection: Connection,
    state: MemoryState,
    segment: Segment,
    replaced: Sequence[str],
    *,
    purge: bool = False,
) -> MemoryState | None:
    current = states.current(connection, state)
    live_spans = spans(connection, state.key)
    after = transitions.after_reflection(current, segment, replaced, live=live_spans)
    source = f"messages in {len(replaced)} segments"
    committed = _commit(connection, after, segment, source, replaced=replaced)
    if purge and committed is not None:
        connection.execute(
            "DELETE FROM segments WHERE conversation = ? AND superseded = ?",
            (committed.key, committed.lock_version),
        )
    return committed


def activate(
    connection: Connection, state: MemoryState, *, active_seq: int, tail_seq: int, at: datetime
) -> MemoryState | None:
    connection.lock(state.ref)
    after = transitions.after_activation(
        states.by_key(connection, state.key),
        state,
        active_seq=active_seq,
        tail_seq=tail_seq,
        is_boundary=any(span.last_seq == active_seq for span in spans(connection, state.key)),
    )
    if after is None:
        return None
    detail = f"notes up to {active_seq}, messages from {tail_seq}"
    data = {"active_seq": active_seq, "tail_seq": tail_seq}
    return states.write(connection, after, "activated", at, detail, data)


def record_failure(
    connection: Connection, state: MemoryState, failure: Failure
) -> MemoryState | None:
    after = transitions.after_failure(states.current(connection, state), state, failure)
    if after is not None:
        detail = f"{failure.step}: {failure.reason}: {failure.message}"
        kind: LogKind = "skipped" if failure.left_out else "failed"
        data: dict[str, EventValue] = {
            "step": failure.step,
            "reason": failure.reason,
            "failures": failure.failures,
            "next_attempt_at": encode_instant(failure.next_attempt_at),
        }
        states.write(connection, after, kind, failure.at, detail, data)
    return after


def forget_failures(
    connection: Connection, state: MemoryState, *, at: datetime
) -> MemoryState | None:
    current = states.current(connection, state)
    after = transitions.after_retry(current)
    if after is not None and current is not None:
        detail = f"was waiting after {current.last_error}"
        states.write(connection, after, "retried", at, detail, {})
    return after


def erase(connection: Connection, conversation: int, segment_ids: Sequence[str]) -> None:
    """Erase segments, live or superseded, with their words and vectors."""
    for segment_id in segment_ids:
        key: int | None = connection.execute(
            "SELECT key FROM segments WHERE conversation = ? AND id = ?", (conversation, segment_id)
        ).get
        if key is not None:
            _remove_from_indexes(connection, key)
            connection.execute("DELETE FROM segments WHERE key = ?", (key,))


def spans(connection: Connection, key: int) -> list[transitions.Span]:
    """Return the live segments of a conversation without their texts, in tape order."""
    rows = connection.execute(
        "SELECT id, generation, first_seq, last_seq FROM segments "
        "WHERE conversation = ? AND superseded IS NULL ORDER BY first_seq",
        (key,),
    )
    return [transitions.Span(*row) for row in rows]


def last_number(connection: Connection, key: int) -> int:
    """Return the highest `notes_version`, always that of a live segment; 0 if there is none."""
    newest: int | None = connection.execute(
        "SELECT notes_version FROM segments WHERE conversation = ? "
        "ORDER BY version DESC, notes_version DESC LIMIT 1",
        (key,),
    ).get
    return newest or 0


def add(connection: Connection, state: MemoryState, segment: Segment, *, number: int) -> Segment:
    """Write a segment, and return it with its token counts and versions filled in."""
    sum_tokens = tape.sum_tokens_at(connection, state.key, segment.last_seq)
    segment = replace(
        segment,
        source_tokens=sum_tokens - tape.sum_tokens_at(connection, state.key, segment.first_seq - 1),
        sum_tokens=sum_tokens,
        version=state.lock_version,
        superseded=None,
        notes_version=number,
    )
    key: int | None = connection.execute(
        f"INSERT INTO segments (conversation, {SEGMENTS.columns}) VALUES (?, {SEGMENTS.places}) "  # noqa: S608 - constants
        "ON CONFLICT (conversation, id) DO NOTHING RETURNING key",
        (state.key, *SEGMENTS.encode(segment)),
    ).get
    if key is None:
        raise StoreError(f"segment id {segment.id!r} already exists: take a new id from the clock")
    search.add_notes(connection, state.key, key, segment.notes, segment.text)
    return segment


def _commit(
    connection: Connection,
    after: MemoryState | None,
    segment: Segment,
    source: str,
    *,
    replaced: Sequence[str] = (),
) -> MemoryState | None:
    """Write a segment made from *source*, which may replace others, and the resulting state."""
    if after is None:
        return None
    for segment_id in replaced:
        key: int = connection.execute(
            "UPDATE segments SET superseded = ? WHERE conversation = ? AND id = ? RETURNING key",
            (after.lock_version, after.key, segment_id),
        ).get
        _remove_from_indexes(connection, key)
    number = last_number(connection, after.key) + 1
    added = add(connection, after, segment, number=number)
    detail = transitions.describe(added, source)
    if replaced and not segment.generation:
        detail = f"in the place of {replaced[0]}: {detail}"
    kind: LogKind = "reflected" if segment.generation else "observed"
    data: dict[str, EventValue] = {
        "segment": segment.id,
        "generation": segment.generation,
        "first_seq": segment.first_seq,
        "last_seq": segment.last_seq,
        "tokens": segment.tokens,
    }
    return states.write(connection, after, kind, segment.created_at, detail, data)


def _remove_from_indexes(connection: Connection, key: int) -> None:
    search.remove_segment(connection, key)
    vectors.remove_segment(connection, key)
