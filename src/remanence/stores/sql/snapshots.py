"""Snapshots that read only new rows.

Cached rows stay valid even with other writers: messages change only when `erasures` grows, and live
segments only when `lock_version` does.
"""

from collections.abc import Sequence
from typing import NamedTuple

from remanence.recent import Recent
from remanence.stores.sql import facts, segments, states, tape
from remanence.stores.sql.connection import Connection
from remanence.types import ConversationRef, MemoryState, Message, Segment, Snapshot

_MAX_CONVERSATIONS = 32


class _CachedSnapshot(NamedTuple):
    """The segments of a version, and the newest messages within a token limit."""

    lock_version: int = -1
    erasures: int = 0
    segments: tuple[Segment, ...] = ()
    tail: tuple[Message, ...] = ()
    tail_tokens: int = 0
    is_whole: bool = False  # the tail starts at `tail_seq`


class Snapshots:
    """Reads snapshots of committed states, with a cache for the latest conversations.

    Not thread-safe; the connection must not see uncommitted changes.
    """

    def __init__(self) -> None:
        self._cache: Recent[int, _CachedSnapshot] = Recent(_MAX_CONVERSATIONS)

    def __len__(self) -> int:
        return len(self._cache)

    def read(
        self, connection: Connection, ref: ConversationRef, *, tail_tokens: int
    ) -> Snapshot | None:
        """Return state, live segments and raw tail; call it inside one transaction."""
        state = states.by_ref(connection, ref)
        if state is None:
            return None
        cached = self._cache.get(state.key, _CachedSnapshot())
        if cached.erasures != state.erasures:
            cached = _CachedSnapshot()
        live = cached.segments
        if cached.lock_version != state.lock_version:
            live = segments.live(connection, state.key)
        max_tokens = max(tail_tokens, cached.tail_tokens)
        known = cached.tail if cached.is_whole or tail_tokens <= cached.tail_tokens else ()
        tail = _tail(connection, state, known, max_tokens)
        is_whole = bool(tail) and tail[0].seq == state.tail_seq
        self._cache[state.key] = _CachedSnapshot(
            state.lock_version, state.erasures, live, tail, max_tokens, is_whole
        )
        pin = facts.read_pin(connection, state.key) if state.user is not None else None
        return Snapshot(state=state, segments=live, tail=_newest(tail, tail_tokens), facts=pin)


def _tail(
    connection: Connection, state: MemoryState, known: tuple[Message, ...], max_tokens: int
) -> tuple[Message, ...]:
    """Return the newest messages that fit, reading only those that are not *known*."""
    known = tuple(message for message in known if message.seq >= state.tail_seq)
    start = known[-1].seq + 1 if known else state.tail_seq
    if start > state.last_seq:
        return known
    newer = tape.tail(connection, state.key, tail_seq=start, max_tokens=max_tokens)
    return newer if newer[0].seq > start else _newest(known + newer, max_tokens)


def _newest(messages: Sequence[Message], max_tokens: int) -> tuple[Message, ...]:
    """Return the newest messages that fit, and at least the last one."""
    return tape.within_tail(reversed(messages), max_tokens)[::-1]
