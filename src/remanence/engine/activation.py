"""Activation: notes that are ready replace raw messages in the prompt."""

from datetime import datetime

from remanence import telemetry
from remanence.policy.policy import Policy
from remanence.policy.schedule import tail_start
from remanence.protocols import Segments
from remanence.types import MemoryState, Snapshot


async def activate(
    store: Segments, policy: Policy, snapshot: Snapshot, active_seq: int, *, at: datetime
) -> MemoryState | None:
    """Move `active_seq` or the tail start; None if neither moves, or another process was first."""
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
