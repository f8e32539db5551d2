"""Segments, and the commits that write them and move the cursors."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from typing import LiteralString

from remanence.errors import StoreError
from remanence.stores import transitions
from remanence.stores.rows import SEGMENTS
from remanence.stores.sql import search, states, tape, vectors
from remanence.stores.sql.connection import Connection
from remanence.types import ConversationRef, Failure, LogKind, MemoryState, Segment

_SELECT: LiteralString = f"SELECT {SEGMENTS.columns} FROM segments "  # noqa: S608 - a constant
_LIVE: LiteralString = "AND superseded IS NULL ORDER BY first_seq"


def live(connection: Connection, key: int) -> tuple[Segment, ...]:
    """Return the live segments of a conversation, in tape order."""
    rows = connection.execute(_SELECT + "WHERE conversation = ? " + _LIVE, (key,))
    return tuple(SEGMENTS.decode(row) for row in rows)


def of_ref(connection: Connection, ref: ConversationRef, *, live: bool) -> tuple[Segment, ...]:
    """Return the live segments in tape order, or all, oldest version first."""
    rows = connection.execute(_SELECT + tape.OF_REF + (_LIVE if live else "ORDER BY version"), ref)
    return tuple(SEGMENTS.decode(row) for row in rows)


def one(connection: Connection, ref: ConversationRef, segment_id: str) -> Segment | None:
    """Return the segment with this id."""
    row = connection.execute(_SELECT + tape.OF_REF + "AND id = ?", (*ref, segment_id)).fetchone()
    return SEGMENTS.decode(row) if row else None


def commit_observation(
    connection: Connection, state: MemoryState, segment: Segment
) -> MemoryState | None:
    """Write an observation and the state it leads to."""
    after = transitions.after_observation(
        states.current(connection, state),
        state,
        segment,
        sum_tokens=tape.sum_tokens_at(connection, state.key, segment.last_seq),
    )
    if after is not None:
        added = _add(connection, after, segment)
        detail = transitions.describe(added, "messages")
        states.write(connection, after, "observed", segment.created_at, detail)
    return after


def replace_observation(
    connection: Connection, state: MemoryState, segment: Segment, replaced: str
) -> MemoryState | None:
    """Replace an observation by another of the same range."""
    current = states.current(connection, state)
    live_spans = spans(connection, state.key)
    after = transitions.after_reobservation(current, segment, replaced, live=live_spans)
    if after is not None:
        _supersede(connection, after, [replaced])
        added = _add(connection, after, segment)
        detail = f"in the place of {replaced}: {transitions.describe(added, 'messages')}"
        states.write(connection, after, "observed", segment.created_at, detail)
    return after


def commit_reflection(
    connection: Connection,
    state: MemoryState,
    segment: Segment,
    replaced: Sequence[str],
    *,
    purge: bool = False,
) -> MemoryState | None:
    """Write a reflection in the place of the segments it replaces."""
    current = states.current(connection, state)
    live_spans = spans(connection, state.key)
    after = transitions.after_reflection(current, segment, replaced, live=live_spans)
    if after is not None:
        _supersede(connection, after, replaced)
        added = _add(connection, after, segment)
        if purge:
            connection.execute(
                "DELETE FROM segments WHERE conversation = ? AND superseded = ?",
                (after.key, after.lock_version),
            )
        detail = transitions.describe(added, f"messages in {len(replaced)} segments")
        states.write(connection, after, "reflected", segment.created_at, detail)
    return after


def activate(
    connection: Connection,
    state: MemoryState,
    *,
    active_seq: int,
    tail_seq: int,
    at: datetime,
) -> MemoryState | None:
    """Write the state with its cursor moved."""
    connection.lock(state.ref)
    key = state.key
    after = transitions.after_activation(
        states.by_key(connection, key),
        state,
        active_seq=active_seq,
        tail_seq=tail_seq,
        is_boundary=any(span.last_seq == active_seq for span in spans(connection, key)),
        active_sum_tokens=tape.sum_tokens_at(connection, key, active_seq),
        tail_sum_tokens=tape.sum_tokens_at(connection, key, tail_seq - 1),
    )
    if after is not None:
        detail = f"notes up to {active_seq}, messages from {tail_seq}"
        states.write(connection, after, "activated", at, detail)
    return after


def record_failure(
    connection: Connection, state: MemoryState, failure: Failure
) -> MemoryState | None:
    """Write a failure to the state."""
    after = transitions.after_failure(states.current(connection, state), state, failure)
    if after is not None:
        detail = f"{failure.step}: {failure.reason}: {failure.message}"
        kind: LogKind = "skipped" if failure.skips else "failed"
        states.write(connection, after, kind, failure.at, detail)
    return after


def forget_failures(
    connection: Connection, state: MemoryState, *, at: datetime
) -> MemoryState | None:
    """Write the state without failures, where it has any."""
    current = states.current(connection, state)
    after = transitions.after_retry(current)
    if after is not None and current is not None:
        states.write(connection, after, "retried", at, f"was waiting after {current.last_error}")
    return after


def erase(connection: Connection, conversation: int, segment_ids: Sequence[str]) -> None:
    """Erase segments, live or superseded, with their words and vectors."""
    for segment_id in segment_ids:
        row = connection.execute(
            "SELECT key, superseded FROM segments WHERE conversation = ? AND id = ?",
            (conversation, segment_id),
        ).fetchone()
        if row is None:
            continue
        key, superseded = row
        if superseded is None:
            _remove_from_indexes(connection, key)
        connection.execute("DELETE FROM segments WHERE key = ?", (key,))


def remake(connection: Connection, state: MemoryState, remade: Sequence[Segment]) -> None:
    """Write live segments in the place of erased ones."""
    for segment in remade:
        _add(connection, state, segment)


def spans(connection: Connection, key: int) -> list[transitions.Span]:
    """Return the live segments of a conversation without their texts, in tape order."""
    rows = connection.execute(
        "SELECT id, generation, first_seq, last_seq FROM segments "
        "WHERE conversation = ? AND superseded IS NULL ORDER BY first_seq",
        (key,),
    )
    return [transitions.Span(*row) for row in rows]


def _add(connection: Connection, state: MemoryState, segment: Segment) -> Segment:
    """Write a segment with the tape's token counts and its version of the log, and return it."""
    sum_tokens = tape.sum_tokens_at(connection, state.key, segment.last_seq)
    newest: int | None = connection.execute(
        "SELECT notes_version FROM segments WHERE conversation = ? "
        "ORDER BY version DESC, notes_version DESC LIMIT 1",
        (state.key,),
    ).get
    segment = replace(
        segment,
        source_tokens=sum_tokens - tape.sum_tokens_at(connection, state.key, segment.first_seq - 1),
        sum_tokens=sum_tokens,
        version=state.lock_version,
        superseded=None,
        notes_version=(newest or 0) + 1,
    )
    key: int | None = connection.execute(
        f"INSERT INTO segments (conversation, {SEGMENTS.columns}) VALUES (?, {SEGMENTS.places}) "  # noqa: S608 - constants
        "ON CONFLICT (conversation, id) DO NOTHING RETURNING key",
        (state.key, *SEGMENTS.encode(segment)),
    ).get
    if key is None:
        raise StoreError(f"segment id {segment.id!r} is taken: take a new id from the clock")
    search.add_segment(connection, state.key, key, segment)
    return segment


def _supersede(connection: Connection, state: MemoryState, replaced: Sequence[str]) -> None:
    for segment_id in replaced:
        key: int = connection.execute(
            "UPDATE segments SET superseded = ? WHERE conversation = ? AND id = ? RETURNING key",
            (state.lock_version, state.key, segment_id),
        ).get
        _remove_from_indexes(connection, key)


def _remove_from_indexes(connection: Connection, key: int) -> None:
    search.remove_segment(connection, key)
    vectors.remove_segment(connection, key)
