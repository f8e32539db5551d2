"""One step at a time: look at a conversation's cursors, do what is due, commit."""

import asyncio
import random
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import Enum
from typing import Literal, NamedTuple, TypeAlias

from remanence import telemetry
from remanence.clock import Clock
from remanence.engine.hooks import NO_HOOKS, Hooks, observed, reflected
from remanence.engine.remembering import Remembering
from remanence.engine.seeing import seen_messages
from remanence.errors import ModelError, ObservationRejected, ObservationSkipped, StoreError
from remanence.observing.checking import check_draft
from remanence.observing.extractive.slicing import Pacer
from remanence.observing.facts import ExtractiveFacts
from remanence.observing.literals import LossReport
from remanence.observing.notes import render_notes
from remanence.observing.policy import Policy
from remanence.observing.schedule import (
    activation,
    facts_end,
    is_latched,
    later_steps_wait,
    may_try,
    observation_due,
    observation_slice,
    observation_target,
    reflection_generation,
    reflection_limit,
    reflection_sources,
    reflection_target,
    retry_delay,
    tail_start,
)
from remanence.protocols import (
    CountTokens,
    FactExtractor,
    LivePrompt,
    Observer,
    ObserveRequest,
    Reflector,
    ReflectRequest,
    Store,
)
from remanence.types import (
    ConversationRef,
    Draft,
    Failure,
    MemoryState,
    Message,
    Note,
    Segment,
    Snapshot,
)

LEASE_POLL_SECONDS = 0.1
KNOWN_NOTES = 100
LOST_LITERALS = 200
SLICE_CHARACTERS = 1_000
LONGEST_ERROR = 500
LEAST_LIMIT_TOKENS = 32
"""Notes of a source of a few words may be longer than it, with their date and speaker."""


StepName: TypeAlias = Literal["observe", "reflect", "facts"]


class Source(NamedTuple):
    """What a segment is made from: its range, the texts its maker read, the most it may take."""

    first_seq: int
    last_seq: int
    limit_tokens: int
    texts: tuple[str, ...]
    sum_tokens: int
    message_tokens: int


class Outcome(Enum):
    """What a step came to: done, nothing due, due later, or being done by another process."""

    PROGRESS = "progress"
    IDLE = "idle"
    WAIT = "wait"
    LEASED = "leased"


class Step(NamedTuple):
    """The outcome of a step, and how many seconds until another look makes sense."""

    outcome: Outcome
    wait_seconds: float = 0.0


IDLE = Step(Outcome.IDLE)
PROGRESS = Step(Outcome.PROGRESS)
_NOTHING_DONE = (Outcome.IDLE, Outcome.WAIT)


