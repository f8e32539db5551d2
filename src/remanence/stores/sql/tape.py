"""The tape: a conversation's messages with gapless numbers and token sums."""

import json
from collections.abc import Callable, Iterable, Sequence
from datetime import datetime
from operator import attrgetter
from typing import LiteralString, NamedTuple

from remanence.clock import Clock
from remanence.errors import (
    ConversationErased,
    ConversationGrown,
    DuplicateMessage,
    InvalidMessage,
    WrongUser,
)
from remanence.stores.rows import (
    MESSAGES,
    NO_LIMIT,
    STATE_COLUMNS,
    Row,
    encode_call_ids,
    encode_content,
    encode_instant,
    encode_time,
    state_from_row,
)
from remanence.stores.sql import turns
from remanence.stores.sql.connection import Connection
from remanence.types import ConversationRef, MemoryState, Message, Owner

_SELECT: LiteralString = f"SELECT {MESSAGES.columns} FROM messages "  # noqa: S608 - a constant
OF_REF: LiteralString = (
    "WHERE conversation = (SELECT key FROM conversations WHERE tenant = ? AND id = ?) "
)
_INSERT: LiteralString = (
    "INSERT INTO messages (conversation, seq, tokens, sum_tokens, id, role, kind, name, content, "
    "calls, created_at) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
)
_SELECT_STATE: LiteralString = (
    f'SELECT key, "user", indexed_seq, {STATE_COLUMNS} '  # noqa: S608 - a constant
    "FROM conversations JOIN states ON conversation = key "
    "WHERE tenant = ? AND conversations.id = ?"
)
_IDENTITY = ("role", "kind", "name", "content")


class Entry(NamedTuple):
    """A message encoded for writing, which is done outside of the writer's thread."""

    message: Message
    id: str
    created_at: datetime
    texts: tuple[str | None, ...]  # in the order of `_INSERT`


class TapeWrite(NamedTuple):
    """The result of an append: for each entry its seq, or the message already on the tape."""

    places: tuple[int | Message, ...]
    state: Row
    conversation: int
    unindexed: int  # messages that are not in the text index yet


class Deleted(NamedTuple):
    """The key and user of a deleted conversation, and the number of its vectors."""

    key: int
    user: str | None
    vectors: int


def entry(message: Message, clock: Clock, now: datetime) -> Entry:
    """Encode a message, which gets a new id and the time *now* if it lacks them."""
    id_ = clock.new_id("msg") if message.id is None else message.id
    created_at = message.created_at or now
    content, calls = encode_content(message.content), encode_call_ids(message.content)
    texts = (id_, message.role, message.kind, message.name, content, calls, encode_time(created_at))
    return Entry(message, id_, created_at, texts)


def append(
    connection: Connection,
    ref: ConversationRef,
    entries: Sequence[Entry],
    now: datetime,
    *,
    user: str | None,
    turn: str | None = None,
    any_user: bool = False,
    after: MemoryState | None = None,
    as_one: bool = False,
) -> TapeWrite:
    """Write the entries that are not on the tape yet, and update the state."""
    connection.lock(ref)
    if turn is not None:
        turns.require(connection, ref, turn)
    row = _state(connection, ref, now, user=user, any_user=any_user)
    key, _, indexed_seq, *state, look_tokens, seq, sum_tokens, last_message_at, look_at = row
    if after is not None:
        _require_end(state_from_row(row[3:]), after)
    places: list[int | Message] = []
    called: set[str] = set()
    for item in entries:
        message = item.message
        stored = None if message.id is None else _existing_message(connection, ref, key, message)
        if stored is None:
            _require_calls(connection, ref, key, message, called)
            seq, sum_tokens = seq + 1, sum_tokens + message.tokens
            last_message_at = encode_instant(item.created_at)
            connection.execute(_INSERT, (key, seq, message.tokens, sum_tokens, *item.texts))
        places.append(stored or seq)
    known = [place for place in places if isinstance(place, Message)]
    if as_one and known and len(known) < len(places):
        raise DuplicateMessage(
            f"{len(known)} of {len(places)} messages, such as {known[0].id!r}, are already on the "
            f"tape of conversation {ref.id!r}, but the others are not: repeat a request as it was, or use a new "
            "key"
        )
    look_now = encode_instant(now)
    if sum_tokens > look_tokens and (look_at is None or look_at > look_now):
        look_at = look_now
    grown = (seq, sum_tokens, last_message_at, look_at)
    connection.execute(
        "UPDATE states SET last_seq = ?, last_sum_tokens = ?, last_message_at = ?, look_at = ? "
        "WHERE conversation = ?",
        (*grown, key),
    )
    return TapeWrite(tuple(places), (*state, look_tokens, *grown), key, seq - indexed_seq)


def _require_end(state: MemoryState, after: MemoryState) -> None:
    """Raise unless the tape still ends where *after* says."""
    if after.key and state.tape_version != after.tape_version:
        raise ConversationErased(state.ref.id)
    if state.last_seq != after.last_seq:
        raise ConversationGrown(
            f"conversation {state.ref.id!r} ends at message {state.last_seq}, not at "
            f"{after.last_seq}: read the state again before appending"
        )


def _state(
    connection: Connection, ref: ConversationRef, now: datetime, *, user: str | None, any_user: bool
) -> Row:
    """Return the state of a conversation, creating it or setting its user as needed.

    Messages from before the user was known yield no facts.
    """
    row: Row | None = connection.execute(_SELECT_STATE, ref).fetchone()
    key, owner = row[:2] if row else (None, None)
    if owner is not None and owner != user and not (user is None and any_user):
        raise WrongUser(ref.id, user=user)
    if row is None:
        key = connection.execute(
            'INSERT INTO conversations (tenant, id, "user", created_at) VALUES (?, ?, ?, ?) '
            "RETURNING key",
            (*ref, user, encode_instant(now)),
        ).get
        connection.execute("INSERT INTO states (conversation) VALUES (?)", (key,))
    elif user is not None and owner is None:
        connection.execute('UPDATE conversations SET "user" = ? WHERE key = ?', (user, key))
        connection.execute("UPDATE states SET facts_seq = last_seq WHERE conversation = ?", (key,))
    else:
        return row
    written: Row = connection.execute(_SELECT_STATE, ref).fetchone()
    return written


