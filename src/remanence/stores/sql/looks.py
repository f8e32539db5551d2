"""Scheduled looks of background work at conversations."""

from datetime import datetime

from remanence.stores.rows import decode_time, encode_instant
from remanence.stores.sql.connection import Connection
from remanence.types import Backlog, ConversationRef, Look, MemoryState


def page(
    connection: Connection, *, after: tuple[datetime, int] | None, limit: int
) -> tuple[Look, ...]:
    start = (encode_instant(after[0]), after[1]) if after else ("", 0)
    rows = connection.execute(
        "SELECT look_at, key, tenant, conversations.id, lease_owner, lease_until FROM states "
        "INDEXED BY states_looks JOIN conversations ON key = conversation "
        "WHERE look_at IS NOT NULL AND (look_at, conversation) > (?, ?) "
        "ORDER BY look_at, conversation LIMIT ?",
        (*start, limit),
    )
    return tuple(
        Look(
            at=decode_time(at),
            key=key,
            ref=ConversationRef(tenant, id_),
            lease_owner=owner,
            lease_until=decode_time(end) if end else None,
        )
        for at, key, tenant, id_, owner, end in rows
    )


def backlog(connection: Connection, *, now: datetime, limit: int) -> Backlog:
    row = connection.execute(
        "SELECT count(*), coalesce(sum(tokens), 0), min(look_at) FROM ("
        "SELECT look_at, last_sum_tokens - observed_sum_tokens AS tokens FROM states "
        "INDEXED BY states_looks WHERE look_at IS NOT NULL AND look_at <= ? "
        "ORDER BY look_at LIMIT ?) AS due",
        (encode_instant(now), limit),
    ).fetchone()
    assert row is not None  # an aggregate always returns a row
    conversations, tokens, oldest = row
    age_seconds = (now - decode_time(oldest)).total_seconds() if oldest else 0.0
    return Backlog(conversations, int(tokens), age_seconds)


def rest(connection: Connection, state: MemoryState, *, at: datetime | None, tokens: int) -> bool:
    connection.execute(
        "UPDATE states SET look_at = ?, look_tokens = ? "
        "WHERE conversation = ? AND lock_version = ? AND last_seq = ?",
        (encode_instant(at) if at else None, tokens, state.key, state.lock_version, state.last_seq),
    )
    return connection.changes() == 1


def use_rules(connection: Connection, digest: str, *, at: datetime) -> bool:
    if connection.execute("SELECT digest FROM look_rules").get == digest:
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
