"""Writing of segments: observations of messages, reflections of segments."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime

from remanence import telemetry
from remanence.background import guard_host_code, part_of_parent
from remanence.clock import Clock
from remanence.dates.local_time import in_zone, zone_of
from remanence.deadline import step_timeout
from remanence.engine.hooks import Hooks, observe, prepare, reflect
from remanence.notes import render_notes
from remanence.notes.excerpts import both_ends, parts
from remanence.notes.literals import MAX_SCANNED, LossReport
from remanence.notes.redact import redact
from remanence.observers.draft_check import check_dates, check_draft, check_values
from remanence.observers.extractive import ExtractiveObserver
from remanence.observers.observable import observable_messages
from remanence.pacing import Pacer
from remanence.policy.policy import Policy
from remanence.policy.schedule import (
    observation_target,
    plan_reflection,
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
from remanence.recent import Recent
from remanence.types import (
    STAND_IN,
    ConversationRef,
    Draft,
    FailedStretch,
    MemoryState,
    Message,
    Note,
    Segment,
    Snapshot,
    TapeVersion,
)

KNOWN_NOTES = 100
ZONE_MESSAGES, ZONE_STEP = 200, 20
"""How many earlier messages are searched for the user's time zone, and how many are read at once."""
LOST_LITERALS = 5_000
"""Literals of a loss report; of more, a last entry says how many others there are."""
LIVE_PROMPTS = 256
SLICE_CHARACTERS = 1_000
OVERLAP = 40
"""Characters before a slice of a text of which the whole words are read again."""
MIN_LIMIT_TOKENS = 32
"""The smallest size limit of notes, which may exceed a short source by their date and speaker."""


