"""Snapshots of a conversation: their tails, the slices to observe next, and activation."""

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime

from remanence import telemetry
from remanence.policy.policy import Policy
from remanence.policy.schedule import (
    is_rest_due,
    observation_due,
    observation_slice,
    tail_start,
)
from remanence.protocols import Segments, Store, Tape
from remanence.types import ConversationRef, MemoryState, Message, Snapshot
from remanence.wire.boundaries import orphan
from remanence.wire.links import link

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
            is_within_run = any(map(link, tail[0].content))
            if not (is_within_run and orphan(tail) is not None):
                break
            number = EARLIER_MESSAGES
        after = max(first_seq, tail[0].seq - number) - 1
        limit = tail[0].seq - 1 - after
        tail = (*await store.messages(ref, after=after, limit=limit), *tail)
    return replace(snapshot, tail=tail)


async def activate(
    store: Segments, policy: Policy, snapshot: Snapshot, active_seq: int, *, at: datetime
) -> MemoryState | None:
    """Have ready notes up to *active_seq* replace raw messages in the prompt, and move the tail.

    Returns None if neither moves, or another process was first.
    """
    state = snapshot.state
    start = tail_start(policy, snapshot.tail, active_seq)
    if active_seq <= state.active_seq and start <= state.tail_seq:
        return None
    moved = await store.activate(
        state, active_seq=active_seq, tail_seq=max(start, state.tail_seq), at=at
    )
    if moved is not None:
        telemetry.count_activation(state.ref.id, active_seq)
    return moved


async def due_slices(
    store: Tape,
    policy: Policy,
    state: MemoryState,
    count: int,
    *,
    request_tokens: int | None,
    everything: bool,
    interrupted: Sequence[Message] = (),
) -> tuple[tuple[Message, ...], ...]:
    """Return up to *count* adjacent slices to observe, as far as they are due.

    An observer takes at most *request_tokens* of them at once. Of an *interrupted* turn, whose raw
    tail is given, they take all that need not stay.
    """
    slices: list[tuple[Message, ...]] = []
    while messages := await _next_slice(
        store, policy, state, request_tokens=request_tokens, everything=everything
    ):
        slices.append(messages)
        tokens = sum(message.tokens for message in messages)
        state = replace(
            state,
            observed_seq=messages[-1].seq,
            observed_sum_tokens=state.observed_sum_tokens + tokens,
        )
        is_due = observation_due(policy, state) or (everything and state.unobserved_tokens)
        if interrupted:
            is_due = is_rest_due(policy, state, interrupted)
        if len(slices) >= count or not is_due:
            break
    return tuple(slices)


async def _next_slice(
    store: Tape, policy: Policy, state: MemoryState, *, request_tokens: int | None, everything: bool
) -> tuple[Message, ...]:
    """Return the oldest unobserved messages, up to the end of a run of tool calls."""
    max_tokens = min(policy.slice_tokens, request_tokens or policy.slice_tokens)
    limit = policy.observe_slice_messages + 1 if policy.observe_slice == "oldest_n" else None
    while True:
        messages = await store.messages(
            state.ref, after=state.observed_seq, limit=limit, max_tokens=max_tokens
        )
        chosen, is_cut = await asyncio.to_thread(  # an open turn may have any number of long parts
            observation_slice,
            policy,
            state,
            messages,
            everything=everything,
            request_tokens=request_tokens,
        )
        if is_cut and len(messages) != limit:
            telemetry.slice_cut(state.ref.id, chosen[0].seq, chosen[-1].seq)
        if chosen or not messages or messages[-1].seq >= state.last_seq:
            return chosen
        max_tokens *= 2
        limit = limit and limit * 2
