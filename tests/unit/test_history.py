"""The state and the snapshot of a past version, from the log and the segments of now."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from tests.builders import state

from remanence import Message
from remanence.context.history import snapshot_at, state_at
from remanence.errors import ConversationNotFound
from remanence.testing.store_contract.samples import observation
from remanence.types import LogEntry, LogKind, Segment

BEGAN = datetime(2026, 3, 2, 9, 0, tzinfo=UTC)


def at(hours: int) -> datetime:
    return BEGAN + timedelta(hours=hours)


def entry(version: int, kind: LogKind, **cursors: int) -> LogEntry:
    known = {"observed_seq": 0, "active_seq": 0, "reflected_seq": 0, "tail_seq": 1} | cursors
    return LogEntry(version=version, kind=kind, at=at(version), detail="", **known)


LOG = (
    entry(1, "observed", observed_seq=4, last_seq=5),
    entry(2, "activated", observed_seq=4, active_seq=4, tail_seq=5, last_seq=6),
    entry(3, "observed", observed_seq=8, active_seq=4, tail_seq=5, last_seq=9),
    entry(4, "reflected", observed_seq=8, active_seq=8, reflected_seq=8, tail_seq=9, last_seq=10),
)
STATE = state(
    created_at=BEGAN,
    last_seq=12,
    observed_seq=8,
    active_seq=8,
    reflected_seq=8,
    tail_seq=9,
    last_message_at=at(9),
    last_observed_at=at(3),
    last_reflected_at=at(4),
    lock_version=4,
    lease_owner="worker",
    lease_until=at(9),
)


def segment(
    first_seq: int, last_seq: int, *, version: int, superseded: int | None = None
) -> Segment:
    return observation(
        first_seq,
        last_seq,
        id=f"s{version}",
        sum_tokens=10 * last_seq,
        created_at=at(version),
        version=version,
        superseded=superseded,
    )


SEGMENTS = (
    segment(5, 8, version=3, superseded=4),
    segment(1, 4, version=1, superseded=4),
    segment(1, 8, version=4),
)


def message(seq: int, **fields: Any) -> Message:
    return Message.user(f"message {seq}", created_at=at(seq)).replace(seq=seq, tokens=10, **fields)


@pytest.mark.parametrize(
    ("version", "cursors", "observed_at", "reflected_at"),
    [
        (0, (5, 0, 0, 0, 1), None, None),
        (1, (6, 4, 0, 0, 1), at(1), None),
        (2, (9, 4, 4, 0, 5), at(1), None),
        (3, (10, 8, 4, 0, 5), at(3), None),
    ],
)
def test_a_past_state_has_the_cursors_of_its_version_and_the_tape_up_to_the_next(
    version: int,
    cursors: tuple[int, ...],
    observed_at: datetime | None,
    reflected_at: datetime | None,
) -> None:
    past = state_at(STATE, LOG, version)

    seqs = (past.last_seq, past.observed_seq, past.active_seq, past.reflected_seq, past.tail_seq)
    assert seqs == cursors
    assert (past.last_observed_at, past.last_reflected_at) == (observed_at, reflected_at)
    assert past.lock_version == version
    assert (past.lease_owner, past.lease_until) == (None, None)


def test_the_newest_version_is_the_state_of_now() -> None:
    assert state_at(STATE, LOG, 4) is STATE


def test_the_last_reflection_of_a_version_is_known_in_the_versions_after_it() -> None:
    log = (*LOG, entry(5, "failed", observed_seq=8, active_seq=8, reflected_seq=8, last_seq=12))

    past = state_at(STATE, (*log, entry(6, "retried", last_seq=12)), 5)

    assert past.last_reflected_at == at(4)


@pytest.mark.parametrize("version", [-1, 5, 9])
def test_a_version_that_never_was_is_refused(version: int) -> None:
    with pytest.raises(ConversationNotFound, match=rf"no version {version}: .* 0 to 4"):
        state_at(STATE, LOG, version)


def test_a_version_whose_own_entry_is_gone_is_refused() -> None:
    with pytest.raises(ConversationNotFound, match="no version 2"):
        state_at(STATE, LOG[2:], 2)
    assert state_at(STATE, LOG, 0).observed_seq == 0


@pytest.mark.parametrize(
    ("version", "ids", "sums"),
    [
        (0, [], (50, 0, 0, 0)),
        (1, ["s1"], (60, 40, 0, 0)),
        (2, ["s1"], (90, 40, 40, 40)),
        (3, ["s1", "s3"], (100, 80, 40, 40)),
        (4, ["s4"], (120, 80, 80, 80)),
    ],
)
def test_a_past_snapshot_has_the_segments_that_lived_then_and_counts_the_tape(
    version: int, ids: list[str], sums: tuple[int, ...]
) -> None:
    state = state_at(STATE, LOG, version)
    tail = [message(seq) for seq in range(state.tail_seq, state.last_seq + 1)]

    past = snapshot_at(state, SEGMENTS, tail)

    assert [segment.id for segment in past.segments] == ids
    counted = past.state
    assert sums == (
        counted.last_sum_tokens,
        counted.observed_sum_tokens,
        counted.active_sum_tokens,
        counted.tail_sum_tokens,
    )
    assert past.tail == tuple(tail)


def test_the_last_message_of_a_past_snapshot_is_that_of_its_tail() -> None:
    state = state_at(STATE, LOG, 2)

    with_tail = snapshot_at(state, SEGMENTS, [message(seq) for seq in (5, 6, 7, 8, 9)])
    without = snapshot_at(state, SEGMENTS, [])

    assert with_tail.state.last_message_at == at(9)
    assert without.state.last_message_at == STATE.last_message_at
    shorter = snapshot_at(state, SEGMENTS, [message(seq) for seq in (5, 6, 7)])
    assert shorter.state.last_message_at == at(7)


def test_a_version_whose_segments_are_deleted_cannot_be_shown() -> None:
    with pytest.raises(ConversationNotFound, match=r"version 3 .* or deleted after"):
        snapshot_at(state_at(STATE, LOG, 3), SEGMENTS[2:], [])