@dataclass(frozen=True, slots=True, kw_only=True)
class Reconciler:
    """Does the next thing that is due for a conversation. Holds no state of its own.

    `owner` names this process for leases of `lease_seconds`, which are prolonged while a step
    runs; `jitter` gives numbers in 0..1. `live_prompt` knows the newest prompt of a conversation.
    """

    store: Store
    policy: Policy
    observer: Observer
    reflector: Reflector
    clock: Clock
    count_text: CountTokens
    owner: str
    lease_seconds: float
    extractor: FactExtractor = field(default_factory=ExtractiveFacts)
    hooks: Hooks = NO_HOOKS
    live_prompt: Callable[[ConversationRef], LivePrompt | None] = lambda _: None
    jitter: Callable[[], float] = random.random

    async def step(self, ref: ConversationRef, *, everything: bool = False) -> Step:
        """Look once and do at most one thing; *everything* does also what is not due yet."""
        if not self.policy.enabled:
            return IDLE
        # Not `tail_tokens`: the newest `keep_last` messages may have more, and stay raw.
        snapshot = await self.store.snapshot(ref, tail_tokens=self.policy.context_tokens)
        if snapshot is None:
            return IDLE
        now = self.clock.now()
        if await self.activate_if_due(snapshot, now=now):
            return PROGRESS
        steps = [await self._observing(snapshot, now, everything=everything)]
        if steps[-1].outcome in _NOTHING_DONE:
            snapshot = await self._reread(snapshot, steps[-1])
            steps.append(await self._reflecting(snapshot, now))
        if steps[-1].outcome in _NOTHING_DONE:
            snapshot = await self._reread(snapshot, steps[-1])
            steps.append(await self._remembering(snapshot, now, everything=everything))
        return steps[-1] if steps[-1].outcome not in _NOTHING_DONE else _soonest(steps)

    async def _reread(self, snapshot: Snapshot, step: Step) -> Snapshot:
        """The snapshot after a step that may just have failed."""
        if step.outcome is not Outcome.WAIT:
            return snapshot
        tail_tokens = self.policy.tail_tokens
        return await self.store.snapshot(snapshot.state.ref, tail_tokens=tail_tokens) or snapshot

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
            return self._until_next_try(state, state.observe_failure, now)
        messages = await self._slice(state, everything=everything)
        if not messages:
            return IDLE
        return await self._leased("observe", state, lambda: self._observe(snapshot, messages))

    async def _reflecting(self, snapshot: Snapshot, now: datetime) -> Step:
        state = snapshot.state
        sources = reflection_sources(self.policy, state, snapshot.segments, now=now)
        if not sources:
            return IDLE
        if later_steps_wait(state, now=now):
            return self._until_next_try(state, state.observe_failure, now)
        if not may_try(self.policy, state, state.reflect_failure, now=now):
            return self._until_next_try(state, state.reflect_failure, now)
        return await self._leased("reflect", state, lambda: self._reflect(snapshot, sources))

    async def _remembering(self, snapshot: Snapshot, now: datetime, *, everything: bool) -> Step:
        state = snapshot.state
        end = facts_end(self.policy, state, everything=everything)
        if end is None:
            return IDLE
        if later_steps_wait(state, now=now):
            return self._until_next_try(state, state.observe_failure, now)
        if not may_try(self.policy, state, state.facts_failure, now=now):
            return self._until_next_try(state, state.facts_failure, now)
        remembering = Remembering(
            store=self.store, policy=self.policy, extractor=self.extractor, clock=self.clock
        )
        return await self._leased("facts", state, lambda: remembering.remember(snapshot, end))

    def _until_next_try(self, state: MemoryState, failure: Failure | None, now: datetime) -> Step:
        if failure is None or is_latched(self.policy, state, failure):
            return IDLE
        return Step(Outcome.WAIT, (failure.next_attempt_at - now).total_seconds())

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
        if not await self._lease(state):
            return Step(Outcome.LEASED, LEASE_POLL_SECONDS)
        prolonging = asyncio.create_task(self._prolong(state), name="remanence-lease")
        try:
            if not await self._is_still_due(state):
                return PROGRESS
            with telemetry.step_span(name, state.ref.id):
                if not await work():
                    telemetry.step_discarded(name, state.ref.id)
            return PROGRESS
        except StoreError:
            raise
        except TimeoutError:
            seconds = self.policy.observe_timeout_seconds
            return await self._failed(name, state, "timeout", f"no answer within {seconds:g} s")
        except ObservationSkipped as skip:
            return await self._skipped(name, state, skip)
        except ObservationRejected as error:
            return await self._failed(name, state, error.reason, str(error))
        except ModelError as error:
            asked_seconds = error.retry_after_seconds or 0.0
            return await self._failed(
                name, state, error.reason, str(error), asked_seconds=asked_seconds
            )
        except Exception as error:  # noqa: BLE001 - an observer may raise anything
            return await self._failed(name, state, "error", f"{type(error).__name__}: {error}")
        finally:
            prolonging.cancel()
            await asyncio.wait({prolonging})
            await self.store.release(state, owner=self.owner)

    async def _lease(self, state: MemoryState) -> bool:
        now = self.clock.now()
        until = now + timedelta(seconds=self.lease_seconds)
        return await self.store.lease(state, owner=self.owner, now=now, until=until)

    async def _is_still_due(self, state: MemoryState) -> bool:
        """Whether nobody did the work between the look that found it and the lease."""
        current = await self.store.state(state.ref)
        return current is not None and (
            current.key,
            current.observed_seq,
            current.reflected_seq,
            current.facts_seq,
        ) == (
            state.key,
            state.observed_seq,
            state.reflected_seq,
            state.facts_seq,
        )

    async def _prolong(self, state: MemoryState) -> None:
        """Keep the lease while a step runs; after a crash it soon ends by itself."""
        while True:
            await asyncio.sleep(self.lease_seconds / 3)
            try:
                await self._lease(state)
            except StoreError as error:
                telemetry.lease_not_prolonged(state.ref.id, str(error))

    async def _failed(
        self,
        name: StepName,
        state: MemoryState,
        reason: str,
        message: str,
        *,
        asked_seconds: float = 0.0,
    ) -> Step:
        before = _failure(state, name)
        failures = (before.failures if before else 0) + 1
        now = self.clock.now()
        delay = retry_delay(
            self.policy, failures, jitter=self.jitter(), reason=reason, asked_seconds=asked_seconds
        )
        failure = Failure(
            step=name,
            reason=reason,
            message=message[:LONGEST_ERROR],
            at=now,
            next_attempt_at=now + delay,
            failures=failures,
            last_seq=state.last_seq,
        )
        await self.store.record_failure(state, failure)
        telemetry.step_failed(name, state.ref.id, reason, message, failures)
        return Step(Outcome.WAIT, delay.total_seconds())

    async def _skipped(self, name: StepName, state: MemoryState, skip: ObservationSkipped) -> Step:
        before = state.observe_failure if name == "observe" else state.reflect_failure
        skips = (before.skips if before else 0) + 1
        now = self.clock.now()
        again_at = skip.until or now + retry_delay(self.policy, skips, jitter=self.jitter())
        skipped = Failure(
            step=name,
            reason=skip.reason,
            message=str(skip)[:LONGEST_ERROR],
            at=now,
            next_attempt_at=again_at,
            failures=0,
            last_seq=state.last_seq,
            skips=skips,
        )
        await self.store.record_failure(state, skipped)
        telemetry.step_skipped(name, state.ref.id, skip.reason, str(skip))
        return Step(Outcome.WAIT, (again_at - now).total_seconds())

    async def _observe(self, snapshot: Snapshot, messages: tuple[Message, ...]) -> bool:
        """Make and commit an observation; false if another was first."""
        state = snapshot.state
        source_tokens = sum(message.tokens for message in messages)
        seen = await seen_messages(messages)
        request = ObserveRequest(
            conversation=state.ref,
            messages=seen,
            known=_known(snapshot.segments),
            target_tokens=observation_target(self.policy, source_tokens),
            count_tokens=self.count_text,
            note_format=self.policy.note_format,
            now=self.clock.now(),
            user=state.user,
            live=self.live_prompt(state.ref),
        )
        async with asyncio.timeout(self.policy.observe_timeout_seconds):
            request, draft = await observed(self.observer, request, self.hooks)
        segment = await self._segment(
            draft,
            generation=0,
            source=Source(
                first_seq=messages[0].seq,
                last_seq=messages[-1].seq,
                limit_tokens=max(source_tokens, LEAST_LIMIT_TOKENS),
                texts=tuple(message.full_text for message in request.messages),
                sum_tokens=state.observed_sum_tokens + source_tokens,
                message_tokens=source_tokens,
            ),
        )
        return self._committed(state, segment, await self.store.commit_observation(state, segment))

    async def adopt(self, state: MemoryState, draft: Draft, *, last_seq: int) -> bool:
        """Commit notes that were made elsewhere of the messages after `observed_seq`.

        Raises:
            ObservationRejected: they are larger than their source, or unfit otherwise.
        """
        messages = await self.store.messages(
            state.ref, after=state.observed_seq, limit=last_seq - state.observed_seq
        )
        source_tokens = sum(message.tokens for message in messages)
        segment = await self._segment(
            draft,
            generation=0,
            source=Source(
                first_seq=state.observed_seq + 1,
                last_seq=last_seq,
                limit_tokens=max(source_tokens, LEAST_LIMIT_TOKENS),
                texts=tuple(message.full_text for message in await seen_messages(messages)),
                sum_tokens=state.observed_sum_tokens + source_tokens,
                message_tokens=source_tokens,
            ),
        )
        return self._committed(state, segment, await self.store.commit_observation(state, segment))

    async def _reflect(self, snapshot: Snapshot, sources: tuple[Segment, ...]) -> bool:
        """Make and commit a reflection; false if its sources were replaced meanwhile."""
        state = snapshot.state
        generation = reflection_generation(self.policy, sources)
        request = ReflectRequest(
            conversation=state.ref,
            segments=sources,
            generation=generation,
            target_tokens=reflection_target(self.policy, sources),
            count_tokens=self.count_text,
            note_format=self.policy.note_format,
            now=self.clock.now(),
            user=state.user,
        )
        async with asyncio.timeout(self.policy.observe_timeout_seconds):
            request, draft = await reflected(self.reflector, request, self.hooks)
        segment = await self._segment(
            draft,
            generation=generation,
            source=Source(
                first_seq=sources[0].first_seq,
                last_seq=sources[-1].last_seq,
                limit_tokens=reflection_limit(self.policy, sources),
                texts=tuple(segment.text for segment in request.segments),
                sum_tokens=sources[-1].sum_tokens,
                message_tokens=sum(segment.source_tokens for segment in sources),
            ),
        )
        replaced = [segment.id for segment in sources]
        purge = self.policy.superseded == "purge"
        committed = await self.store.commit_reflection(state, segment, replaced, purge=purge)
        return self._committed(state, segment, committed)

    async def _segment(self, draft: Draft, *, generation: int, source: Source) -> Segment:
        pacer = Pacer()
        text = render_notes(draft.notes, self.policy.note_format)
        await pacer.pause()
        tokens = self.count_text(text)
        await pacer.pause()
        check_draft(
            draft,
            text,
            tokens=tokens,
            limit_tokens=source.limit_tokens,
            source_text="\n".join(source.texts),
        )
        return Segment(
            id=self.clock.new_id("obs" if generation == 0 else "ref"),
            generation=generation,
            first_seq=source.first_seq,
            last_seq=source.last_seq,
            text=text,
            notes=draft.notes,
            tokens=tokens,
            source_tokens=source.message_tokens,
            sum_tokens=source.sum_tokens,
            lost=await _lost(source.texts, text),
            made_by=draft.made_by,
            created_at=self.clock.now(),
        )

    def _committed(
        self, state: MemoryState, segment: Segment, committed: MemoryState | None
    ) -> bool:
        if committed is None:
            return False
        telemetry.segment_committed(
            segment.generation, state.ref.id, segment.first_seq, segment.last_seq
        )
        return True


def _soonest(steps: Sequence[Step]) -> Step:
    """Of steps that did nothing, the one that is due first."""
    waiting = [step for step in steps if step.outcome is Outcome.WAIT]
    return min(waiting, key=lambda step: step.wait_seconds, default=IDLE)


def _failure(state: MemoryState, name: StepName) -> Failure | None:
    match name:
        case "observe":
            return state.observe_failure
        case "reflect":
            return state.reflect_failure
        case "facts":
            return state.facts_failure


async def _lost(texts: tuple[str, ...], note_text: str) -> tuple[str, ...]:
    """The loss report, made in slices so that the event loop goes on."""
    report = LossReport(note_text)
    pacer = Pacer()
    for text in texts:
        for start in range(0, len(text), SLICE_CHARACTERS):
            await pacer.pause()
            report.add(text[start : start + SLICE_CHARACTERS])
    await pacer.pause()
    return report.lost(limit=LOST_LITERALS)


def _known(segments: tuple[Segment, ...]) -> tuple[Note, ...]:
    notes = [note for segment in segments for note in segment.notes]
    return tuple(notes[-KNOWN_NOTES:])
