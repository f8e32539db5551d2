"""The store against a model of it: two handles on one file, states as old as callers hold them."""

import asyncio
import tempfile
from collections.abc import Coroutine, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import Any, TypeVar

import pytest
from hypothesis import settings, strategies as st
from hypothesis.stateful import (
    Bundle,
    RuleBasedStateMachine,
    initialize,
    invariant,
    multiple,
    rule,
)

from remanence.errors import StoreError
from remanence.protocols import Store
from remanence.stores import open_store
from remanence.testing.clock import START, FixedClock
from remanence.testing.invariants import check_tiling
from remanence.types import (
    ConversationRef,
    Failure,
    Keep,
    MemoryState,
    Message,
    Retention,
    Segment,
)

T = TypeVar("T")

REFS = [ConversationRef("default", name) for name in "abc"]
HANDLES = st.integers(0, 1)
REFUSED = "refused"
ONE_DAY = Keep(days=1)


@dataclass
class Tape:
    """What a conversation should be."""

    key: int
    messages: list[Message] = field(default_factory=list)
    live: list[Segment] = field(default_factory=list)
    every: list[Segment] = field(default_factory=list)
    observed: int = 0
    active: int = 0
    reflected: int = 0
    tail: int = 1
    version: int = 0
    oldest_entry: int = 1

    def sum_tokens(self, seq: int) -> int:
        return sum(message.tokens for message in self.messages[:seq])


def covered(segments: Sequence[Segment], last_seq: int) -> int:
    """The end of the longest row of segments without gaps from the first message on."""
    ends = {0}
    for _ in segments:
        ends |= {
            one.last_seq
            for one in segments
            if one.first_seq - 1 in ends and one.last_seq <= last_seq
        }
    return max(ends)