def source_limit(observer: object) -> int | None:
    """Return the `max_source_tokens` of an observer, if it has one."""
    limit = getattr(observer, "max_source_tokens", None)
    return limit if isinstance(limit, int) else None


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
    live_prompts: Recent[ConversationRef, tuple[TapeVersion, LivePrompt]] = field(
        default_factory=lambda: Recent(LIVE_PROMPTS)
    )
    """The newest prompts of this process, for observers that continue them."""

    @property
    def is_embedded(self) -> bool:
        """True if the configured observer is the embedded one."""
        return isinstance(self.observer, ExtractiveObserver)

    async def observe(
        self, snapshot: Snapshot, *slices: tuple[Message, ...], parallel: int = 1
    ) -> bool:
        """Observe adjacent slices, and commit them together, in order up to the first failure.

        Of those that are observed in *parallel*, the observer of one does not see the notes of the
        others. Returns false if another process committed the first slice before.

        Raises:
            Exception: the error of the first slice, if it failed.
        """
        state, made = snapshot.state, list[Segment]()
        for start in range(0, len(slices), parallel):
            earlier = (*snapshot.segments, *made)
            async with asyncio.TaskGroup() as group:
                tasks = [
                    group.create_task(self._try_to_observe(state, messages, earlier))
                    for messages in slices[start : start + parallel]
                ]
            for task in tasks:
                if not isinstance(one := task.result(), Exception):
                    made.append(one)
                elif made:
                    return await self._commit_all(state, made)
                else:
                    raise one
        return await self._commit_all(state, made)

    async def _commit_all(self, state: MemoryState, made: Sequence[Segment]) -> bool:
        """Commit adjacent observations up to the first that another process was faster with."""
        for number, segment in enumerate(made):
            committed = await self.store.commit_observation(state, segment)
            if committed is None:
                return number > 0
            telemetry.segment_committed(state.ref.id, segment)
            state = committed
        return bool(made)

    async def _try_to_observe(
        self, state: MemoryState, messages: tuple[Message, ...], earlier: Sequence[Segment]
    ) -> Segment | Exception:
        """Return an uncommitted observation, or the error of making it."""
        try:
            with part_of_parent():
                return await self._observe(state, messages, earlier)
        except Exception as error:  # noqa: BLE001 - an observer may raise anything
            return error

    async def reobserve(self, snapshot: Snapshot, failed: Segment) -> bool:
        """Observe the range of a segment again, and replace the segment; false if it is gone."""
        state = snapshot.state
        messages = await self.store.messages(
            state.ref, after=failed.first_seq - 1, limit=failed.last_seq - failed.first_seq + 1
        )
        earlier = [s for s in snapshot.segments if s.last_seq < failed.first_seq]
        made = await self._observe(state, messages, earlier, generation=failed.generation)
        return await self._replace(state, failed, made)

    async def _observe(
        self,
        state: MemoryState,
        messages: Sequence[Message],
        earlier: Sequence[Segment],
        *,
        generation: int = 0,
    ) -> Segment:
        """Return an uncommitted observation; whatever the observer raises is an `Exception`."""
        with guard_host_code():
            empty = self.without_notes(messages, generation=generation)
            draft, seen = await self._draft(state, messages, earlier)
            return await self._observation(empty, draft, seen)

    async def commit_stand_in(self, state: MemoryState, messages: Sequence[Message]) -> bool:
        """Commit an observation by the embedded observer; false if another process was first."""
        return await self._commit(state, await self.stand_in(state, messages))

    async def keep_stand_in(self, state: MemoryState, stand_in: Segment) -> bool:
        """Make stand-in notes permanent, as the configured observer refuses their messages."""
        made_by = stand_in.made_by.removeprefix(STAND_IN)
        kept = replace(stand_in, id=self.clock.new_id("obs"), made_by=made_by)
        return await self._replace(state, stand_in, kept)

    async def stand_in(
        self, state: MemoryState, messages: Sequence[Message], *, generation: int = 0
    ) -> Segment:
        """Return an uncommitted observation of *messages* by the embedded observer.

        Its `made_by` marks it as a stand-in if another observer is configured.
        """
        embedded = replace(self, observer=ExtractiveObserver())
        draft, seen = await embedded._draft(state, messages)
        if seen and not self.is_embedded:
            draft = replace(draft, made_by=f"{STAND_IN}{draft.made_by}")
        empty = self.without_notes(messages, generation=generation)
        return await self._observation(empty, draft, seen)

    async def commit_failed(
        self, state: MemoryState, messages: Sequence[Message], why: FailedStretch, *, observer: str
    ) -> bool:
        """Commit an observation without notes, for messages that were given up."""
        empty = self.without_notes(messages)
        return await self._commit(state, replace(empty, made_by=observer, failed=(why,)))

    async def adopt(
        self, state: MemoryState, messages: Sequence[Message], draft: Draft, *, created_at: datetime
    ) -> bool:
        """Commit notes of *messages* that were made elsewhere, at *created_at*.

        Raises:
            ObservationRejected: the notes are larger than their source, or unusable otherwise.
        """
        empty = replace(self.without_notes(messages), created_at=created_at)
        seen = await observable_messages(messages)
        return await self._commit(state, await self._observation(empty, draft, seen))

    async def visible(self, state: MemoryState, messages: Sequence[Message]) -> Sequence[Message]:
        """Return the part of *messages* that the hooks allow a model to see.

        Raises:
            ObservationSkipped: a hook vetoed.
        """
        request = await self._request(state, messages)
        return (await prepare(request, self.hooks)).messages if request.messages else ()

    async def reflect(
        self, snapshot: Snapshot, sources: tuple[Segment, ...], *, final: bool = False
    ) -> bool:
        """Make and commit a reflection; false if its sources have been replaced meanwhile."""
        state = snapshot.state
        plan = plan_reflection(self.policy, sources, final=final)
        request = ReflectRequest(
            conversation=state.ref,
            segments=sources,
            generation=plan.generation,
            target_tokens=plan.target_tokens,
            count_tokens=self.count_text,
            note_format=self.policy.note_format,
            now=self.clock.now(),
            user=state.user,
        )
        async with step_timeout(self.policy.observe_timeout_seconds):
            request, draft = await reflect(self.reflector, request, self.hooks)
        tokens = sum(segment.source_tokens for segment in sources)
        empty = self._empty(sources[0].first_seq, sources[-1].last_seq, tokens, plan.generation)
        failed = tuple(stretch for source in sources for stretch in source.failed)
        segment = await self._with_notes(
            replace(empty, failed=failed),
            draft,
            texts=tuple(segment.text for segment in request.segments),
            limit_tokens=plan.limit_tokens,
        )
        replaced = [segment.id for segment in sources]
        purge = self.policy.superseded == "purge"
        committed = await self.store.commit_reflection(state, segment, replaced, purge=purge)
        return _report(state, segment, committed)

    def without_notes(self, messages: Sequence[Message], *, generation: int = 0) -> Segment:
        """Return a segment of *messages* without notes."""
        tokens = sum(message.tokens for message in messages)
        return self._empty(messages[0].seq, messages[-1].seq, tokens, generation)

    def _empty(self, first_seq: int, last_seq: int, tokens: int, generation: int) -> Segment:
        return Segment(
            id=self.clock.new_id("ref" if generation else "obs"),
            generation=generation,
            first_seq=first_seq,
            last_seq=last_seq,
            text="",
            notes=(),
            tokens=0,
            source_tokens=tokens,
            sum_tokens=0,  # counted by the store
            lost=(),
            made_by="",
            created_at=self.clock.now(),
        )

    async def _draft(
        self, state: MemoryState, messages: Sequence[Message], earlier: Sequence[Segment] = ()
    ) -> tuple[Draft, Sequence[Message]]:
        """Return the observer's draft for *messages*, and the messages that it was shown."""
        request = await self._request(state, messages, earlier)
        async with step_timeout(self.policy.observe_timeout_seconds):
            request, draft = await observe(self.observer, request, self.hooks)
        return draft, request.messages

    async def _request(
        self, state: MemoryState, messages: Sequence[Message], earlier: Sequence[Segment] = ()
    ) -> ObserveRequest:
        source_tokens = sum(message.tokens for message in messages)
        noted_tokens = sum(segment.source_tokens for segment in earlier)
        return ObserveRequest(
            conversation=state.ref,
            messages=await observable_messages(await self._in_users_zone(state, messages)),
            known=_known_notes(earlier),
            target_tokens=observation_target(self.policy, source_tokens, noted_tokens),
            count_tokens=self.count_text,
            note_format=self.policy.note_format,
            now=self.clock.now(),
            user=state.user,
            live=self._live_prompt(state),
        )

    def _live_prompt(self, state: MemoryState) -> LivePrompt | None:
        """Return the newest prompt, unless something was forgotten or the tape deleted since."""
        version, prompt = self.live_prompts.get(state.ref, (None, None))
        return prompt if version == state.tape_version else None

    async def _in_users_zone(
        self, state: MemoryState, messages: Sequence[Message]
    ) -> Sequence[Message]:
        """Return the messages with times in the user's zone, taken from a recent user message.

        A long run of tool calls may be observed without any message of the user.
        """
        if any(message.role == "user" for message in messages):
            return messages
        first_seq = messages[0].seq if messages else 1
        for end in range(first_seq - 1, max(0, first_seq - 1 - ZONE_MESSAGES), -ZONE_STEP):
            earlier = await self.store.messages(
                state.ref, after=max(0, end - ZONE_STEP), limit=min(end, ZONE_STEP)
            )
            said = [m.created_at for m in earlier if m.role == "user" and m.created_at]
            if said:
                return in_zone(messages, zone_of(said[-1]))
        return messages

    async def _observation(self, empty: Segment, draft: Draft, seen: Sequence[Message]) -> Segment:
        """Return a segment with the notes of *draft*, which was made from *seen*.

        Its text shows a note without a time as it came; for recall it has that of its first message.
        """
        target = observation_target(self.policy, empty.source_tokens)
        segment = await self._with_notes(
            empty,
            draft,
            texts=tuple(message.full_text for message in seen),
            limit_tokens=max(empty.source_tokens, MIN_LIMIT_TOKENS, target),
        )
        check_dates(draft)
        times = {message.seq: message.created_at for message in seen}
        dated = (
            replace(note, observed_at=note.observed_at or times.get(note.first_seq))
            for note in segment.notes
        )
        return replace(segment, notes=tuple(dated))

    async def _with_notes(
        self, empty: Segment, draft: Draft, *, texts: tuple[str, ...], limit_tokens: int
    ) -> Segment:
        """Return a segment with the notes of *draft*, checked against its source."""
        check_values(draft)
        draft = await asyncio.to_thread(_without_secrets, draft)
        pacer = Pacer()
        text = render_notes(draft.notes, self.policy.note_format)
        await pacer.pause()
        tokens = self.count_text(text)
        await pacer.pause()
        # Comparing with a long source takes a while, and would block the event loop.
        await asyncio.to_thread(
            check_draft,
            draft,
            text,
            seqs=range(empty.first_seq, empty.last_seq + 1),
            tokens=tokens,
            limit_tokens=limit_tokens,
            source_text="\n".join(texts),
        )
        return replace(
            empty,
            text=text,
            notes=draft.notes,
            tokens=tokens,
            lost=await _loss_report(texts, text),
            made_by=draft.made_by,
            dropped=draft.dropped,
        )

    async def _commit(self, state: MemoryState, segment: Segment) -> bool:
        return _report(state, segment, await self.store.commit_observation(state, segment))

    async def _replace(self, state: MemoryState, old: Segment, new: Segment) -> bool:
        return _report(state, new, await self.store.replace_observation(state, new, old.id))


