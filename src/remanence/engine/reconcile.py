"""One step at a time: look at a conversation's cursors, do what is due, commit."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import datetime

from remanence import telemetry
from remanence.clock import Clock
from remanence.engine.compressing import Compressing
from remanence.engine.failing import Failing
from remanence.engine.leases import Leases
from remanence.engine.remembering import Remembering
from remanence.engine.steps import IDLE, PROGRESS, Outcome, Step, StepName, soonest
from remanence.errors import StoreError
from remanence.observing.policy import Policy
from remanence.observing.schedule import (
    activation,
    facts_end,
    later_steps_wait,
    may_try,
    observation_due,
    observation_slice,
    reflection_sources,
    tail_start,
)
from remanence.protocols import Store
from remanence.types import ConversationRef, MemoryState, Message, Snapshot

LEASE_POLL_SECONDS = 0.1


@dataclass(frozen=True, slots=True, kw_only=True)
class Reconciler:
    """Does the next thing that is due for a conversation. Holds no state of its own."""

    store: Store
    policy: Policy
    clock: Clock
    compressing: Compressing
    remembering: Remembering
    leases: Leases
    failing: Failing

    async def step(self, ref: ConversationRef, *, everything: bool = False) -> Step:
        """Look once and do at most one thing; *everything* does also what is not due yet."""
        if not self.policy.enabled:
            return IDLE
        snapshot = await self._snapshot(ref)
        if snapshot is None:
            return IDLE
        now = self.clock.now()
        if await self.activate_if_due(snapshot, now=now):
            return PROGRESS
        steps = [await self._observing(snapshot, now, everything=everything)]
        if steps[-1].did_nothing:
            snapshot = await self._reread(snapshot, steps[-1])
            steps.append(await self._reflecting(snapshot, now))
        if steps[-1].did_nothing:
            snapshot = await self._reread(snapshot, steps[-1])
            steps.append(await self._remembering(snapshot, now, everything=everything))
        return soonest(steps) if steps[-1].did_nothing else steps[-1]

    async def _reread(self, snapshot: Snapshot, step: Step) -> Snapshot:
        """The snapshot after a step that may just have failed."""
        if step.outcome is not Outcome.WAIT:
            return snapshot
        return await self._snapshot(snapshot.state.ref) or snapshot

    async def _snapshot(self, ref: ConversationRef) -> Snapshot | None:
        # Not `tail_tokens`: the newest `keep_last` messages may have more, and stay raw.
        return await self.store.snapshot(ref, tail_tokens=self.policy.context_tokens)

    async def activate_if_due(
        self, snapshot: Snapshot, *, now: datetime, model_changed: bool = False
    ) -> MemoryState | None:
        """Move `active_seq` where it is due; no model is called."""
        state = snapshot.state
        active_seq = activation(self.policy, snapshot, now=now, model_changed=model_changed)
        if active_seq is None:
            return None
        start = tail_start(self.policy, snapshot.tail, active_seq)
        moved = await self.store.activate(
            state, active_seq=active_seq, tail_seq=max(start, state.tail_seq), at=now
        )
        if moved is not None:
            telemetry.activated(state.ref.id, active_seq)
        return moved

    async def _observing(self, snapshot: Snapshot, now: datetime, *, everything: bool) -> Step:
        state = snapshot.state
        due = observation_due(self.policy, state) or (everything and state.unobserved_tokens > 0)
        if not due:
            return IDLE
        if not may_try(self.policy, state, state.observe_failure, now=now):
            return self.failing.until_next_try(state, state.observe_failure, now)
        messages = await self._slice(state, everything=everything)
        if not messages:
            return IDLE
        return await self._leased(
            "observe", state, lambda: self.compressing.observe(snapshot, messages)
        )

    async def _reflecting(self, snapshot: Snapshot, now: datetime) -> Step:
        state = snapshot.state
        sources = reflection_sources(self.policy, state, snapshot.segments, now=now)
        if not sources:
            return IDLE
        if later_steps_wait(state, now=now):
            return self.failing.until_next_try(state, state.observe_failure, now)
        if not may_try(self.policy, state, state.reflect_failure, now=now):
            return self.failing.until_next_try(state, state.reflect_failure, now)
        return await self._leased(
            "reflect", state, lambda: self.compressing.reflect(snapshot, sources)
        )

    async def _remembering(self, snapshot: Snapshot, now: datetime, *, everything: bool) -> Step:
        state = snapshot.state
        end = facts_end(self.policy, state, everything=everything)
        if end is None:
            return IDLE
        if later_steps_wait(state, now=now):
            return self.failing.until_next_try(state, state.observe_failure, now)
        if not may_try(self.policy, state, state.facts_failure, now=now):
            return self.failing.until_next_try(state, state.facts_failure, now)
        return await self._leased("facts", state, lambda: self.remembering.remember(snapshot, end))

    async def _slice(self, state: MemoryState, *, everything: bool) -> tuple[Message, ...]:
        """The next messages to observe; reads on while a run of tool calls does not end."""
        max_tokens = self.policy.observe_max_tokens
        while True:
            messages = await self.store.messages(
                state.ref, after=state.observed_seq, limit=None, max_tokens=max_tokens
            )
            chosen = observation_slice(self.policy, state, messages, everything=everything)
            if chosen or not messages or messages[-1].seq >= state.last_seq:
                return chosen
            max_tokens *= 2

    async def _leased(
        self, name: StepName, state: MemoryState, work: Callable[[], Awaitable[bool]]
    ) -> Step:
        """Do *work* as the only owner of the conversation; a failure is recorded, not raised."""
        async with self.leases.held(state) as is_ours:
            if not is_ours:
                return Step(Outcome.LEASED, LEASE_POLL_SECONDS)
            try:
                return await self._worked(name, state, work)
            except StoreError:
                raise
            except Exception as error:  # noqa: BLE001 - an observer may raise anything
                return await self.failing.record(name, state, error)

    async def _worked(
        self, name: StepName, state: MemoryState, work: Callable[[], Awaitable[bool]]
    ) -> Step:
        if await self.leases.is_still_due(state):
            with telemetry.step_span(name, state.ref.id):
                if not await work():
                    telemetry.step_discarded(name, state.ref.id)
        return PROGRESS
