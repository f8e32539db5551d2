"""Snapshots that read only new rows.

A message changes only when something is forgotten, which `erasures` counts, and live segments only
with the state's `lock_version`: cached rows stay valid for every later snapshot, even with other writers.
"""

from collections.abc import Sequence
from typing import NamedTuple

from remanence.recent import Recent
from remanence.stores.sql import facts, segments, states, tape
from remanence.stores.sql.connection import Connection
from remanence.types import ConversationRef, MemoryState, Message, Segment, Snapshot

_MOST_CONVERSATIONS = 32


class _Kept(NamedTuple):
    """The segments of a version, and the newest messages that fit the token limit."""

    lock_version: int = -1
    erasures: int = 0
    segments: tuple[Segment, ...] = ()
    tail: tuple[Message, ...] = ()
    tail_tokens: int = 0
    is_whole: bool = False  # no message from `tail_seq` on was left out


class Snapshots:
    """Reads snapshots of committed states, and caches those of the latest conversations.

    For one thread, and a connection that never sees uncommitted changes.
    """

    def __init__(self) -> None:
        self._kept: Recent[int, _Kept] = Recent(_MOST_CONVERSATIONS)

    def __len__(self) -> int:
        return len(self._kept)

    def read(
        self, connection: Connection, ref: ConversationRef, *, tail_tokens: int
    ) -> Snapshot | None:
        """Return state, live segments and raw tail; call it inside one transaction."""
        state = states.by_ref(connection, ref)
        if state is None:
            return None
        kept = self._kept.get(state.key, _Kept())
        if kept.erasures != state.erasures:
            kept = _Kept()
        live = kept.segments
        if kept.lock_version != state.lock_version:
            live = segments.live(connection, state.key)
        most_tokens = max(tail_tokens, kept.tail_tokens)
        known = kept.tail if kept.is_whole or tail_tokens <= kept.tail_tokens else ()
        tail = _tail(connection, state, known, most_tokens)
        is_whole = bool(tail) and tail[0].seq == state.tail_seq
        self._kept[state.key] = _Kept(
            state.lock_version, state.erasures, live, tail, most_tokens, is_whole
        )
        pin = facts.read_pin(connection, state.key) if state.user is not None else None
        return Snapshot(state=state, segments=live, tail=_newest(tail, tail_tokens), facts=pin)


def _tail(
    connection: Connection, state: MemoryState, known: tuple[Message, ...], max_tokens: int
) -> tuple[Message, ...]:
    """Return the newest messages that fit; *known* ones are cached, and not read again."""
    known = tuple(message for message in known if message.seq >= state.tail_seq)
    start = known[-1].seq + 1 if known else state.tail_seq
    if start > state.last_seq:
        return known
    newer = tape.tail(connection, state.key, tail_seq=start, max_tokens=max_tokens)
    return newer if newer[0].seq > start else _newest(known + newer, max_tokens)


def _newest(messages: Sequence[Message], max_tokens: int) -> tuple[Message, ...]:
    """Return the newest messages that fit, and at least the last one."""
    return tape.within_tail(reversed(messages), max_tokens)[::-1]
