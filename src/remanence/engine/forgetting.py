"""Forgetting messages: everything derived from them is erased, and remade from the rest."""

from collections import Counter
from collections.abc import (
    AsyncIterator,
    Awaitable,
    Callable,
    Collection,
    Iterator,
    Mapping,
    Sequence,
    Set as AbstractSet,
)
from dataclasses import dataclass, replace
from typing import Final

from remanence.clock import Clock
from remanence.engine.segment_writer import SegmentWriter
from remanence.engine.traces import Traces
from remanence.errors import ObservationRejected, ObservationSkipped, StoreError
from remanence.facts.merge import with_superseded
from remanence.facts.statements import quotes_once
from remanence.protocols import Store
from remanence.types import (
    ConversationRef,
    Erasure,
    Fact,
    FailedStretch,
    MemoryState,
    Message,
    Owner,
    Segment,
)
from remanence.types.receipt import tombstone
from remanence.wire.boundaries import groups

TRIES: Final = 50
FORGOTTEN: Final = "forgotten"


@dataclass(frozen=True, slots=True, kw_only=True)
class Forgetting:
    """Plans an erasure from a snapshot, and commits it if nothing has changed meanwhile.

    `erase_outside` erases copies outside of the database. It is called before the commit, so that a
    failed call can be repeated: afterwards, the erased segments and facts cannot be found any more.
    """

    store: Store
    segment_writer: SegmentWriter
    clock: Clock
    count: Callable[[Message], int]
    salt: str
    erase_outside: Callable[[Erasure], Awaitable[object]]

    async def forget(
        self,
        ref: ConversationRef,
        owner: Owner | None,
        messages: Sequence[Message],
        fact_ids: AbstractSet[str],
    ) -> tuple[Erasure, int]:
        """Forget messages, and all segments and facts derived from them.

        Returns the erasure, and the number of erased vectors.
        """
        for _ in range(TRIES):
            state = await self.store.state(ref)
            if state is None and owner is not None and not messages:
                return await self._forget_facts(owner, fact_ids)
            if state is None or not await self._exist(ref, messages):
                break
            erasure = await self._plan(state, messages, fact_ids)
            await self.erase_outside(erasure)
            erased = await self.store.forget(state, erasure, at=self.clock.now())
            if erased is not None:
                return erasure, erased.vectors
        raise StoreError(
            f"conversation {ref.id!r} was deleted, or changed {TRIES} times meanwhile: try again"
        )

    async def _exist(self, ref: ConversationRef, messages: Sequence[Message]) -> bool:
        """Return whether these messages are still on the tape, which may have been deleted and reused."""
        for message in messages:
            found = await self.store.messages(ref, after=message.seq - 1, limit=1)
            if [(now.seq, now.id) for now in found] != [(message.seq, message.id)]:
                return False
        return True

    async def _forget_facts(self, owner: Owner, fact_ids: AbstractSet[str]) -> tuple[Erasure, int]:
        """Forget facts on behalf of a conversation that has no messages yet."""
        gone = with_superseded(await self.store.facts(owner, history=True), fact_ids)
        erasure = Erasure(tombstones=(), facts=tuple(gone))
        await self.erase_outside(erasure)
        for fact_id in fact_ids:
            await self.store.forget_fact(owner, fact_id)
        return erasure, 0

    async def _plan(
        self, state: MemoryState, messages: Sequence[Message], fact_ids: AbstractSet[str]
    ) -> Erasure:
        buried = {}
        for message in messages:
            bare = tombstone(message, self.salt)
            buried[message.seq] = bare.replace(tokens=self.count(bare))
        segments = await self.store.segments(state.ref, live=False)
        traces = Traces(store=self.store, state=state, forgotten=messages)
        covering = {s.id for s in segments if _overlaps(s.first_seq, s.last_seq, buried)}
        others = [segment for segment in segments if segment.id not in covering]
        gone = covering | await traces.in_segments(others)
        live = [segment for segment in segments if segment.live and segment.id in gone]
        gone |= _replaced_observations(live, segments)
        remade = [
            part
            for segment in live
            for piece in _pieces(segment, segments, gone)
            async for part in self._remake(state, piece, segment.generation, buried)
        ]
        before, after = _count_notes(live), _count_notes(remade)
        facts = () if state.owner is None else await self.store.facts(state.owner, history=True)
        named = with_superseded(facts, fact_ids)
        erased = _facts_to_erase(facts, named, state.ref, buried)
        own = [fact for fact in facts if fact.id in erased and fact.id not in named]
        unshared = await self.store.unshared_facts(state.ref, own)
        gone_for_good = named | {fact.id for fact in unshared}
        derived = await traces.in_facts(facts, gone_for_good) - set(erased)
        again = await self.store.repetitions(state.owner) if state.owner and derived else ()
        only_derived = derived - await traces.said_again(derived, again)
        return Erasure(
            tombstones=tuple(buried.values()),
            segments=tuple(segment.id for segment in segments if segment.id in gone),
            remade=tuple(remade),
            notes_gone=(before - after).total(),
            notes_new=(after - before).total(),
            facts=(*erased, *sorted(derived)),
            named=(*named, *sorted(only_derived)),
        )

    async def _remake(
        self,
        state: MemoryState,
        piece: Segment | tuple[int, int],
        generation: int,
        buried: Mapping[int, Message],
    ) -> AsyncIterator[Segment]:
        """Yield replacements for a part of an erased segment: an earlier segment, or new notes."""
        if isinstance(piece, Segment):
            yield replace(piece, generation=generation, superseded=None)
            return
        messages = await self._read(state.ref, *piece, buried)
        if not messages:  # the conversation was deleted meanwhile, so that nothing can be committed
            return
        for part in self._parts(messages) if generation else (messages,):
            try:
                segment = await self.segment_writer.stand_in(state, part, generation=generation)
            except (ObservationRejected, ObservationSkipped, TimeoutError):
                empty = self.segment_writer.without_notes(part, generation=generation)
                why = "it was noted together with a forgotten message"
                failed = FailedStretch(empty.first_seq, empty.last_seq, FORGOTTEN, why)
                segment = replace(empty, made_by=FORGOTTEN, failed=(failed,))
            yield segment

    def _parts(self, messages: Sequence[Message]) -> Iterator[Sequence[Message]]:
        """Split the messages under a reflection into parts for one observation each."""
        part: list[Message] = []
        for run in groups(messages):
            tokens = sum(message.tokens for message in (*part, *run))
            if part and tokens > self.segment_writer.policy.observe_tokens:
                yield part
                part = []
            part += run
        if part:
            yield part

    async def _read(
        self, ref: ConversationRef, first_seq: int, last_seq: int, buried: Mapping[int, Message]
    ) -> Sequence[Message]:
        """Return the messages of a range, with tombstones for those to be forgotten."""
        limit = last_seq - first_seq + 1
        messages = await self.store.messages(ref, after=first_seq - 1, limit=limit)
        return [buried.get(message.seq, message) for message in messages]


