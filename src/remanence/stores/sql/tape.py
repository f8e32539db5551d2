"""The tape: messages of a conversation under gapless numbers, and their token sums."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any, LiteralString, NamedTuple

from remanence.clock import Clock
from remanence.errors import DuplicateMessage, InvalidMessage, WrongUser
from remanence.stores.rows import (
    MESSAGE_COLUMNS,
    NO_LIMIT,
    STATE_COLUMNS,
    Row,
    encode_call_ids,
    encode_content,
    encode_instant,
    encode_time,
    message_from_row,
)
from remanence.stores.sql import turns
from remanence.stores.sql.connection import Connection, Cursor
from remanence.types import ConversationRef, Message, Owner, ToolResultPart

_SELECT: LiteralString = f"SELECT {MESSAGE_COLUMNS} FROM messages "  # noqa: S608 - a constant
_OF_REF: LiteralString = (
    "WHERE conversation = (SELECT key FROM conversations WHERE tenant = ? AND id = ?) "
)
_SELECT_STATE: LiteralString = (
    f'SELECT key, "user", indexed_seq, {STATE_COLUMNS} '  # noqa: S608 - a constant
    "FROM conversations JOIN states ON conversation = key "
)


class Entry(NamedTuple):
    """A message encoded for writing; made outside of the writer's thread."""

    message: Message
    id: str
    id_is_new: bool
    content: str
    calls: str | None
    result_ids: tuple[str, ...]
    created_at: datetime
    created_at_text: str

    def message_at(self, seq: int) -> Message:
        """Return the message as it is on the tape."""
        message = self.message
        return Message(
            role=message.role,
            content=message.content,
            id=self.id,
            name=message.name,
            created_at=self.created_at,
            kind=message.kind,
            seq=seq,
            tokens=message.tokens,
        )


class Access(NamedTuple):
    """The rights of an append: its user and turn, and whether any user's conversation is open."""

    user: str | None
    turn: str | None = None
    any_user: bool = False


class TapeWrite(NamedTuple):
    """The seq of each entry, or the message that was already on the tape."""

    places: tuple[int | Message, ...]
    state: Row
    conversation: int
    unindexed: int  # messages that the text index does not hold yet


def entry(message: Message, clock: Clock, now: datetime) -> Entry:
    """Return the entry of a message, with a new id and the time *now* if it has none."""
    created_at = message.created_at or now
    return Entry(
        message=message,
        id=clock.new_id("msg") if message.id is None else message.id,
        id_is_new=message.id is None,
        content=encode_content(message.content),
        calls=encode_call_ids(message.content),
        result_ids=tuple([p.call_id for p in message.content if isinstance(p, ToolResultPart)]),
        created_at=created_at,
        created_at_text=encode_time(created_at),
    )


def append(
    connection: Connection,
    ref: ConversationRef,
    access: Access,
    now: datetime,
    entries: Sequence[Entry],
) -> TapeWrite:
    """Write the entries that are not on the tape yet, and update the state."""
    connection.lock(ref)
    if access.turn is not None:
        turns.require(connection, ref, access.turn)
    row = _state(connection, ref) or _create(connection, ref, now)
    if _name_user(connection, ref, access, row):
        row = _state(connection, ref) or row
    key, _, indexed_seq, *state, look_tokens, seq, sum_tokens, last_message_at, look_at = row
    places: list[int | Message] = []
    for item in entries:
        stored = None if item.id_is_new else _existing_message(connection, ref, key, item)
        if stored is None:
            _require_calls(connection, ref, key, item.result_ids)
            seq, sum_tokens = seq + 1, sum_tokens + item.message.tokens
            last_message_at = encode_instant(item.created_at)
            _insert(connection, key, item, seq, sum_tokens)
        places.append(stored or seq)
    look_now = encode_instant(now)
    if sum_tokens > look_tokens and (look_at is None or look_at > look_now):
        look_at = look_now
    connection.execute(
        "UPDATE states SET last_seq = ?, last_sum_tokens = ?, last_message_at = ?, look_at = ? "
        "WHERE conversation = ?",
        (seq, sum_tokens, last_message_at, look_at, key),
    )
    grown = (*state, look_tokens, seq, sum_tokens, last_message_at, look_at)
    return TapeWrite(tuple(places), grown, key, seq - indexed_seq)


def _state(connection: Connection, ref: ConversationRef) -> tuple[Any, ...] | None:
    row: tuple[Any, ...] | None = connection.execute(
        _SELECT_STATE + "WHERE tenant = ? AND conversations.id = ?", ref
    ).fetchone()
    return row


def _create(connection: Connection, ref: ConversationRef, now: datetime) -> tuple[Any, ...]:
    key: int = connection.execute(
        "INSERT INTO conversations (tenant, id, created_at) VALUES (?, ?, ?) RETURNING key",
        (ref.tenant, ref.id, encode_instant(now)),
    ).get
    connection.execute("INSERT INTO states (conversation) VALUES (?)", (key,))
    row = _state(connection, ref)
    assert row is not None
    return row


