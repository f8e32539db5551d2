"""Slices of the tape to observe next."""

from dataclasses import dataclass, replace

from remanence import telemetry
from remanence.policy.policy import Policy
from remanence.policy.schedule import observation_due, observation_slice
from remanence.protocols import Store
from remanence.types import MemoryState, Message


@dataclass(frozen=True, slots=True, kw_only=True)
class Slices:
    """Reads slices of a tape for a policy and an observer that takes at most *limit* tokens."""

    store: Store
    policy: Policy
    limit: int | None

    async def take(
        self, state: MemoryState, count: int, *, everything: bool
    ) -> tuple[tuple[Message, ...], ...]:
        """Return up to *count* adjacent slices to observe, as far as they are due."""
        slices: list[tuple[Message, ...]] = []
        while messages := await self._next(state, everything=everything):
            slices.append(messages)
            tokens = sum(message.tokens for message in messages)
            state = replace(
                state,
                observed_seq=messages[-1].seq,
                observed_sum_tokens=state.observed_sum_tokens + tokens,
            )
            is_due = observation_due(self.policy, state) or (everything and state.unobserved_tokens)
            if len(slices) >= count or not is_due:
                break
        return tuple(slices)

    async def _next(self, state: MemoryState, *, everything: bool) -> tuple[Message, ...]:
        """Return the oldest unobserved messages, up to the end of a run of tool calls."""
        policy = self.policy
        max_tokens = min(policy.slice_tokens, self.limit or policy.slice_tokens)
        limit = policy.observe_slice_messages + 1 if policy.observe_slice == "oldest_n" else None
        while True:
            messages = await self.store.messages(
                state.ref, after=state.observed_seq, limit=limit, max_tokens=max_tokens
            )
            chosen, is_cut = observation_slice(
                policy, state, messages, everything=everything, request_tokens=self.limit
            )
            if is_cut and len(messages) != limit:
                telemetry.slice_cut(state.ref.id, chosen[0].seq, chosen[-1].seq)
            if chosen or not messages or messages[-1].seq >= state.last_seq:
                return chosen
            max_tokens *= 2
            limit = limit and limit * 2
