"""Turns of conversations and their owners."""

from datetime import datetime

from remanence.errors import TurnTaken
from remanence.stores.rows import decode_time, encode_instant
from remanence.stores.sql.connection import Connection
from remanence.types import ConversationRef


def take(
    connection: Connection,
    ref: ConversationRef,
    *,
    owner: str,
    now: datetime,
    until: datetime,
    dead: datetime | None = None,
) -> datetime | None:
    connection.lock(ref)
    ends = (encode_instant(now), encode_instant(dead) if dead else None)
    connection.execute(
        "INSERT INTO turns (tenant, id, owner, until) VALUES (?, ?, ?, ?) "
        "ON CONFLICT (tenant, id) DO UPDATE SET owner = excluded.owner, until = excluded.until "
        "WHERE turns.until <= ? OR turns.until = ?",
        (*ref, owner, encode_instant(until), *ends),
    )
    if connection.changes() == 1:
        return None
    return decode_time(
        connection.execute("SELECT until FROM turns WHERE tenant = ? AND id = ?", ref).get
    )


def prolong(connection: Connection, ref: ConversationRef, *, owner: str, until: datetime) -> bool:
    connection.execute(
        "UPDATE turns SET until = ? WHERE tenant = ? AND id = ? AND owner = ?",
        (encode_instant(until), *ref, owner),
    )
    return connection.changes() == 1


def end(connection: Connection, ref: ConversationRef, *, owner: str) -> None:
    connection.execute("DELETE FROM turns WHERE tenant = ? AND id = ? AND owner = ?", (*ref, owner))


def require(connection: Connection, ref: ConversationRef, owner: str) -> None:
    """Raise `TurnTaken` unless the turn is the owner's."""
    found = connection.execute(
        "SELECT 1 FROM turns WHERE tenant = ? AND id = ? AND owner = ?", (*ref, owner)
    ).fetchone()
    if found is None:
        raise TurnTaken(
            f"the turn of conversation {ref.id!r} was lost, because the conversation was deleted or "
            "another process took over while this one was suspended: send the message again"
        )