def _name_user(
    connection: Connection, ref: ConversationRef, access: Access, row: Sequence[Any]
) -> bool:
    """Name the user of a conversation that has none yet; true if it had none.

    Earlier messages yield no facts, as their user is unknown.
    """
    key, owner = row[:2]
    user = access.user
    if owner is not None and owner != user and not (user is None and access.any_user):
        raise WrongUser(ref.id, user=user)
    if user is None or owner is not None:
        return False
    connection.execute('UPDATE conversations SET "user" = ? WHERE key = ?', (user, key))
    connection.execute("UPDATE states SET facts_seq = last_seq WHERE conversation = ?", (key,))
    return True


def _insert(connection: Connection, key: int, item: Entry, seq: int, sum_tokens: int) -> None:
    message = item.message
    connection.execute(
        "INSERT INTO messages (conversation, seq, id, role, kind, name, content, calls, "
        "created_at, tokens, sum_tokens) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        (
            key,
            seq,
            item.id,
            message.role,
            message.kind,
            message.name,
            item.content,
            item.calls,
            item.created_at_text,
            message.tokens,
            sum_tokens,
        ),
    )


def _existing_message(
    connection: Connection, ref: ConversationRef, key: int, item: Entry
) -> Message | None:
    """Return the message with this id, if it is equal."""
    row = connection.execute(
        _SELECT + "WHERE conversation = ? AND id = ?", (key, item.id)
    ).fetchone()
    if row is None:
        return None
    stored, message = message_from_row(row), item.message
    if stored.kind == "forgotten":
        return stored  # a retried append brings nothing back
    if (stored.role, stored.kind, stored.name, stored.content) != (
        message.role,
        message.kind,
        message.name,
        message.content,
    ):
        raise DuplicateMessage(
            f"message id {item.id!r} is taken by message {stored.seq} of conversation "
            f"{ref.id!r}, which is another one: give this one its own id, or none"
        )
    return stored


def _require_calls(
    connection: Connection, ref: ConversationRef, key: int, call_ids: Sequence[str]
) -> None:
    for call_id in call_ids:
        # Newest first: the call is usually a few messages before its result.
        found = connection.execute(
            "SELECT 1 FROM messages, json_each(calls) WHERE conversation = ? "
            "AND calls IS NOT NULL AND value = ? ORDER BY seq DESC LIMIT 1",
            (key, call_id),
        ).fetchone()
        if found is None:
            raise InvalidMessage(
                f"tool call {call_id!r} is not on the tape of conversation {ref.id!r}: "
                "append the assistant's message with that call before its result"
            )


def messages(
    connection: Connection,
    ref: ConversationRef,
    *,
    after: int,
    limit: int | None,
    max_tokens: int | None,
) -> tuple[Message, ...]:
    """Return messages above *after*, as many as the limits allow."""
    rows = connection.execute(
        _SELECT + _OF_REF + "AND seq > ? ORDER BY seq LIMIT ?",
        (*ref, after, NO_LIMIT if limit is None else limit),
    )
    return _within(rows, max_tokens)


def tail(
    connection: Connection, key: int, *, tail_seq: int, max_tokens: int
) -> tuple[Message, ...]:
    """Return the newest messages from *tail_seq* on that fit, and at least the newest."""
    rows = connection.execute(
        _SELECT + "WHERE conversation = ? AND seq >= ? ORDER BY seq DESC", (key, tail_seq)
    )
    return _within(rows, max_tokens)[::-1]


def _within(rows: Cursor, max_tokens: int | None) -> tuple[Message, ...]:
    """Return the first rows of at most *max_tokens* together; later rows are not read."""
    if max_tokens is None:
        return tuple(message_from_row(row) for row in rows)
    selected: list[Message] = []
    tokens = 0
    for row in rows:
        message = message_from_row(row)
        tokens += message.tokens
        if selected and tokens > max_tokens:
            rows.close()
            break
        selected.append(message)
    return tuple(selected)


def sum_tokens_at(connection: Connection, key: int, seq: int) -> int:
    """Return the tokens of the tape up to and including message *seq*; 0 before the first."""
    found: int | None = connection.execute(
        "SELECT sum_tokens FROM messages WHERE conversation = ? AND seq = ?", (key, seq)
    ).get
    return found or 0


def conversations_of(connection: Connection, owner: Owner) -> list[ConversationRef]:
    """Return the conversations of a user."""
    rows = connection.execute(
        'SELECT tenant, id FROM conversations WHERE tenant = ? AND "user" = ?', owner
    )
    return [ConversationRef(*row) for row in rows]


def delete(connection: Connection, ref: ConversationRef) -> int | None:
    """Delete a conversation and all that refers to it; return its key, if it existed."""
    connection.lock(ref)
    key: int | None = connection.execute(
        "DELETE FROM conversations WHERE tenant = ? AND id = ? RETURNING key", ref
    ).get
    return key
