"""Forgetting messages: writes tombstones, and erases everything derived from the messages."""

from collections.abc import Sequence
from datetime import datetime

from remanence.clock import Clock
from remanence.stores import transitions
from remanence.stores.rows import encode_content
from remanence.stores.sql import facts, forking, segments, states, vectors
from remanence.stores.sql.connection import Connection
from remanence.types import Erased, Erasure, MemoryState, Message


def forget(
    connection: Connection, state: MemoryState, erasure: Erasure, *, at: datetime, clock: Clock
) -> Erased | None:
    current = states.current(connection, state)
    if current is None or current.lock_version != state.lock_version:
        return None
    key = current.key
    states.clear_error_texts(connection, key)
    current = states.by_key(connection, key)
    assert current is not None
    after = transitions.after_forgetting(current, erasure, live=segments.spans(connection, key))
    seqs = {message.seq for message in erasure.tombstones}
    forking.leave_facts(connection, after.ref, clock, seqs=seqs)
    before = vectors.count(connection, key)
    _bury(connection, key, erasure.tombstones)
    last_number = segments.last_number(connection, key)
    segments.erase(connection, key, [*erasure.segments, *(each.id for each in erasure.remade)])
    left = vectors.count(connection, key)
    _recount(connection, key)
    for number, segment in enumerate(erasure.remade, last_number + 1):
        segments.add(connection, after, segment, number=number)
    if after.owner is not None:
        facts.erase(connection, after.ref, after.owner, erasure)
    detail = (
        f"{len(erasure.tombstones)} messages, {len(erasure.segments)} segments, replaced by "
        f"{len(erasure.remade)}, and {len(erasure.facts)} facts"
    )
    data = {
        "messages": len(erasure.tombstones),
        "segments": len(erasure.segments),
        "facts": len(erasure.facts),
    }
    states.write(connection, after, "forgotten", at, detail, data)
    connection.execute(  # voids all work in progress on the conversation
        "UPDATE states SET erasures = erasures + 1 WHERE conversation = ?", (key,)
    )
    written = states.by_key(connection, key)
    assert written is not None
    return Erased(written, before - left)


def _bury(connection: Connection, conversation: int, tombstones: Sequence[Message]) -> None:
    for message in tombstones:
        counted = (message.tokens, message.digest)
        key: int = connection.execute(
            "UPDATE messages SET kind = 'forgotten', name = NULL, content = ?, tokens = ?, "
            "digest = ? WHERE conversation = ? AND seq = ? RETURNING key",
            (encode_content(message.content), *counted, conversation, message.seq),
        ).get
        connection.remove_words("text_index", [key])
        connection.execute("DELETE FROM vectors WHERE item = ?", (key,))


def _recount(connection: Connection, conversation: int) -> None:
    """Recompute the token counts of the tape and of the segments' sources."""
    connection.execute(
        "UPDATE messages SET sum_tokens = counted.total FROM ("
        "SELECT key, sum(tokens) OVER (ORDER BY seq) AS total FROM messages "
        "WHERE conversation = ?) AS counted "
        "WHERE messages.key = counted.key AND sum_tokens != counted.total",
        (conversation,),
    )
    connection.execute(
        "UPDATE segments SET sum_tokens = (SELECT sum_tokens FROM messages "
        "WHERE messages.conversation = segments.conversation AND seq = segments.last_seq), "
        "source_tokens = (SELECT sum(tokens) FROM messages "
        "WHERE messages.conversation = segments.conversation "
        "AND seq BETWEEN segments.first_seq AND segments.last_seq) WHERE conversation = ?",
        (conversation,),
    )
    connection.execute(
        "UPDATE states SET last_sum_tokens = (SELECT max(sum_tokens) FROM messages "
        "WHERE conversation = ?) WHERE conversation = ?",
        (conversation, conversation),
    )
