from collections.abc import Iterator
from datetime import UTC, datetime

import apsw
import pytest
from hypothesis import given, strategies as st

from remanence.clock import SystemClock
from remanence.stores.sql import segments, snapshots, states, tape
from remanence.stores.sqlite.connection import MEMORY, Database
from remanence.stores.sqlite.fts import Connection
from remanence.testing.store_contract.samples import REF, observation, user
from remanence.types import ConversationRef

NOW = datetime(2024, 1, 1, tzinfo=UTC)
CLOCK = SystemClock()


def connect() -> Connection:
    return Database(path=MEMORY, durability="normal").open_writer(CLOCK)


@pytest.fixture
def connection() -> Iterator[Connection]:
    connection = connect()
    yield connection
    connection.close()


def append(connection: Connection, *tokens: int, ref: ConversationRef = REF) -> None:
    entries = [tape.entry(user(f"{number}", tokens=number), CLOCK, NOW) for number in tokens]
    tape.append(connection, ref, entries, NOW, user=None)


def observe_and_activate(connection: Connection, last_seq: int) -> None:
    state = states.by_ref(connection, REF)
    assert state is not None
    if state.observed_seq < last_seq <= state.last_seq:
        segment = observation(state.observed_seq + 1, last_seq)
        after = segments.commit_observation(connection, state, segment)
        assert after is not None
        segments.activate(connection, after, active_seq=last_seq, tail_seq=last_seq + 1, at=NOW)


STEPS = st.one_of(
    st.tuples(st.just("append"), st.lists(st.integers(0, 20), max_size=4)),
    st.tuples(st.just("activate"), st.integers(1, 12)),
    st.tuples(st.just("read"), st.integers(0, 60)),
    st.tuples(st.just("delete"), st.none()),
)


@given(st.lists(STEPS, max_size=25))
def test_a_kept_snapshot_is_the_one_that_would_be_read(steps: list[tuple[str, object]]) -> None:
    connection, kept = connect(), snapshots.Snapshots()
    for step in steps:
        match step:
            case "append", list(tokens):
                append(connection, *tokens)
            case "activate", int(last_seq) if states.by_ref(connection, REF):
                observe_and_activate(connection, last_seq)
            case "delete", _:
                tape.delete(connection, REF)
            case "read", int(tail_tokens):
                fresh = snapshots.Snapshots().read(connection, REF, tail_tokens=tail_tokens)
                assert kept.read(connection, REF, tail_tokens=tail_tokens) == fresh
    connection.close()


class Rows:
    """Counts the rows that a connection returns."""

    def __init__(self, connection: Connection) -> None:
        self.count = 0
        connection.row_trace = self._counted

    def _counted(self, cursor: apsw.Cursor, row: tuple[object, ...]) -> object:
        self.count += 1
        return row


def test_what_was_read_once_is_not_read_again(connection: Connection) -> None:
    append(connection, *[1] * 500)
    kept, rows = snapshots.Snapshots(), Rows(connection)
    kept.read(connection, REF, tail_tokens=1_000)
    first = rows.count
    append(connection, 1)
    rows.count = 0
    snapshot = kept.read(connection, REF, tail_tokens=1_000)

    assert snapshot is not None
    assert len(snapshot.tail) == 501
    assert first > 500
    assert rows.count == 2  # the state and the new message


def test_a_tail_that_was_read_whole_is_not_read_again_for_more_tokens(
    connection: Connection,
) -> None:
    append(connection, *[1] * 500)
    kept, rows = snapshots.Snapshots(), Rows(connection)
    kept.read(connection, REF, tail_tokens=1_000)
    rows.count = 0
    snapshot = kept.read(connection, REF, tail_tokens=2_000)

    assert snapshot is not None
    assert len(snapshot.tail) == 500
    assert rows.count == 1  # the state


def test_only_the_latest_conversations_are_kept(connection: Connection) -> None:
    kept = snapshots.Snapshots()
    refs = [ConversationRef("default", f"chat {number}") for number in range(100)]
    for ref in refs:
        append(connection, 1, ref=ref)

    tails = [kept.read(connection, ref, tail_tokens=10) for ref in refs * 2]

    assert all(snapshot is not None and len(snapshot.tail) == 1 for snapshot in tails)
    assert len(kept) == 32