class StoreMachine(RuleBasedStateMachine):
    states = Bundle("states")

    def __init__(self) -> None:
        super().__init__()
        self.loop = asyncio.new_event_loop()
        self.folder = tempfile.TemporaryDirectory()
        self.clocks = [FixedClock(prefix="x"), FixedClock(prefix="y")]
        self.tapes: dict[ConversationRef, Tape] = {}
        self.segments = 0

    def run(self, coroutine: Coroutine[Any, Any, T]) -> T:
        return self.loop.run_until_complete(asyncio.wait_for(coroutine, timeout=60))

    def attempt(self, coroutine: Coroutine[Any, Any, MemoryState | None]) -> object:
        """What a commit came to: a state, None, or REFUSED."""
        try:
            return self.run(coroutine)
        except StoreError:
            return REFUSED

    async def opened(self, number: int) -> Store:
        url = f"sqlite:///{Path(self.folder.name) / 'memory.db'}"
        return await open_store(url, clock=self.clocks[number], durability="normal")

    @initialize()
    def open(self) -> None:
        self.stores = [self.run(self.opened(number)) for number in (0, 1)]

    def teardown(self) -> None:
        self.run(self.stores[0].scrub())
        problems = self.run(self.stores[0].check())
        for store in self.stores:
            self.run(store.close())
        self.loop.close()
        self.folder.cleanup()
        assert problems == ()

    def current(self, state: MemoryState) -> Tape | None:
        """The tape that a state is of, unless it was deleted since."""
        tape = self.tapes.get(state.ref)
        return tape if tape is not None and tape.key == state.key else None

    def made(self, first_seq: int, last_seq: int, generation: int) -> Segment:
        self.segments += 1
        return Segment(
            id=f"s{self.segments}",
            generation=generation,
            first_seq=first_seq,
            last_seq=last_seq,
            text=f"segment {self.segments}",
            notes=(),
            tokens=1,
            source_tokens=0,
            sum_tokens=0,
            lost=(),
            made_by="machine/1",
            created_at=START,
        )

    @rule(
        target=states,
        handle=HANDLES,
        ref=st.sampled_from(REFS),
        tokens=st.lists(st.integers(0, 9), min_size=1, max_size=5),
    )
    def append(self, handle: int, ref: ConversationRef, tokens: list[int]) -> MemoryState:
        messages = [Message.user(f"text {number}").replace(tokens=number) for number in tokens]
        appended = self.run(self.stores[handle].append(ref, messages, user=None))
        tape = self.tapes.setdefault(ref, Tape(appended.state.key))
        tape.messages += appended.messages
        return appended.state

    @rule(handle=HANDLES, ref=st.sampled_from(REFS), number=st.integers(0, 20))
    def append_again(self, handle: int, ref: ConversationRef, number: int) -> None:
        tape = self.tapes.get(ref)
        if tape is not None:
            message = tape.messages[number % len(tape.messages)]
            appended = self.run(self.stores[handle].append(ref, [message], user=None))
            assert appended.messages == (message,)

    @rule(target=states, handle=HANDLES, ref=st.sampled_from(REFS))
    def read(self, handle: int, ref: ConversationRef) -> Any:  # what Hypothesis takes for no value
        state = self.run(self.stores[handle].state(ref))
        return multiple() if state is None else state

    @rule(target=states, handle=HANDLES, state=states, length=st.integers(1, 8))
    def observe(self, handle: int, state: MemoryState, length: int) -> Any:
        first, last = state.observed_seq + 1, state.observed_seq + length
        segment = self.made(first, last, 0)
        result = self.attempt(self.stores[handle].commit_observation(state, segment))

        tape = self.current(state)
        if tape is None or tape.observed != state.observed_seq:
            return self.expect(result, None)
        if last > len(tape.messages):
            return self.expect(result, REFUSED)
        tape.observed = last
        tape.live.append(segment)
        return self.expect_commit(result, tape, segment)

    @rule(
        target=states,
        handle=HANDLES,
        state=states,
        boundary=st.integers(0, 12),
        kept=st.integers(-1, 6),
    )
    def activate(self, handle: int, state: MemoryState, boundary: int, kept: int) -> Any:
        tape = self.current(state)
        ends = [0, *(segment.last_seq for segment in tape.live)] if tape else [0]
        active = ends[boundary % len(ends)]
        tail = max(1, active + 1 - kept)
        result = self.attempt(
            self.stores[handle].activate(state, active_seq=active, tail_seq=tail, at=START)
        )

        if tape is None or tape.active != state.active_seq or tail < tape.tail:
            return self.expect(result, None)
        if active < tape.active or tail > active + 1:
            return self.expect(result, REFUSED)
        tape.active, tape.tail = active, tail
        return self.expect_commit(result, tape)

    @rule(
        target=states,
        handle=HANDLES,
        state=states,
        start=st.integers(0, 5),
        count=st.integers(1, 4),
        stale=st.booleans(),
    )
    def reflect(self, handle: int, state: MemoryState, start: int, count: int, stale: bool) -> Any:
        tape = self.current(state)
        chosen = tape.live[start : start + count] if tape else []
        if not chosen:
            return multiple()
        generation = max(segment.generation for segment in chosen) + 1
        segment = self.made(chosen[0].first_seq, chosen[-1].last_seq, generation)
        replaced = [source.id for source in chosen]
        if stale and tape is not None:
            replaced[-1] = tape.every[0].id if tape.every else replaced[-1]
        result = self.attempt(self.stores[handle].commit_reflection(state, segment, replaced))

        assert tape is not None
        if not set(replaced) <= {source.id for source in tape.live}:
            return self.expect(result, None)
        if replaced != [source.id for source in chosen] or segment.last_seq > tape.active:
            return self.expect(result, REFUSED)
        if segment.first_seq > tape.reflected + 1:
            return self.expect(result, REFUSED)
        tape.reflected = max(tape.reflected, segment.last_seq)
        tape.live[start : start + count] = [segment]
        return self.expect_commit(result, tape, segment)

    @rule(target=states, handle=HANDLES, state=states, step=st.sampled_from(["observe", "reflect"]))
    def fail(self, handle: int, state: MemoryState, step: Any) -> Any:
        failure = Failure(
            step=step,
            reason="error",
            message="no",
            at=START,
            next_attempt_at=START + timedelta(seconds=1),
            failures=1,
            last_seq=state.last_seq,
        )
        result = self.attempt(self.stores[handle].record_failure(state, failure))

        tape = self.current(state)
        cursors = (state.observed_seq, state.reflected_seq)
        if tape is None or (tape.observed, tape.reflected) != cursors:
            return self.expect(result, None)
        return self.expect_commit(result, tape)

    @rule(target=states, handle=HANDLES, ref=st.sampled_from(REFS))
    def settle(self, handle: int, ref: ConversationRef) -> Any:
        """Bring a conversation to a state that chance alone seldom reaches."""
        state: Any = self.append(handle, ref, [1, 2, 3])
        while state.observed_seq < state.last_seq:
            state = self.observe(handle, state, 1)
        return self.activate(handle, state, len(self.tapes[ref].live), 0)

    @rule(
        target=states,
        handle=HANDLES,
        state=states,
        ref=st.sampled_from(REFS),
        last_seq=st.integers(0, 12),
    )
    def fork(self, handle: int, state: MemoryState, ref: ConversationRef, last_seq: int) -> Any:
        result = self.attempt(self.stores[handle].fork(state, ref, last_seq=last_seq, at=START))

        tape = self.current(state)
        if tape is None or ref in self.tapes:
            return self.expect(result, None)
        if not 1 <= last_seq <= len(tape.messages):
            return self.expect(result, REFUSED)
        assert isinstance(result, MemoryState)
        live = list(self.run(self.stores[handle].segments(ref, live=True)))
        forked = Tape(result.key, tape.messages[:last_seq], live, live[:], version=1)
        self.tapes[ref] = forked
        forked.observed = max((one.last_seq for one in live), default=0)
        forked.reflected = max((one.last_seq for one in live if one.generation), default=0)
        forked.active, forked.tail = result.active_seq, result.tail_seq
        known = {segment.id for segment in tape.every}
        kept = {segment.id for segment in live}
        assert kept <= known
        assert forked.observed == covered(tape.every, last_seq)
        assert forked.tail <= last_seq
        assert forked.active <= max(tape.active, forked.reflected)
        if tape.tail <= last_seq:
            assert kept >= {one.id for one in tape.live if one.last_seq <= last_seq}
            assert forked.tail <= tape.tail
        return result

    @rule(handle=HANDLES, ref=st.sampled_from(REFS))
    def delete(self, handle: int, ref: ConversationRef) -> None:
        assert (self.run(self.stores[handle].delete(ref)) is not None) == (ref in self.tapes)
        self.tapes.pop(ref, None)

    @rule(handle=HANDLES, state=states)
    def prune(self, handle: int, state: MemoryState) -> None:
        rules, years_later = Retention(superseded=ONE_DAY, log=ONE_DAY), START + timedelta(days=999)
        self.run(self.stores[handle].prune([state], rules, at=years_later, limit=1_000))

        tape = self.current(state)
        if tape is not None:
            tape.every = list(tape.live)
            tape.oldest_entry = max(1, tape.version)

    @rule(handle=HANDLES)
    def reopen(self, handle: int) -> None:
        self.run(self.stores[handle].close())
        self.stores[handle] = self.run(self.opened(handle))

    @rule(handle=HANDLES, ref=st.sampled_from(REFS))
    def search(self, handle: int, ref: ConversationRef) -> None:
        hits = self.run(self.stores[handle].search(ref, "text segment", limit=1_000))

        tape = self.tapes.get(ref)
        expected = [message.text for message in tape.messages] if tape else []
        expected += [segment.text for segment in tape.live] if tape else []
        assert sorted(hit.text for hit in hits) == sorted(expected)

    def expect(self, result: object, expected: object) -> Any:
        assert result == expected
        return multiple()

    def expect_commit(
        self, result: object, tape: Tape, segment: Segment | None = None
    ) -> MemoryState:
        tape.version += 1
        tape.every += [segment] if segment else []
        assert isinstance(result, MemoryState)
        assert result.lock_version == tape.version
        return result

    @invariant()
    def both_handles_show_what_should_be(self) -> None:
        for store in getattr(self, "stores", ()):
            for ref in REFS:
                self.run(self.compare(store, ref, self.tapes.get(ref)))

    async def compare(self, store: Store, ref: ConversationRef, tape: Tape | None) -> None:
        snapshot = await store.snapshot(ref, tail_tokens=1_000_000)
        if tape is None:
            assert snapshot is None
            return
        assert snapshot is not None
        state = snapshot.state
        check_tiling(state, snapshot.segments)
        assert [segment.id for segment in snapshot.segments] == [s.id for s in tape.live]
        assert list(snapshot.tail) == tape.messages[tape.tail - 1 :]
        assert (state.key, state.lock_version) == (tape.key, tape.version)
        assert (state.last_seq, state.observed_seq) == (len(tape.messages), tape.observed)
        assert (state.active_seq, state.reflected_seq) == (tape.active, tape.reflected)
        assert state.last_sum_tokens == tape.sum_tokens(state.last_seq)
        assert state.observed_sum_tokens == tape.sum_tokens(tape.observed)
        assert state.active_sum_tokens == tape.sum_tokens(tape.active)
        assert state.tail_sum_tokens == tape.sum_tokens(tape.tail - 1)
        assert [entry.version for entry in await store.log(ref)] == list(
            range(tape.oldest_entry, tape.version + 1)
        )
        assert {segment.id for segment in await store.segments(ref, live=False)} == {
            segment.id for segment in tape.every
        }


LONG = settings.get_current_profile_name() == "long"
StoreMachine.TestCase.settings = settings(
    max_examples=1_000 if LONG else 18, stateful_step_count=30
)
test_the_store_does_what_its_model_does = pytest.mark.timeout(1_800)(StoreMachine.TestCase)