def _without_secrets(draft: Draft) -> Draft:
    """Redact a draft, as an observer of one's own may have read more than it was sent."""
    dropped = (
        replace(line, text=redact(line.text), detail=redact(line.detail)) for line in draft.dropped
    )
    return replace(draft, notes=tuple(map(_redact_note, draft.notes)), dropped=tuple(dropped))


def _redact_note(note: Note) -> Note:
    speaker, topic, was = (
        text and redact(text) for text in (note.speaker, note.topic, note.supersedes)
    )
    return replace(note, text=redact(note.text), speaker=speaker, topic=topic, supersedes=was)


def _report(state: MemoryState, segment: Segment, committed: MemoryState | None) -> bool:
    if committed is not None:
        telemetry.segment_committed(state.ref.id, segment)
    return committed is not None


async def _loss_report(texts: tuple[str, ...], note_text: str) -> tuple[str, ...]:
    """Return the loss report; computed in slices, without blocking the event loop."""
    report = LossReport(note_text)
    pacer = Pacer()
    for text in texts:
        before = ""
        for part in parts(both_ends(text, MAX_SCANNED), SLICE_CHARACTERS):
            await pacer.pause()
            report.add(before + part)  # a name that a part begins with need not open a sentence
            before = part[-OVERLAP:].partition(" ")[2]
    await pacer.pause()
    missing = [literal.text for literal in report.missing()]
    if (others := len(missing) - LOST_LITERALS) > 0:
        missing[LOST_LITERALS:] = [f"… and {others:,} others"]
    return tuple(missing)


def _known_notes(segments: Sequence[Segment]) -> tuple[Note, ...]:
    notes = [note for segment in segments for note in segment.notes]
    return tuple(notes[-KNOWN_NOTES:])
