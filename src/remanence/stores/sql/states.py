"""States of conversations: reads, writes, the log and leases."""

from datetime import datetime
from typing import LiteralString

from remanence.stores.rows import (
    LOG_COLUMNS,
    STATE_COLUMNS,
    encode_failure,
    encode_instant,
    log_entry_from_row,
    state_from_row,
)
from remanence.stores.sql.connection import Connection
from remanence.types import ConversationRef, LogEntry, MemoryState

_SELECT: LiteralString = (
    f"SELECT {STATE_COLUMNS} FROM conversations JOIN states ON conversation = key "  # noqa: S608 - a constant
)
_BEFORE_ALL = ConversationRef("", "")  # names are not empty
_SELECT_LOG: LiteralString = (
    f"SELECT {LOG_COLUMNS} FROM journal JOIN conversations ON key = conversation "  # noqa: S608 - a constant
)
_SELECT_OUTCOMES: LiteralString = (
    f"SELECT {LOG_COLUMNS} FROM journal INDEXED BY journal_outcomes "  # noqa: S608 - a constant
    "WHERE kind IN ('observed', 'reflected', 'facts', 'failed') AND at >= ? "
    "ORDER BY at DESC LIMIT ?"
)


def by_ref(connection: Connection, ref: ConversationRef) -> MemoryState | None:
    """Return the state of the conversation with this name."""
    row = connection.execute(_SELECT + "WHERE tenant = ? AND id = ?", ref).fetchone()
    return state_from_row(row) if row else None


def by_key(connection: Connection, key: int) -> MemoryState | None:
    """Return the state of the conversation with this key, unless it was deleted."""
    row = connection.execute(_SELECT + "WHERE key = ?", (key,)).fetchone()
    return state_from_row(row) if row else None


def current(connection: Connection, expected: MemoryState) -> MemoryState | None:
    """Return the current state, unless the conversation was deleted, or made to forget, meanwhile."""
    connection.lock(expected.ref)
    state = by_key(connection, expected.key)
    return state if state is not None and state.erasures == expected.erasures else None


def count_erasure(connection: Connection, conversation: int) -> None:
    """Void all work on a conversation that began before."""
    connection.execute(
        "UPDATE states SET erasures = erasures + 1 WHERE conversation = ?", (conversation,)
    )


def page(
    connection: Connection,
    *,
    tenant: str | None,
    after: ConversationRef | None,
    limit: int,
) -> tuple[MemoryState, ...]:
    """Return states in order of (tenant, id), starting after *after*."""
    if tenant is None:
        rows = connection.execute(
            _SELECT + "WHERE (tenant, id) > (?, ?) ORDER BY tenant, id LIMIT ?",
            (*(after or _BEFORE_ALL), limit),
        )
    else:
        start = after.id if after is not None and after.tenant == tenant else ""
        rows = connection.execute(
            _SELECT + "WHERE tenant = ? AND id > ? ORDER BY id LIMIT ?", (tenant, start, limit)
        )
    return tuple(state_from_row(row) for row in rows)


def write(connection: Connection, state: MemoryState, entry: LogEntry) -> None:
    """Write a changed state and its log entry, and plan a look at it.

    The columns that `append` maintains are not written.
    """
    connection.execute(
        "UPDATE states SET observed_seq = ?, active_seq = ?, reflected_seq = ?, tail_seq = ?, "
        "observed_sum_tokens = ?, active_sum_tokens = ?, tail_sum_tokens = ?, "
        "last_observed_at = ?, last_reflected_at = ?, observe_failure = ?, reflect_failure = ?, "
        "lock_version = ?, facts_seq = ?, facts_failure = ?, look_at = ? WHERE conversation = ?",
        (
            state.observed_seq,
            state.active_seq,
            state.reflected_seq,
            state.tail_seq,
            state.observed_sum_tokens,
            state.active_sum_tokens,
            state.tail_sum_tokens,
            _instant(state.last_observed_at),
            _instant(state.last_reflected_at),
            encode_failure(state.observe_failure),
            encode_failure(state.reflect_failure),
            state.lock_version,
            state.facts_seq,
            encode_failure(state.facts_failure),
            encode_instant(entry.at),
            state.key,
        ),
    )
    connection.execute(
        "INSERT INTO journal (conversation, version, kind, at, observed_seq, active_seq, "
        "reflected_seq, tail_seq, detail, last_seq) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        (
            state.key,
            entry.version,
            entry.kind,
            encode_instant(entry.at),
            entry.observed_seq,
            entry.active_seq,
            entry.reflected_seq,
            entry.tail_seq,
            entry.detail,
            entry.last_seq,
        ),
    )


def log(connection: Connection, ref: ConversationRef) -> tuple[LogEntry, ...]:
    """The log of a conversation, oldest entry first."""
    rows = connection.execute(_SELECT_LOG + "WHERE tenant = ? AND id = ? ORDER BY version", ref)
    return tuple(log_entry_from_row(row) for row in rows)


def outcomes(connection: Connection, *, since: datetime, limit: int) -> tuple[LogEntry, ...]:
    """Return the outcomes of the newest steps of all conversations, newest first."""
    rows = connection.execute(_SELECT_OUTCOMES, (encode_instant(since), limit))
    return tuple(log_entry_from_row(row) for row in rows)


def lease(connection: Connection, key: int, *, owner: str, now: datetime, until: datetime) -> bool:
    """Take or prolong the lease, unless another owner holds it.

    An end beyond *until* comes from a clock that is ahead: it is moved to *until*, so that the lease
    of a dead owner expires in time; a live owner prolongs it as usual.
    """
    connection.execute(
        "UPDATE states SET lease_owner = ?, lease_until = ? WHERE conversation = ? "
        "AND (lease_owner IS NULL OR lease_owner = ? OR lease_until <= ?)",
        (owner, encode_instant(until), key, owner, encode_instant(now)),
    )
    if connection.changes() == 1:
        return True
    connection.execute(
        "UPDATE states SET lease_until = ? WHERE conversation = ? AND lease_until > ?",
        (encode_instant(until), key, encode_instant(until)),
    )
    return False


def release(connection: Connection, key: int, *, owner: str) -> None:
    """Give up the lease, if it is the owner's."""
    connection.execute(
        "UPDATE states SET lease_owner = NULL, lease_until = NULL "
        "WHERE conversation = ? AND lease_owner = ?",
        (key, owner),
    )


def _instant(value: datetime | None) -> str | None:
    return encode_instant(value) if value else None
