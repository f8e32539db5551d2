"""Segments and their commits: observations of messages, reflections of segments."""

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import NamedTuple

from remanence import telemetry
from remanence.clock import Clock
from remanence.engine.hooks import Hooks, observe, prepare, reflect
from remanence.notes import render_notes
from remanence.notes.excerpts import parts
from remanence.notes.literals import LossReport
from remanence.observers.draft_check import check_draft
from remanence.observers.extractive import ExtractiveObserver
from remanence.observers.observable import observable_messages
from remanence.pacing import Pacer
from remanence.policy.policy import Policy
from remanence.policy.schedule import (
    observation_target,
    reflection_generation,
    reflection_limit,
    reflection_target,
)
from remanence.protocols import (
    CountTokens,
    LivePrompt,
    Observer,
    ObserveRequest,
    Reflector,
    ReflectRequest,
    Store,
)
from remanence.types import (
    STAND_IN,
    Draft,
    FailedStretch,
    MemoryState,
    Message,
    Note,
    Segment,
    Snapshot,
)

KNOWN_NOTES = 100
LOST_LITERALS = 200
SLICE_CHARACTERS = 1_000
MIN_LIMIT_TOKENS = 32
"""Minimum size limit of notes: with date and speaker they may exceed a source of a few words."""


def source_limit(observer: object) -> int | None:
    """Return the `max_source_tokens` of an observer; None if it has none."""
    limit = getattr(observer, "max_source_tokens", None)
    return limit if isinstance(limit, int) else None


class Source(NamedTuple):
    """The source of a segment: its range, the texts its maker read, and its size limit."""

    first_seq: int
    last_seq: int
    limit_tokens: int
    texts: tuple[str, ...]
    sum_tokens: int
    message_tokens: int