def _facts_to_erase(
    facts: Sequence[Fact],
    named: AbstractSet[str],
    ref: ConversationRef,
    seqs: Collection[int],
) -> tuple[str, ...]:
    """Return the ids of facts that are named, or derived from forgotten messages."""
    return tuple(fact.id for fact in facts if fact.id in named or _is_from(fact, ref, seqs))


def _count_notes(segments: Sequence[Segment]) -> Counter[str]:
    return Counter(note.text for segment in segments for note in segment.notes)


def _is_from(fact: Fact, ref: ConversationRef, seqs: Collection[int]) -> bool:
    """Return whether a fact may be derived from forgotten messages.

    What lies between a statement and the one that it quotes is no source of it.
    """
    if fact.conversation != ref.id or fact.first_seq is None:
        return False
    last_seq = fact.last_seq or fact.first_seq
    if quotes_once(fact):
        return fact.first_seq in seqs or last_seq in seqs
    return _overlaps(fact.first_seq, last_seq, seqs)


def _overlaps(first_seq: int, last_seq: int, seqs: Collection[int]) -> bool:
    return any(first_seq <= seq <= last_seq for seq in seqs)


def _replaced_observations(
    live: Sequence[Segment], segments: Sequence[Segment]
) -> AbstractSet[str]:
    """Return the ids of observations in the ranges of *live* that were made again.

    Below a reflection that is erased, they would be taken for the sources of the later ones.
    """
    made = {segment.version for segment in segments if not segment.generation}
    return {
        old.id
        for old in segments
        if old.superseded in made
        and any(one.first_seq <= old.first_seq and old.last_seq <= one.last_seq for one in live)
    }


def _pieces(
    segment: Segment, segments: Sequence[Segment], gone: AbstractSet[str]
) -> Iterator[Segment | tuple[int, int]]:
    """Yield the sources of a reflection, each with the range of it to replace.

    They are the last that were replaced in its range: its version is later if it took the place of
    an erased reflection.
    """
    inside = [
        (inner.superseded, inner)
        for inner in segments
        if inner.superseded is not None
        and inner.superseded <= segment.version
        and segment.first_seq <= inner.first_seq
        and inner.last_seq <= segment.last_seq
    ]
    last = max((superseded for superseded, _ in inside), default=0)
    sources = [inner for superseded, inner in inside if superseded == last]
    length = segment.last_seq - segment.first_seq + 1
    if not segment.generation or sum(s.last_seq - s.first_seq + 1 for s in sources) != length:
        yield segment.first_seq, segment.last_seq
        return
    for source in sorted(sources, key=lambda source: source.first_seq):
        if source.id in gone:
            yield from _pieces(source, segments, gone)
        else:
            yield source
