"""States of conversations: reads, writes, the log and leases."""

from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime
from typing import LiteralString

from remanence.stores.rows import (
    LOG,
    NO_LIMIT,
    STATE_COLUMNS,
    STEPS,
    encode_failure,
    encode_instant,
    state_from_row,
)
from remanence.stores.sql import events, tape
from remanence.stores.sql.connection import Connection
from remanence.types import BudgetState, ConversationRef, EventValue, LogEntry, LogKind, MemoryState

_ERASED = "an error text that was forgotten"
_SELECT: LiteralString = (
    f"SELECT {STATE_COLUMNS} FROM conversations JOIN states ON conversation = key "  # noqa: S608 - a constant
)


def by_ref(connection: Connection, ref: ConversationRef) -> MemoryState | None:
    row = connection.execute(_SELECT + "WHERE tenant = ? AND id = ?", ref).fetchone()
    return state_from_row(row) if row else None


def by_key(connection: Connection, key: int) -> MemoryState | None:
    """Return the state of the conversation with this key, unless it was deleted."""
    row = connection.execute(_SELECT + "WHERE key = ?", (key,)).fetchone()
    return state_from_row(row) if row else None


def current(connection: Connection, expected: MemoryState) -> MemoryState | None:
    """Return the current state; None if the conversation was deleted or erased from meanwhile."""
    connection.lock(expected.ref)
    state = by_key(connection, expected.key)
    return state if state is not None and state.erasures == expected.erasures else None


def page(
    connection: Connection,
    *,
    tenant: str | None = None,
    user: str | None = None,
    after: ConversationRef | None = None,
    limit: int = 100,
) -> tuple[MemoryState, ...]:
    start = after or ConversationRef("", "")
    where: LiteralString = "WHERE (tenant, id) > (?, ?) "
    if tenant is not None:
        start = ConversationRef(tenant, start.id if start.tenant == tenant else "")
        where = "WHERE tenant = ? AND id > ? "
    values: tuple[str, ...] = start
    if user is not None:
        where += 'AND "user" = ? '
        values = (*start, user)
    rows = connection.execute(_SELECT + where + "ORDER BY tenant, id LIMIT ?", (*values, limit))
    return tuple(state_from_row(row) for row in rows)


def write(
    connection: Connection,
    state: MemoryState,
    kind: LogKind,
    at: datetime,
    detail: str,
    data: Mapping[str, EventValue],
) -> MemoryState:
    """Write the state after a step with its log entry and event, and schedule the next look.

    Returns the state with the token sums of its cursors.
    """
    state = replace(
        state,
        observed_sum_tokens=tape.sum_tokens_at(connection, state.key, state.observed_seq),
        active_sum_tokens=tape.sum_tokens_at(connection, state.key, state.active_seq),
        tail_sum_tokens=tape.sum_tokens_at(connection, state.key, state.tail_seq - 1),
    )
    connection.execute(
        f"UPDATE states SET ({STEPS.columns}, look_at) = ({STEPS.places}, ?) WHERE conversation = ?",  # noqa: S608 - constants
        (*STEPS.encode(state), encode_instant(at), state.key),
    )
    connection.execute(
        "INSERT INTO journal (conversation, version, kind, at, observed_seq, active_seq, "
        "reflected_seq, tail_seq, detail, last_seq) SELECT conversation, lock_version, ?, ?, "
        "observed_seq, active_seq, reflected_seq, tail_seq, ?, last_seq FROM states "
        "WHERE conversation = ?",
        (kind, encode_instant(at), detail, state.key),
    )
    events.add(connection, kind, at, data, about=state.ref, user=state.user)
    return state


def clear_error_texts(
    connection: Connection, key: int, *, conversations: LiteralString = "?"
) -> None:
    """Clear error texts, which may quote erased text, from the log and the states.

    *conversations* is a query for conversation keys, with *key* as its parameter; by default *key*
    is the conversation.
    """
    connection.execute(
        f"UPDATE journal SET detail = ? WHERE conversation IN ({conversations}) "  # noqa: S608 - a constant
        "AND (kind IN ('failed', 'skipped', 'retried') OR detail LIKE '% failed: %')",
        (_ERASED, key),
    )
    rows = connection.execute(
        f"{_SELECT}WHERE conversation IN ({conversations}) "
        "AND coalesce(observe_failure, reflect_failure, facts_failure) IS NOT NULL",
        (key,),
    ).fetchall()
    for state in map(state_from_row, rows):
        failures = (state.observe_failure, state.reflect_failure, state.facts_failure)
        cleared = (f and encode_failure(replace(f, message=_ERASED)) for f in failures)
        connection.execute(
            "UPDATE states SET (observe_failure, reflect_failure, facts_failure) = (?, ?, ?) "
            "WHERE conversation = ?",
            (*cleared, state.key),
        )


def log(
    connection: Connection, ref: ConversationRef, *, after: int = 0, limit: int | None = None
) -> tuple[LogEntry, ...]:
    rows = connection.execute(
        f"SELECT {LOG.columns} FROM journal JOIN conversations ON key = conversation "  # noqa: S608 - a constant
        "WHERE tenant = ? AND id = ? AND version > ? ORDER BY version LIMIT ?",
        (*ref, after, NO_LIMIT if limit is None else limit),
    )
    return tuple(LOG.decode(row) for row in rows)


def outcomes(connection: Connection, *, since: datetime, limit: int) -> tuple[LogEntry, ...]:
    rows = connection.execute(
        f"SELECT {LOG.columns} FROM journal INDEXED BY journal_outcomes "  # noqa: S608 - a constant
        "WHERE kind IN ('observed', 'reflected', 'facts', 'failed') AND at >= ? "
        "ORDER BY at DESC LIMIT ?",
        (encode_instant(since), limit),
    )
    return tuple(LOG.decode(row) for row in rows)


def lease(
    connection: Connection, state: MemoryState, *, owner: str, now: datetime, until: datetime
) -> bool:
    end = encode_instant(until)
    connection.execute(
        "UPDATE states SET lease_owner = ?, lease_until = ? WHERE conversation = ? "
        "AND (lease_owner IS NULL OR lease_owner = ? OR lease_until <= ?)",
        (owner, end, state.key, owner, encode_instant(now)),
    )
    if connection.changes() == 1:
        return True
    connection.execute(  # cap an implausibly long lease of a dead owner; a live owner renews its own
        "UPDATE states SET lease_until = ? WHERE conversation = ? AND lease_until > ?",
        (end, state.key, end),
    )
    return False


def release(connection: Connection, state: MemoryState, *, owner: str) -> None:
    connection.execute(
        "UPDATE states SET lease_owner = NULL, lease_until = NULL "
        "WHERE conversation = ? AND lease_owner = ?",
        (state.key, owner),
    )


def record_budget(
    connection: Connection, ref: ConversationRef, state: BudgetState, *, at: datetime
) -> None:
    connection.lock(ref)
    memory = by_ref(connection, ref)
    if memory is not None:
        data = {"scope": state.budget.scope, "level": state.level}
        events.add(connection, "budget", at, data, about=ref, user=memory.user)