@dataclass(frozen=True, slots=True, kw_only=True)
class SegmentWriter:
    """Calls observer and reflector, checks their drafts and commits them. Stateless."""

    store: Store
    policy: Policy
    observer: Observer
    reflector: Reflector
    clock: Clock
    count_text: CountTokens
    hooks: Hooks
    live_prompt: Callable[[MemoryState], LivePrompt | None]

    async def observe(self, snapshot: Snapshot, messages: tuple[Message, ...]) -> bool:
        """Make and commit an observation; false if another was first."""
        state = snapshot.state
        draft, seen = await self._draft(state, messages, known=_known_notes(snapshot.segments))
        return await self._commit_notes(state, draft, messages, seen=seen)

    async def observe_again(self, snapshot: Snapshot, failed: Segment) -> bool:
        """Observe the range of a segment again, and replace it; false if that is gone."""
        state = snapshot.state
        messages = await self.store.messages(
            state.ref, after=failed.first_seq - 1, limit=failed.last_seq - failed.first_seq + 1
        )
        before = tuple(s for s in snapshot.segments if s.last_seq < failed.first_seq)
        draft, seen = await self._draft(state, messages, known=_known_notes(before))
        sum_tokens = failed.sum_tokens - failed.source_tokens
        segment = await self._observation(draft, messages, seen=seen, sum_tokens=sum_tokens)
        segment = replace(segment, generation=failed.generation)
        committed = await self.store.replace_observation(state, segment, failed.id)
        return self._report_commit(state, segment, committed)

    @property
    def is_embedded(self) -> bool:
        """True if the configured observer is the embedded one."""
        return isinstance(self.observer, ExtractiveObserver)

    async def take_over(self, state: MemoryState, messages: Sequence[Message]) -> bool:
        """Commit an observation by the embedded observer; false if another was first."""
        segment = await self.stand_in(state, messages)
        return self._report_commit(
            state, segment, await self.store.commit_observation(state, segment)
        )

    async def keep(self, state: MemoryState, stand_in: Segment) -> bool:
        """Keep notes that stand in, since the configured observer refuses their messages."""
        made_by = stand_in.made_by.removeprefix(STAND_IN)
        kept = replace(stand_in, id=self.clock.new_id("obs"), made_by=made_by)
        committed = await self.store.replace_observation(state, kept, stand_in.id)
        return self._report_commit(state, kept, committed)

    async def stand_in(
        self, state: MemoryState, messages: Sequence[Message], *, generation: int = 0
    ) -> Segment:
        """Return notes of *messages* that the embedded observer made, not committed yet.

        `made_by` marks them if another observer is to make them again.
        """
        embedded = replace(self, observer=ExtractiveObserver())
        draft, seen = await embedded._draft(state, messages, known=())
        if seen and not self.is_embedded:
            draft = replace(draft, made_by=f"{STAND_IN}{draft.made_by}")
        segment = await self._observation(draft, messages, seen=seen, sum_tokens=0)
        return replace(segment, generation=generation)

    async def leave_out(
        self, state: MemoryState, messages: Sequence[Message], why: FailedStretch, *, observer: str
    ) -> bool:
        """Commit an observation without notes of messages that every try failed on."""
        source_tokens = sum(message.tokens for message in messages)
        segment = Segment(
            id=self.clock.new_id("obs"),
            generation=0,
            first_seq=why.first_seq,
            last_seq=why.last_seq,
            text="",
            notes=(),
            tokens=0,
            source_tokens=source_tokens,
            sum_tokens=state.observed_sum_tokens + source_tokens,
            lost=(),
            made_by=observer,
            created_at=self.clock.now(),
            failed=(why,),
        )
        return self._report_commit(
            state, segment, await self.store.commit_observation(state, segment)
        )

    async def _draft(
        self, state: MemoryState, messages: Sequence[Message], *, known: tuple[Note, ...]
    ) -> tuple[Draft, Sequence[Message]]:
        """Return the observer's notes of *messages*, and the part of them that it was shown."""
        request = await self._request(state, messages, known=known)
        async with asyncio.timeout(self.policy.observe_timeout_seconds):
            request, draft = await observe(self.observer, request, self.hooks)
        return draft, request.messages

    async def visible(self, state: MemoryState, messages: Sequence[Message]) -> Sequence[Message]:
        """Return the part of *messages* that the hooks let a model see.

        Raises:
            ObservationSkipped: a hook vetoed.
        """
        request = await self._request(state, messages, known=())
        return (await prepare(request, self.hooks)).messages if request.messages else ()

    async def _request(
        self, state: MemoryState, messages: Sequence[Message], *, known: tuple[Note, ...]
    ) -> ObserveRequest:
        source_tokens = sum(message.tokens for message in messages)
        return ObserveRequest(
            conversation=state.ref,
            messages=await observable_messages(messages),
            known=known,
            target_tokens=observation_target(self.policy, source_tokens),
            count_tokens=self.count_text,
            note_format=self.policy.note_format,
            now=self.clock.now(),
            user=state.user,
            live=self.live_prompt(state),
        )

    async def adopt(
        self, state: MemoryState, draft: Draft, *, last_seq: int, created_at: datetime
    ) -> bool:
        """Commit notes of the messages after `observed_seq` that were made elsewhere at *created_at*.

        Raises:
            ObservationRejected: they are larger than their source, or unfit otherwise.
        """
        messages = await self.store.messages(
            state.ref, after=state.observed_seq, limit=last_seq - state.observed_seq
        )
        seen = await observable_messages(messages)
        return await self._commit_notes(state, draft, messages, seen=seen, created_at=created_at)

    async def _commit_notes(
        self,
        state: MemoryState,
        draft: Draft,
        messages: Sequence[Message],
        *,
        seen: Sequence[Message],
        created_at: datetime | None = None,
    ) -> bool:
        """Commit the notes of *messages*, whose maker read *seen*; false if another was first."""
        sum_tokens = state.observed_sum_tokens
        segment = await self._observation(
            draft, messages, seen=seen, sum_tokens=sum_tokens, created_at=created_at
        )
        return self._report_commit(
            state, segment, await self.store.commit_observation(state, segment)
        )

    async def _observation(
        self,
        draft: Draft,
        messages: Sequence[Message],
        *,
        seen: Sequence[Message],
        sum_tokens: int,
        created_at: datetime | None = None,
    ) -> Segment:
        """Return the segment of *draft*; *sum_tokens* counts the tape before it."""
        source_tokens = sum(message.tokens for message in messages)
        return await self._segment(
            draft,
            generation=0,
            created_at=created_at,
            source=Source(
                first_seq=messages[0].seq,
                last_seq=messages[-1].seq,
                limit_tokens=max(
                    source_tokens,
                    MIN_LIMIT_TOKENS,
                    observation_target(self.policy, source_tokens),
                ),
                texts=tuple(message.full_text for message in seen),
                sum_tokens=sum_tokens + source_tokens,
                message_tokens=source_tokens,
            ),
        )

    async def reflect(
        self, snapshot: Snapshot, sources: tuple[Segment, ...], *, final: bool = False
    ) -> bool:
        """Make and commit a reflection; false if its sources were replaced meanwhile."""
        state = snapshot.state
        generation = reflection_generation(self.policy, sources)
        request = ReflectRequest(
            conversation=state.ref,
            segments=sources,
            generation=generation,
            target_tokens=reflection_target(self.policy, sources, final=final),
            count_tokens=self.count_text,
            note_format=self.policy.note_format,
            now=self.clock.now(),
            user=state.user,
        )
        async with asyncio.timeout(self.policy.observe_timeout_seconds):
            request, draft = await reflect(self.reflector, request, self.hooks)
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
        failed = tuple(stretch for source in sources for stretch in source.failed)
        segment = replace(segment, failed=failed)
        replaced = [segment.id for segment in sources]
        purge = self.policy.superseded == "purge"
        committed = await self.store.commit_reflection(state, segment, replaced, purge=purge)
        return self._report_commit(state, segment, committed)

    async def _segment(
        self, draft: Draft, *, generation: int, source: Source, created_at: datetime | None = None
    ) -> Segment:
        pacer = Pacer()
        text = render_notes(draft.notes, self.policy.note_format)
        await pacer.pause()
        tokens = self.count_text(text)
        await pacer.pause()
        # Comparing with a long source takes a while and must not block the event loop.
        await asyncio.to_thread(
            check_draft,
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
            lost=await _loss_report(source.texts, text),
            made_by=draft.made_by,
            created_at=created_at or self.clock.now(),
            dropped=draft.dropped,
        )

    def _report_commit(
        self, state: MemoryState, segment: Segment, committed: MemoryState | None
    ) -> bool:
        if committed is None:
            return False
        telemetry.segment_committed(
            segment.generation, state.ref.id, segment.first_seq, segment.last_seq
        )
        return True


async def _loss_report(texts: tuple[str, ...], note_text: str) -> tuple[str, ...]:
    """Return the loss report, made in slices so as not to block the event loop."""
    report = LossReport(note_text)
    pacer = Pacer()
    for text in texts:
        for part in parts(text, SLICE_CHARACTERS):
            await pacer.pause()
            report.add(part)
    await pacer.pause()
    return report.missing_literals(limit=LOST_LITERALS)


def _known_notes(segments: tuple[Segment, ...]) -> tuple[Note, ...]:
    notes = [note for segment in segments for note in segment.notes]
    return tuple(notes[-KNOWN_NOTES:])
