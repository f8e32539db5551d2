"""Snapshots whose tail is long enough for a context."""

from dataclasses import replace

from remanence.policy.policy import Policy
from remanence.protocols import Store
from remanence.types import ConversationRef, Snapshot
from remanence.wire.boundaries import orphan

EARLIER_MESSAGES = 50
"""Messages read at a time to find the calls of tool results."""


async def read_snapshot(
    store: Store, policy: Policy, ref: ConversationRef, *, tail_tokens: int | None = None
) -> Snapshot | None:
    """Return the snapshot of a conversation; None if the conversation does not exist.

    The tail has up to *tail_tokens*, by default those of a context. It always includes the newest
    `keep_last` messages and the calls of all its tool results, however long they are.
    """
    most = policy.context_tokens if tail_tokens is None else tail_tokens
    snapshot = await store.snapshot(ref, tail_tokens=most)
    if snapshot is None:
        return None
    tail, first_seq = snapshot.tail, snapshot.state.tail_seq
    while tail and tail[0].seq > first_seq:
        number = policy.keep_last - len(tail)
        if number <= 0:
            is_within_run = tail[0].tool_results or tail[0].tool_calls
            if not (is_within_run and orphan(tail) is not None):
                break
            number = EARLIER_MESSAGES
        after = max(first_seq, tail[0].seq - number) - 1
        limit = tail[0].seq - 1 - after
        tail = (*await store.messages(ref, after=after, limit=limit), *tail)
    return replace(snapshot, tail=tail)
