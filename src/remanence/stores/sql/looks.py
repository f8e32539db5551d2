"""Planned looks of background work at conversations."""

from datetime import datetime
from typing import LiteralString

from remanence.stores.rows import decode_time, encode_instant
from remanence.stores.sql.connection import Connection
from remanence.types import ConversationRef, Look, MemoryState

_SELECT: LiteralString = (
    "SELECT look_at, key, tenant, conversations.id, lease_owner, lease_until FROM states "
    "INDEXED BY states_looks JOIN conversations ON key = conversation "
    "WHERE look_at IS NOT NULL AND (look_at, conversation) > (?, ?) "
    "ORDER BY look_at, conversation LIMIT ?"
)


def page(
    connection: Connection, *, after: tuple[datetime, int] | None, limit: int
) -> tuple[Look, ...]:
    """Return looks in order of time, then of the conversations' keys."""
    at, key = after or (None, 0)
    rows = connection.execute(_SELECT, (encode_instant(at) if at else "", key, limit))
    return tuple(
        Look(
            at=decode_time(at),
            key=key,
            ref=ConversationRef(tenant, id_),
            lease_owner=lease_owner,
            lease_until=decode_time(lease_until) if lease_until else None,
        )
        for at, key, tenant, id_, lease_owner, lease_until in rows
    )


def rest(connection: Connection, state: MemoryState, *, at: datetime | None, tokens: int) -> bool:
    """Plan the next look at a conversation that did not change since *state* was read."""
    connection.execute(
        "UPDATE states SET look_at = ?, look_tokens = ? "
        "WHERE conversation = ? AND lock_version = ? AND last_seq = ?",
        (encode_instant(at) if at else None, tokens, state.key, state.lock_version, state.last_seq),
    )
    return connection.changes() == 1


def use_rules(connection: Connection, digest: str, *, at: datetime) -> bool:
    """Plan a look at every conversation, if other rules were in use."""
    known = connection.execute("SELECT digest FROM look_rules").get
    if known == digest:
        return False
    connection.execute(
        "INSERT INTO look_rules (id, digest) VALUES (1, ?) "
        "ON CONFLICT (id) DO UPDATE SET digest = excluded.digest",
        (digest,),
    )
    instant = encode_instant(at)
    connection.execute(
        "UPDATE states SET look_at = ? WHERE last_seq > 0 AND (look_at IS NULL OR look_at > ?)",
        (instant, instant),
    )
    return True
