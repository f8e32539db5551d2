"""The reconciler: look at a conversation's cursors, run the next due step, commit."""

import hashlib
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import partial
from typing import Literal, NamedTuple

from remanence import telemetry
from remanence.background import guard_host_code
from remanence.clock import Clock
from remanence.engine.backoff import Backoff, maker_name
from remanence.engine.leases import Leases
from remanence.engine.retention import Pruner
from remanence.engine.segment_writer import SegmentWriter, source_limit
from remanence.engine.snapshots import activate, due_slices, read_snapshot
from remanence.engine.steps import IDLE, LEASED, PROGRESS, Outcome, Step, StepName, wait
from remanence.engine.waits import calls_after
from remanence.errors import StoreError
from remanence.facts.extraction import Extraction
from remanence.policy import schedule
from remanence.policy.policy import Policy
from remanence.protocols import Store
from remanence.telemetry.spans import step_span
from remanence.types import ConversationRef, Failure, MemoryState, Message, Segment, Snapshot
from remanence.wire.boundaries import is_turn_open

OPEN_TURN_SLICES = 8
"""How many slices of an open turn are observed in one step, if the messages are that many."""


class _Look(NamedTuple):
    """A look at a conversation; *everything* includes steps that are not due yet.

    In the middle of a turn (not *in_time*), observers are called only for a long backlog. A caller
    waits for the steps of an *eager* look.
    """

    snapshot: Snapshot
    now: datetime
    everything: bool
    in_time: bool
    eager: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Reconciler:
    """Runs the next due step of a conversation.

    Stateless, except for the sizes of slices that observers took after they had refused longer ones.
    """

    store: Store
    policy: Policy
    clock: Clock
    segment_writer: SegmentWriter
    extraction: Extraction
    leases: Leases
    backoff: Backoff
    pruner: Pruner
    parallel_slices: int = 1
    taken_tokens: dict[str, int] = field(default_factory=dict)

    @property
    def maker_names(self) -> dict[StepName, str]:
        """The names of observer, reflector and extractor, by step."""
        writer = self.segment_writer
        return {
            "observe": maker_name(writer.observer),
            "reflect": maker_name(writer.reflector),
            "facts": maker_name(self.extraction.extractor),
        }

    async def use_rules(self) -> None:
        """Schedule a look at every conversation, if the settings that decide what is due changed."""
        rules = repr((self.policy, tuple(self.maker_names.values())))
        digest = hashlib.sha256(rules.encode()).hexdigest()[:16]
        await self.store.use_look_rules(digest, at=self.clock.now())

    async def step(self, ref: ConversationRef, *, everything: bool, eager: bool) -> Step:
        """Look once and run at most one step; *everything* includes steps that are not due yet.

        An observation waits for the end of a turn unless *eager* is set, as a caller waits for it.
        If nothing is due, the next look is scheduled.
        """
        if not self.policy.enabled:
            return IDLE
        snapshot = await read_snapshot(self.store, self.policy, ref)
        if snapshot is None:
            return IDLE
        now = self.clock.now()
        active_seq = schedule.activation(self.policy, snapshot, now=now)
        if active_seq is not None and await activate(
            self.store, self.policy, snapshot, active_seq, at=now
        ):
            return PROGRESS
        eager = eager or everything
        look = _Look(snapshot, now, everything, eager or not is_turn_open(snapshot.tail), eager)
        times: list[datetime] = []
        for run in (self._observe_due, self._restore_due, self._reflect_due, self._extract_due):
            step = await run(look)
            if step.outcome is not Outcome.IDLE or step.error is not None:
                return step
            if step.until is not None:
                times.append(step.until)
        return await self._rest(snapshot.state, min(times, default=None), now)

    async def roll_up(self, ref: ConversationRef) -> None:
        """Condense all notes of a conversation that ends, if any of them are observations.

        A failure is recorded like that of any step, and leaves the notes unchanged.

        Raises:
            StoreError: the database failed.
        """
        snapshot = await read_snapshot(self.store, self.policy, ref)
        if snapshot is None or not (self.policy.enabled and self.policy.reflect_at_end):
            return
        observations = [s for s in snapshot.segments if s.generation == 0 and s.text]
        if not observations:
            return
        observed_seq = snapshot.state.observed_seq
        await activate(self.store, self.policy, snapshot, observed_seq, at=self.clock.now())
        active = await read_snapshot(self.store, self.policy, ref) or snapshot
        # Another worker may have observed more meanwhile, which the prompt does not show yet.
        shown = tuple(s for s in active.segments if s.last_seq <= active.state.active_seq)
        reflect = partial(self.segment_writer.reflect, active, shown, final=True)
        step = await self._run_leased("reflect", active.state, reflect)
        if step.error is not None:
            raise step.error

    async def _rest(self, state: MemoryState, until: datetime | None, now: datetime) -> Step:
        """Schedule the next look; look again at once if the conversation changed meanwhile."""
        at = None if until is None else min(until, now + schedule.longest_wait(self.policy))
        tokens = schedule.look_tokens(self.policy, state)
        is_planned = (at, tokens) == (state.look_at, state.look_tokens)
        if is_planned or await self.store.rest(state, at=at, tokens=tokens):
            return Step(Outcome.IDLE, until)
        return PROGRESS

    async def _observe_due(self, look: _Look) -> Step:
        snapshot, now, everything, in_time, _ = look
        state, failure = snapshot.state, snapshot.state.observe_failure
        if not in_time and not schedule.may_interrupt(self.policy, state, snapshot.tail):
            return IDLE
        observer = self.maker_names["observe"]
        if not (
            schedule.observation_due(self.policy, state) or (everything and state.unobserved_tokens)
        ):
            return IDLE
        may_observe = schedule.may_try(self.policy, state, failure, now=now, made_by=observer)
        stands_in = not may_observe and schedule.takes_over(self.policy, state, observer)
        if not (may_observe or stands_in):
            return self.backoff.until_next_try(state, failure)
        slices = await due_slices(
            self.store,
            self.policy,
            state,
            self._slice_count(look),
            request_tokens=self._slice_limit(),
            everything=everything,
            interrupted=() if in_time else snapshot.tail,
        )
        if not slices:
            return IDLE
        first, *others = slices
        if stands_in:
            work = partial(self.segment_writer.commit_stand_in, state, first)
        else:
            work = partial(self._observe, snapshot, first, *others)
        return await self._run_leased("observe", state, work)

    async def _observe(
        self, snapshot: Snapshot, first: tuple[Message, ...], *others: tuple[Message, ...]
    ) -> bool:
        """Commit observations; if the observer has failed too often, the first has no notes."""
        state, observer = snapshot.state, self.maker_names["observe"]
        failure = schedule.failure_by(state, "observe", observer)
        messages = schedule.halve(first, failure.halvings if failure else 0)
        try:
            is_committed = await self.segment_writer.observe(
                snapshot, messages, *others, parallel=self.parallel_slices
            )
            self._note_size(failure, first, messages)
            return is_committed
        except Exception as error:
            stretch = self.backoff.give_up_if_exhausted(
                "observe", state, messages, error, made_by=observer
            )
            if stretch is None:
                raise
        return await self.segment_writer.commit_failed(state, messages, stretch, observer=observer)

    def _slice_count(self, look: _Look) -> int:
        """Return how many slices to observe in a step: several of an open turn, to interrupt it once."""
        if look.snapshot.state.observe_failure:
            return 1
        return max(self.parallel_slices, 1 if look.in_time else OPEN_TURN_SLICES)

    def _slice_limit(self) -> int | None:
        """Return the tokens of messages that the observer takes in one request; None if unknown."""
        limits = (
            source_limit(self.segment_writer.observer),
            self.taken_tokens.get(self.maker_names["observe"]),
        )
        return min((limit for limit in limits if limit is not None), default=None)

    def _note_size(
        self, failure: Failure | None, first: Sequence[Message], messages: Sequence[Message]
    ) -> None:
        """Note the size that was taken after longer ones; later ones may slowly grow.

        Half of the refused size is tried next, as the part that was taken may be one short message.
        """
        observer, tokens = self.maker_names["observe"], schedule.request_size(messages)
        limit = self.taken_tokens.get(observer)
        if failure is not None and failure.reason == "too_long":
            refused = schedule.halve(first, max(0, failure.halvings - 1))
            self.taken_tokens[observer] = max(tokens, schedule.request_size(refused) // 2)
        elif limit is not None and 2 * tokens >= limit:  # a short slice proves little
            self.taken_tokens[observer] = max(tokens, limit) * 5 // 4

    async def retry_failed(self, ref: ConversationRef) -> bool:
        """Observe given-up stretches again; return whether any of them succeeded."""
        snapshot = (
            await read_snapshot(self.store, self.policy, ref) if self.policy.enabled else None
        )
        if snapshot is None:
            return False
        failed = [s for s in snapshot.segments if s.failed and s.generation == 0]
        outcomes = [await self._retry_stretch(snapshot, segment) for segment in failed]
        return any(outcomes)

    async def _retry_stretch(self, snapshot: Snapshot, failed: Segment) -> bool:
        """Observe one given-up stretch again; another failure changes nothing."""
        state = snapshot.state
        async with self.leases.hold(state) as is_ours:
            try:
                return is_ours and await self.segment_writer.reobserve(snapshot, failed)
            except StoreError:
                raise
            except Exception as error:  # noqa: BLE001 - an observer may raise anything
                self.backoff.log(state, error)
                return False

    async def _restore_due(self, look: _Look) -> Step:
        """Have the configured observer replace notes that the embedded one made in its place."""
        state = look.snapshot.state
        stand_in = next((segment for segment in look.snapshot.segments if segment.stands_in), None)
        if not look.in_time or stand_in is None or self.segment_writer.is_embedded:
            return IDLE
        due_at = schedule.restore_time(state, now=look.now, observer=self.maker_names["observe"])
        if due_at is not None:
            return wait(due_at)
        restore = partial(self._restore, look.snapshot, stand_in)
        return await self._run_leased("observe", state, restore)

    async def _restore(self, snapshot: Snapshot, stand_in: Segment) -> bool:
        try:
            return await self.segment_writer.reobserve(snapshot, stand_in)
        except Exception as error:
            if self.backoff.is_outage(error, made_by=self.maker_names["observe"]):
                raise
            self.backoff.log(snapshot.state, error, effect="the stand-in notes stay")
        return await self.segment_writer.keep_stand_in(snapshot.state, stand_in)

    async def _reflect_due(self, look: _Look) -> Step:
        state, now = look.snapshot.state, look.now
        sources = schedule.reflection_sources(self.policy, state, look.snapshot.segments)
        if not sources:
            return IDLE
        due_at = schedule.restore_time(state, now=now, observer=self.maker_names["observe"])
        if due_at is not None and any(segment.stands_in for segment in sources):
            return wait(due_at)
        if (due_at := schedule.reflection_time(self.policy, state, now=now)) > now:
            return wait(due_at)
        if backoff := self._backoff_of("reflect", look):
            return backoff
        reflect = partial(self.segment_writer.reflect, look.snapshot, sources)
        return await self._run_leased("reflect", state, reflect)

    async def _extract_due(self, look: _Look) -> Step:
        state = look.snapshot.state
        end = schedule.facts_end(self.policy, state, everything=look.everything)
        idle_at = schedule.facts_time(self.policy, state, now=look.now)
        if idle_at is not None and idle_at <= look.now:
            idle_at = look.now if look.eager else schedule.batch_time(state, now=look.now)
            end = state.last_seq if idle_at <= look.now else end
        if end is None:
            return IDLE if idle_at is None else wait(idle_at)
        if backoff := self._backoff_of("facts", look):
            return backoff
        return await self._run_leased("facts", state, partial(self._extract, look.snapshot, end))

    async def _extract(self, snapshot: Snapshot, end: int) -> bool:
        """Commit the facts of the next messages; if that has failed too often, leave these out."""
        state, extractor = snapshot.state, self.maker_names["facts"]
        messages = await self.extraction.next_messages(state, end)
        if not messages:
            return False
        failure = schedule.failure_by(state, "facts", extractor)
        halved = schedule.halve(messages, failure.halvings if failure else 0)
        try:
            return await self.extraction.extract(snapshot, halved, self.segment_writer.visible)
        except Exception as error:
            stretch = self.backoff.give_up_if_exhausted(
                "facts", state, halved, error, made_by=extractor
            )
            if stretch is None:
                raise
        return await self.extraction.leave_out(state, stretch)

    def _backoff_of(self, name: Literal["reflect", "facts"], look: _Look) -> Step | None:
        """Return the wait after a failed step or observation; None if the step may run."""
        state, names = look.snapshot.state, self.maker_names
        if schedule.later_steps_wait(state, now=look.now, observer=names["observe"]):
            return self.backoff.until_next_try(state, state.observe_failure)
        failure = state.failure_of(name)
        if schedule.may_try(self.policy, state, failure, now=look.now, made_by=names[name]):
            return None
        return self.backoff.until_next_try(state, failure)

    async def _run_leased(
        self, name: StepName, state: MemoryState, work: Callable[[], Awaitable[bool]]
    ) -> Step:
        """Do *work* under the conversation's lease; a failure is recorded, not raised.

        A failed commit backs off like any other failure, as its model calls were wasted.
        """
        step = f"the {name} step of conversation {state.ref.id!r}"
        async with self.leases.hold(state) as is_ours:
            if not is_ours:
                return LEASED
            try:
                if await self.leases.is_still_due(state):
                    with step_span(name, state.ref.id), calls_after(state.failure_of(name)):
                        with self.leases.background.doing(step), guard_host_code():
                            is_committed = await work()
                        if not is_committed:
                            telemetry.step_discarded(name, state.ref.id)
            except Exception as error:  # noqa: BLE001 - an observer may raise anything
                made_by = self.maker_names[name]
                until = await self.backoff.record(name, state, error, made_by=made_by)
                if isinstance(error, StoreError):
                    return Step(Outcome.IDLE, until, error)
        return PROGRESS
