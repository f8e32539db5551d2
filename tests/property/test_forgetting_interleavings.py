"""Work that began before a message was forgotten never brings it back, in whatever order it ends."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from hypothesis import given, settings, strategies as st

from remanence.protocols import Store
from remanence.stores import open_store
from remanence.testing import check_tiling
from remanence.testing.store_contract.samples import REF, START, at, observation, user
from remanence.types import (
    Erasure,
    Fact,
    FactChanges,
    FactsPin,
    Failure,
    MemoryState,
    Note,
    Owner,
    Repetition,
    Segment,
)
from remanence.types.receipt import tombstone

ANA = Owner("default", "ana")
OPS = ("append", "observe", "reflect", "facts", "pin", "fail", "activate", "commit", "forget")


@dataclass
class World:
    """A store, work under way in it, and the words that were forgotten."""

    store: Store
    words: int = 0
    ids: int = 0
    pending: list[object] = field(default_factory=list)
    forgotten: set[str] = field(default_factory=set)

    async def step(self, op: str, choice: int) -> None:
        state = await self.store.state(REF)
        if op == "append" or state is None:
            self.words += 1
            await self.store.append(REF, [user(f"word{self.words:04}")], user="ana")
            return
        if op == "commit":
            if self.pending:
                await self.commit(*self.pending.pop(choice % len(self.pending)))  # type: ignore[misc]  # a tuple
        elif op == "forget":
            await self.forget(state, 1 + choice % state.last_seq)
        elif op == "activate":
            end = state.observed_seq
            await self.store.activate(state, active_seq=end, tail_seq=end + 1, at=at(70))
        else:
            self.pending.append((op, state, await self.made(op, state)))

    async def made(self, op: str, state: MemoryState) -> Segment | str | None:
        """What an observer, reflector, extractor or reader of facts makes of what it reads now."""
        self.ids += 1
        live = await self.store.segments(REF, live=True)
        if op == "observe":
            first, last = state.observed_seq + 1, min(state.last_seq, state.observed_seq + 2)
            return await self.noted(first, last) if first <= last else None
        if op == "reflect":
            sources = [s for s in live if s.last_seq <= state.active_seq]
            text = " ".join(segment.text for segment in sources)
            return self.segment(1, sources[-1].last_seq, text, 1) if sources else None
        if op == "pin":
            return " ".join(fact.summary for fact in await self.store.facts(ANA))
        messages = await self.store.messages(REF, after=0, limit=None)
        return " ".join(message.text for message in messages)

    async def noted(self, first: int, last: int, generation: int = 0) -> Segment:
        messages = await self.store.messages(REF, after=first - 1, limit=last - first + 1)
        text = " ".join(m.text for m in messages if m.kind == "message")
        return self.segment(first, last, text, generation)

    def segment(self, first: int, last: int, text: str, generation: int) -> Segment:
        note = Note(text=text, first_seq=first, last_seq=last)
        self.ids += 1
        name = f"s{self.ids}"
        return observation(first, last, id=name, text=text, notes=(note,), generation=generation)

    async def commit(self, op: str, state: MemoryState, made: Segment | str | None) -> None:
        if op == "observe" and isinstance(made, Segment):
            await self.store.commit_observation(state, made)
        elif op == "reflect" and isinstance(made, Segment):
            live = await self.store.segments(REF, live=True)
            replaced = [s.id for s in live if s.last_seq <= made.last_seq]
            tiled = bool(replaced) and live[len(replaced) - 1].last_seq == made.last_seq
            if tiled:
                await self.store.commit_reflection(state, made, replaced)
        elif op == "facts" and isinstance(made, str):
            self.ids += 1
            fact = Fact(
                id=f"f{self.ids}",
                tenant="default",
                user="ana",
                summary=made,
                type="knowledge",
                created_at=START,
                valid_from=START,
                conversation=REF.id,
                first_seq=1,
                last_seq=state.last_seq,
            )
            end = state.observed_seq
            again = replace(
                fact, id=f"r{self.ids}", first_seq=state.last_seq, summary=made.split()[-1]
            )
            last = Repetition(fact.id, again)
            await self.store.commit_facts(
                state, FactChanges(facts=(fact,), repetitions=(last,)), facts_seq=end, at=START
            )
        elif op == "pin" and isinstance(made, str):
            await self.store.pin_facts(state, ANA, FactsPin(marker="", text=made, at=START))
        elif op == "fail" and isinstance(made, str):
            failure = Failure(
                step="observe",
                reason="error",
                message=made,
                at=START,
                next_attempt_at=START,
                failures=1,
                last_seq=1,
            )
            await self.store.record_failure(state, failure)

    async def forget(self, state: MemoryState, seq: int) -> None:
        (message,) = await self.store.messages(REF, after=seq - 1, limit=1)
        if message.kind == "forgotten":
            return
        tomb = tombstone(message, "salt").replace(tokens=2)
        segments = await self.store.segments(REF, live=False)
        gone = [s for s in segments if s.first_seq <= seq <= s.last_seq]
        remade = [
            self.segment(s.first_seq, s.last_seq, "rest", s.generation) for s in gone if s.live
        ]
        facts = await self.store.facts(ANA, history=True)
        erasure = Erasure(
            tombstones=(tomb,),
            segments=tuple(segment.id for segment in gone),
            remade=tuple(remade),
            facts=tuple(fact.id for fact in facts),
        )
        assert await self.store.forget(state, erasure, at=START) is not None
        self.forgotten.add(message.text)

    async def everything(self) -> str:
        """All that can be read from the store."""
        parts: list[object] = [
            await self.store.snapshot(REF, tail_tokens=10_000),
            await self.store.messages(REF, after=0, limit=None),
            await self.store.segments(REF, live=False),
            await self.store.facts(ANA, history=True),
            await self.store.repetitions(ANA),
            await self.store.log(REF),
        ]
        for word in self.forgotten:
            parts += await self.store.search(REF, word, limit=9)
        return repr(parts)


@settings(max_examples=60, deadline=None)
@given(st.lists(st.tuples(st.sampled_from(OPS), st.integers(0, 30)), min_size=5, max_size=60))
def test_nothing_that_ends_late_brings_a_forgotten_message_back(
    steps: Sequence[tuple[str, int]],
) -> None:
    async def run() -> None:
        store = await open_store("sqlite:///:memory:")
        try:
            world = World(store)
            for op, choice in steps:
                await world.step(op, choice)
            for work in list(world.pending):
                await world.commit(*work)  # type: ignore[misc]  # a tuple
            said = await world.everything()
            assert not [word for word in world.forgotten if word in said]
            state = await store.state(REF)
            if state is not None:
                check_tiling(state, await store.segments(REF, live=True))
            await store.scrub()
            assert await store.check() == ()
        finally:
            await store.close()

    asyncio.run(run())
