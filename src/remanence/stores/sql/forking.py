"""Forks: new conversations that start with the first messages of another, and their notes."""

from collections.abc import Collection, Sequence
from dataclasses import replace
from datetime import datetime
from typing import LiteralString

from remanence.clock import Clock
from remanence.errors import StoreError
from remanence.stores import transitions
from remanence.stores.rows import decode_time, encode_instant
from remanence.stores.sql import facts, segments, states, tape, vectors
from remanence.stores.sql.connection import Connection
from remanence.types import ConversationRef, EventValue, Fact, MemoryState

_COPIED: LiteralString = (
    "seq, id, role, kind, name, content, calls, created_at, tokens, sum_tokens, digest"
)

_RELATED: LiteralString = (
    "SELECT conversations.key, conversations.id FROM messages AS mine "
    "JOIN conversations AS source ON source.key = mine.conversation "
    'JOIN conversations ON conversations.tenant = source.tenant AND conversations."user" = '
    'source."user" AND conversations.key != source.key '
    "JOIN messages AS theirs ON theirs.conversation = conversations.key AND theirs.seq = 1 "
    "WHERE mine.conversation = ? AND mine.seq = 1 AND theirs.id = mine.id "
    "AND theirs.created_at = mine.created_at ORDER BY conversations.key"
)
"""The conversations that begin with the first message of another: its forks, source and siblings."""

_SHARED: LiteralString = (
    "SELECT count(*) FROM messages AS mine JOIN messages AS theirs ON theirs.seq = mine.seq "
    "AND theirs.id = mine.id AND theirs.kind = mine.kind AND theirs.content = mine.content "
    "WHERE mine.conversation = ? AND theirs.conversation = ? AND mine.seq BETWEEN ? AND ?"
)


def fork(
    connection: Connection,
    state: MemoryState,
    ref: ConversationRef,
    *,
    last_seq: int,
    at: datetime,
) -> MemoryState | None:
    if ref.tenant != state.ref.tenant:
        raise StoreError(
            f"conversation {ref.id!r} belongs to another tenant: fork within one tenant"
        )
    for name in sorted((state.ref, ref)):
        connection.lock(name)
    source = states.current(connection, state)
    if source is None or source.user != state.user or states.by_ref(connection, ref) is not None:
        return None
    if not 1 <= last_seq <= source.last_seq:
        raise StoreError(
            f"last_seq={last_seq} is not on the tape of conversation {source.ref.id!r}, which "
            f"ends at {source.last_seq}"
        )
    begun = _copy_tape(connection, source, ref, last_seq, at)
    inherited = segments.of_ref(connection, source.ref, live=False)
    forked, kept = transitions.after_fork(source, begun, inherited)
    for number, segment in enumerate(kept, 1):
        segments.add(connection, forked, segment, number=number)
    vectors.copy(connection, source.key, forked.key)
    detail = f"messages 1 to {last_seq} and {len(kept)} segments of {source.ref.id!r}"
    data: dict[str, EventValue] = {
        "source": source.ref.id,
        "last_seq": last_seq,
        "segments": len(kept),
    }
    states.write(connection, forked, "forked", at, detail, data)
    return states.by_key(connection, forked.key)


def _copy_tape(
    connection: Connection, source: MemoryState, ref: ConversationRef, last_seq: int, at: datetime
) -> MemoryState:
    """Create a conversation of the same user, with the first messages of another tape."""
    key: int = connection.execute(
        'INSERT INTO conversations (tenant, id, "user", created_at) VALUES (?, ?, ?, ?) '
        "RETURNING key",
        (*ref, source.user, encode_instant(at)),
    ).get
    connection.execute(
        f"INSERT INTO messages (conversation, {_COPIED}) "  # noqa: S608 - a constant
        f"SELECT ?, {_COPIED} FROM messages WHERE conversation = ? AND seq <= ? ORDER BY seq",
        (key, source.key, last_seq),
    )
    created_at: str = connection.execute(
        "SELECT created_at FROM messages WHERE conversation = ? AND seq = ?", (key, last_seq)
    ).get
    sum_tokens = tape.sum_tokens_at(connection, key, last_seq)
    connection.execute(
        "INSERT INTO states (conversation, last_seq, last_sum_tokens, last_message_at) "
        "VALUES (?, ?, ?, ?)",
        (key, last_seq, sum_tokens, encode_instant(decode_time(created_at))),
    )
    begun = states.by_key(connection, key)
    assert begun is not None
    return begun


def adopt_facts(
    connection: Connection, ref: ConversationRef, facts: Sequence[Fact]
) -> tuple[Fact, ...]:
    fork = states.by_ref(connection, ref)
    if fork is None:
        return tuple(facts)
    related = {id_: key for key, id_ in connection.execute(_RELATED, (fork.key,))}
    return tuple(
        replace(fact, conversation=ref.id)
        if fact.conversation in related
        and _shares(connection, related[fact.conversation], fork.key, fact)
        else fact
        for fact in facts
    )


def unshared_facts(
    connection: Connection, ref: ConversationRef, facts: Sequence[Fact]
) -> tuple[Fact, ...]:
    source = states.by_ref(connection, ref)
    if source is None:
        return tuple(facts)
    related = connection.execute(_RELATED, (source.key,)).fetchall()
    return tuple(
        fact
        for fact in facts
        if not any(_shares(connection, source.key, key, fact) for key, _ in related)
    )


def leave_facts(
    connection: Connection,
    ref: ConversationRef,
    clock: Clock,
    *,
    seqs: Collection[int] | None = None,
) -> None:
    """Let facts of a conversation, or those of some messages, outlive it where a fork has these, too.

    They become repetitions from the oldest such fork, which replace them when they are erased.
    """
    connection.lock(ref)
    source = states.by_ref(connection, ref)
    if source is None or source.owner is None:
        return
    related = connection.execute(_RELATED, (source.key,)).fetchall()
    if not related:
        return
    connection.lock(source.owner)
    for known, said in facts.said_in(connection, source.owner, ref.id):
        first_seq = said.first_seq or 0
        places = range(first_seq, (said.last_seq or first_seq) + 1)
        if seqs is not None and not any(seq in places for seq in seqs):
            continue
        for key, id_ in related:
            if _shares(connection, source.key, key, said):
                heir = replace(said, id=clock.new_id("fact"), conversation=id_)
                facts.repeat(connection, known, heir)
                break


def _shares(connection: Connection, source: int, other: int, said: Fact) -> bool:
    """Return whether two tapes have the same messages where a fact comes from."""
    if said.first_seq is None:
        return False
    last_seq = said.last_seq or said.first_seq
    count: int = connection.execute(_SHARED, (source, other, said.first_seq, last_seq)).get
    return count == last_seq - said.first_seq + 1