def _existing_message(
    connection: Connection, ref: ConversationRef, key: int, message: Message
) -> Message | None:
    """Return the message with this id, if it is equal."""
    row = connection.execute(
        _SELECT + "WHERE conversation = ? AND id = ?", (key, message.id)
    ).fetchone()
    if row is None:
        return None
    stored = MESSAGES.decode(row)
    if stored.kind == "forgotten":
        return stored  # a retried append does not restore a forgotten message
    if any(getattr(stored, field) != getattr(message, field) for field in _IDENTITY):
        raise DuplicateMessage(
            f"message id {message.id!r} is taken by message {stored.seq} of conversation "
            f"{ref.id!r}, which differs: append it under another id, or none, as this one stays taken; if it is "
            "an edit of that message, forget that one, too"
        )
    return stored


def _require_calls(
    connection: Connection, ref: ConversationRef, key: int, message: Message, called: set[str]
) -> None:
    """Raise `InvalidMessage` for a result without a call on the tape; adds ids to *called*."""
    for result in message.tool_results:
        if result.call_id in called:
            continue
        # Newest first: a call is usually only a few messages before its result.
        found = connection.execute(
            "SELECT calls FROM messages, json_each(calls) WHERE conversation = ? "
            "AND calls IS NOT NULL AND value = ? ORDER BY seq DESC LIMIT 1",
            (key, result.call_id),
        ).get
        if found is None:
            raise InvalidMessage(
                f"tool call {result.call_id!r} is not on the tape of conversation {ref.id!r}: "
                "a result must follow the assistant's message with its call"
            )
        called.update(json.loads(found))


def message(connection: Connection, ref: ConversationRef, message_id: str) -> Message | None:
    row = connection.execute(_SELECT + OF_REF + "AND id = ?", (*ref, message_id)).fetchone()
    return MESSAGES.decode(row) if row else None


def messages(
    connection: Connection,
    ref: ConversationRef,
    *,
    after: int,
    limit: int | None,
    max_tokens: int | None = None,
) -> tuple[Message, ...]:
    rows = connection.execute(
        _SELECT + OF_REF + "AND seq > ? ORDER BY seq LIMIT ?",
        (*ref, after, NO_LIMIT if limit is None else limit),
    )
    first = _within(map(MESSAGES.decode, rows), max_tokens)
    rows.close()
    return first


def tail(
    connection: Connection, key: int, *, tail_seq: int, max_tokens: int
) -> tuple[Message, ...]:
    """Return the newest messages from *tail_seq* on that fit, and at least the newest."""
    rows = connection.execute(
        _SELECT + "WHERE conversation = ? AND seq >= ? ORDER BY seq DESC", (key, tail_seq)
    )
    newest = within_tail(map(MESSAGES.decode, rows), max_tokens)
    rows.close()
    return newest[::-1]


def within_tail(messages: Iterable[Message], max_tokens: int) -> tuple[Message, ...]:
    """Return the first messages that fit, and at least one.

    A message counts for at most a quarter of *max_tokens*, so that a huge one does not hide all
    messages before it.
    """
    most = max(1, max_tokens)
    return _within(messages, 4 * max_tokens, lambda message: min(4 * message.tokens, most))


def _within(
    messages: Iterable[Message],
    max_tokens: int | None,
    size: Callable[[Message], int] = attrgetter("tokens"),
) -> tuple[Message, ...]:
    """Return the first messages up to *max_tokens* in total, at least one; reads no further."""
    selected: list[Message] = []
    tokens = 0
    for message in messages:
        tokens += size(message)
        if selected and max_tokens is not None and tokens > max_tokens:
            break
        selected.append(message)
    return tuple(selected)


def sum_tokens_at(connection: Connection, key: int, seq: int) -> int:
    """Return the tokens of the tape up to and including message *seq*; 0 before the first."""
    found: int | None = connection.execute(
        "SELECT sum_tokens FROM messages WHERE conversation = ? AND seq = ?", (key, seq)
    ).get
    return found or 0


def lock_all(connection: Connection, owner: Owner) -> list[ConversationRef]:
    """Lock and return all conversations of a user, including forks made while waiting for a lock."""
    locked: list[ConversationRef] = []
    while True:
        rows = connection.execute(
            'SELECT tenant, id FROM conversations WHERE tenant = ? AND "user" = ?', owner
        )
        if not (new := sorted({ConversationRef(*row) for row in rows}.difference(locked))):
            return locked
        for ref in new:
            connection.lock(ref)
        locked += new


def delete(connection: Connection, ref: ConversationRef) -> Deleted | None:
    """Delete a conversation and all rows that refer to it; None if it did not exist."""
    connection.lock(ref)
    connection.execute("DELETE FROM turns WHERE tenant = ? AND id = ?", ref)  # nothing is added now
    vectors: int = connection.execute(
        "SELECT count(*) FROM vectors JOIN conversations ON conversations.key = conversation "
        "WHERE tenant = ? AND id = ?",
        ref,
    ).get
    row = connection.execute(
        'DELETE FROM conversations WHERE tenant = ? AND id = ? RETURNING key, "user"', ref
    ).fetchone()
    return Deleted(row[0], row[1], vectors) if row else None
