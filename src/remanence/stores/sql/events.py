"""Events: each is the last write in the transaction of the change that it reports."""

from collections.abc import Collection, Mapping, Sequence
from datetime import datetime
from typing import Final, LiteralString

from remanence.stores.rows import EVENTS, encode_instant, encode_json
from remanence.stores.sql.connection import Connection
from remanence.types import ConversationRef, Event, EventPage, EventType, EventValue, Owner

KEPT: Final = 100_000
"""The number of newest events kept per tenant; up to `_PRUNE_EVERY` more may remain."""

_PRUNE_EVERY: Final = 1_000
_TENANTS: Final = 100
"""Tenants per page of events, so that a new consumer does not read those of all tenants at once."""
_SELECT: LiteralString = f"SELECT {EVENTS.columns} FROM events "  # noqa: S608 - a constant


def add(
    connection: Connection,
    kind: EventType,
    at: datetime,
    data: Mapping[str, EventValue],
    *,
    about: ConversationRef | str,
    user: str | None = None,
) -> None:
    """Write an event about a conversation or tenant under the tenant's next id.

    Locks the tenant's counter until the commit, so call this last in a transaction.
    """
    tenant, conversation = (about, None) if isinstance(about, str) else about
    id_: int = connection.execute(
        "INSERT INTO event_counters (tenant, last) VALUES (?, 1) "
        "ON CONFLICT (tenant) DO UPDATE SET last = event_counters.last + 1 RETURNING last",
        (tenant,),
    ).get
    connection.execute(
        'INSERT INTO events (tenant, id, type, at, conversation, "user", data) '
        "VALUES (?, ?, ?, ?, ?, ?, ?)",
        (tenant, id_, kind, encode_instant(at), conversation, user, encode_json(data)),
    )
    if id_ % _PRUNE_EVERY == 0:
        connection.execute("DELETE FROM events WHERE tenant = ? AND id <= ?", (tenant, id_ - KEPT))


def page(
    connection: Connection,
    tenant: str,
    *,
    after: int | None,
    limit: int,
    conversation: str | None = None,
    types: Sequence[EventType] = (),
) -> EventPage:
    last: int = (
        connection.execute("SELECT last FROM event_counters WHERE tenant = ?", (tenant,)).get or 0
    )
    if after is None:
        return EventPage((), last)
    conditions: LiteralString = "WHERE tenant = ? AND id > ? "
    values: list[object] = [tenant, after]
    if conversation is not None:
        conditions += "AND conversation = ? "
        values.append(conversation)
    if types:
        conditions += "AND type IN (SELECT value FROM json_each(?)) "
        values.append(encode_json(types))
    rows = connection.execute(_SELECT + conditions + "ORDER BY id LIMIT ?", (*values, limit))
    events = tuple(EVENTS.decode(row) for row in rows)
    if len(events) == limit:
        last = events[-1].id if events else after
    return EventPage(events, last)


def pending(
    connection: Connection, consumer: str, *, limit: int, without: Collection[str] = ()
) -> tuple[Event, ...]:
    behind = connection.execute(
        "SELECT event_counters.tenant, coalesce(delivered, 0) FROM event_counters "
        "LEFT JOIN event_consumers ON event_consumers.tenant = event_counters.tenant "
        "AND consumer = ? WHERE last > coalesce(delivered, 0) AND EXISTS (SELECT 1 FROM events "
        "WHERE events.tenant = event_counters.tenant AND events.id > coalesce(delivered, 0)) "
        "AND event_counters.tenant NOT IN (SELECT value FROM json_each(?)) "
        "ORDER BY event_counters.tenant LIMIT ?",
        (consumer, encode_json([*without]), _TENANTS),
    ).fetchall()
    found: list[Event] = []
    for tenant, delivered in behind:
        found += page(connection, tenant, after=delivered, limit=limit).events
    return tuple(found)


def mark_delivered(connection: Connection, consumer: str, event: Event) -> None:
    connection.execute(
        "INSERT INTO event_consumers (consumer, tenant, delivered) VALUES (?, ?, ?) "
        "ON CONFLICT (consumer, tenant) DO UPDATE SET delivered = excluded.delivered "
        "WHERE event_consumers.delivered < excluded.delivered",
        (consumer, event.tenant, event.id),
    )


def forget_conversation(connection: Connection, ref: ConversationRef) -> None:
    """Erase the events of a conversation."""
    connection.execute("DELETE FROM events WHERE tenant = ? AND conversation = ?", ref)


def forget_user(connection: Connection, owner: Owner) -> None:
    """Erase the events that name a user."""
    connection.execute('DELETE FROM events WHERE tenant = ? AND "user" = ?', owner)
