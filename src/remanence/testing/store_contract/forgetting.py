"""Forgetting: tombstones keep their place, and work in progress writes nothing."""

import asyncio
from collections.abc import Sequence
from dataclasses import replace

import pytest

from remanence.errors import ConversationErased, StoreError
from remanence.protocols import Store
from remanence.testing.store_contract.handles import Handles
from remanence.testing.store_contract.samples import (
    ANA,
    OTHER,
    REF,
    TOKENS,
    active,
    at,
    expect_state,
    fact,
    failure,
    new,
    observation,
    observe_ranges,
    reflection,
    tape,
    usage,
    user,
)
from remanence.types import (
    Erased,
    Erasure,
    FactChanges,
    FactsPin,
    MemoryState,
    Message,
    RecallFilter,
    Segment,
)
from remanence.types.receipt import tombstone


async def erasure_of(store: Store, seq: int, **changes: object) -> Erasure:
    """Return the erasure of one message, with *changes* of its fields."""
    (message,) = await store.messages(REF, after=seq - 1, limit=1)
    tomb = tombstone(message, "salt").replace(tokens=3)
    return Erasure(**{"tombstones": (tomb,), **changes})  # type: ignore[arg-type]  # by name


async def forget(store: Store, state: MemoryState, erasure: Erasure) -> Erased:
    """Forget, which must succeed."""
    erased = await store.forget(state, erasure, at=at(90))
    assert erased is not None
    return erased


async def reflect_ranges(store: Store, ranges: Sequence[tuple[int, int]]) -> MemoryState:
    """Observe the ranges, replace all by a reflection, and return the state."""
    state = await active(store, ranges)
    sources = [f"g0-{first}-{last}" for first, last in ranges]
    whole = reflection(1, ranges[-1][1])
    return expect_state(await store.commit_reflection(state, whole, sources))


async def source_of_reflection(store: Store, segment_id: str) -> Segment:
    """Return a source that is to take the place of its reflection."""
    segment = await store.segment(REF, segment_id)
    assert segment is not None
    return replace(segment, generation=1, superseded=None)


def remade(first_seq: int, last_seq: int, **changes: object) -> Segment:
    """Return a segment that replaces an observation."""
    fields = {"id": f"new-{first_seq}", "text": "rest", "notes": (), **changes}
    return observation(first_seq, last_seq, **fields)


class ForgettingContract(Handles):
    """`forget` and `forget_user`."""

    async def test_a_forgotten_message_keeps_its_place_and_nothing_else(self, store: Store) -> None:
        state = await tape(store, 3)
        erasure = await erasure_of(store, 2)

        after = (await forget(store, state, erasure)).state

        messages = await store.messages(REF, after=0, limit=None)
        assert messages[1] == erasure.tombstones[0]
        assert [message.text for message in messages] == ["message 1", "[forgotten]", "message 3"]
        assert after == await store.state(REF)
        assert (after.last_seq, after.last_sum_tokens) == (3, 2 * TOKENS + 3)
        found = await store.search(REF, "message", limit=9)
        assert sorted(hit.first_seq for hit in found) == [1, 3]
        await store.scrub()
        assert await store.check() == ()

    async def test_notes_of_it_go_and_those_made_anew_take_their_place(self, store: Store) -> None:
        state = await active(store, [(1, 2), (3, 4)])
        erasure = await erasure_of(store, 3, segments=("g0-3-4",), remade=(remade(3, 4),))

        after = (await forget(store, state, erasure)).state

        segments = await store.segments(REF, live=False)
        assert [segment.id for segment in segments] == ["g0-1-2", "new-3"]
        assert [segment.sum_tokens for segment in segments] == [20, 33]
        assert (after.observed_seq, after.active_seq, after.observed_sum_tokens) == (4, 4, 33)
        assert [entry.kind for entry in await store.log(REF)][-1] == "forgotten"
        await store.scrub()
        assert await store.check() == ()

    async def test_a_source_of_an_erased_reflection_is_shown_again_and_not_copied(
        self, store: Store
    ) -> None:
        state = await reflect_ranges(store, [(1, 2), (3, 4)])
        moved = await source_of_reflection(store, "g0-3-4")
        anew = remade(1, 2, generation=1)
        erasure = await erasure_of(store, 1, segments=("g0-1-2", "g1-1-4"), remade=(anew, moved))

        after = (await forget(store, state, erasure)).state

        live = await store.segments(REF, live=True)
        assert len(await store.segments(REF, live=False)) == len(live)
        assert [(s.id, s.generation, s.version) for s in live] == [
            ("new-1", 1, after.lock_version),
            ("g0-3-4", 1, after.lock_version),
        ]
        assert live[1].notes == moved.notes
        found = await store.search(REF, "said", limit=9, only=RecallFilter(kind="note"))
        assert [hit.source_id for hit in found] == ["g0-3-4"]
        await store.scrub()
        assert await store.check() == ()

    async def test_forgetting_under_reflections_again_and_again_adds_no_segments(
        self, store: Store
    ) -> None:
        state = await reflect_ranges(store, [(1, 2), (3, 4), (5, 6)])
        above, sources = "g1-1-6", ["g0-1-2", "g0-3-4", "g0-5-6"]
        for seq in (1, 3, 5):
            gone = f"g0-{seq}-{seq + 1}"
            moved = [await source_of_reflection(store, s) for s in sources if s != gone]
            anew = remade(seq, seq + 1, generation=1)
            erasure = await erasure_of(store, seq, segments=(gone, above), remade=(*moved, anew))
            state = (await forget(store, state, erasure)).state
            sources = [anew.id if source == gone else source for source in sources]
            above = f"above-{seq}"
            again = reflection(1, 6, id=above)
            state = expect_state(await store.commit_reflection(state, again, sources))

            segments = await store.segments(REF, live=False)
            assert sorted(segment.id for segment in segments) == sorted([*sources, above])
        assert {segment.text for segment in segments if not segment.live} == {"rest"}
        await store.scrub()
        assert await store.check() == ()

    async def test_erased_numbers_of_notes_are_not_given_again(self, store: Store) -> None:
        state = await active(store, [(1, 2), (3, 4)])
        before = await store.segments(REF, live=True)
        last = await erasure_of(store, 3, segments=("g0-3-4",), remade=(remade(3, 4),))
        state = (await forget(store, state, last)).state
        rest = (remade(1, 2), remade(3, 4, id="again"))
        erasure = await erasure_of(store, 1, segments=("g0-1-2", "new-3"), remade=rest)

        await forget(store, state, erasure)

        after = await store.segments(REF, live=True)
        assert [segment.notes_version for segment in (*before, *after)] == [1, 2, 4, 5]

    async def test_an_erasure_or_an_observation_at_the_same_time_starts_over(
        self, store: Store, other: Store
    ) -> None:
        await reflect_ranges(store, [(1, 2), (3, 4)])
        state = (await store.append(REF, [user("x")], user="ana")).state
        moved = await source_of_reflection(store, "g0-3-4")
        pieces = (remade(1, 2, generation=1), moved)
        erasure = await erasure_of(store, 1, segments=("g0-1-2", "g1-1-4"), remade=pieces)

        async with asyncio.TaskGroup() as group:
            forgetting = group.create_task(store.forget(state, erasure, at=at(90)))
            observing = group.create_task(other.commit_observation(state, observation(5, 5)))

        assert [forgetting.result() is None, observing.result() is None].count(True) == 1
        live = [segment.id for segment in await store.segments(REF, live=True)]
        was_first = observing.result() is None
        assert live == (["new-1", "g0-3-4"] if was_first else ["g1-1-4", "g0-5-5"])
        await store.scrub()
        assert await store.check() == ()

    async def test_a_gap_in_the_notes_is_refused(self, store: Store) -> None:
        state = await active(store, [(1, 2), (3, 4)])

        with pytest.raises(StoreError, match="do not cover"):
            await store.forget(state, await erasure_of(store, 3, segments=("g0-3-4",)), at=at(90))

        assert await store.state(REF) == state

    async def test_an_erasure_that_was_planned_before_a_change_writes_nothing(
        self, store: Store, other: Store
    ) -> None:
        state = await tape(store, 4)
        erasure = await erasure_of(store, 1)
        changed = expect_state(await other.commit_observation(state, observation(1, 2)))

        assert await store.forget(state, erasure, at=at(90)) is None
        assert await store.state(REF) == changed

    async def test_work_that_was_under_way_brings_nothing_back(
        self, store: Store, other: Store
    ) -> None:
        state = await active(store, [(1, 2), (3, 4)])
        before = await tape(store, 2)
        after = (await forget(other, before, await erasure_of(store, 5))).state

        late = [
            await store.commit_observation(before, observation(5, 6)),
            await store.replace_observation(before, observation(3, 4, id="again"), "g0-3-4"),
            await store.commit_reflection(before, reflection(1, 4), ["g0-1-2", "g0-3-4"]),
            await store.commit_facts(before, FactChanges(), facts_seq=2, at=at(91)),
            await store.record_failure(before, failure(message="message 5")),
            await store.pin_facts(before, ANA, FactsPin(marker="", text="five", at=at(91))),
        ]

        assert late == [None, None, None, None, None, False]
        assert await store.state(REF) == after
        assert state.erasures + 1 == after.erasures

    async def test_a_snapshot_that_was_read_before_is_not_shown_again(self, store: Store) -> None:
        state = await tape(store, 3)
        await store.snapshot(REF, tail_tokens=100)

        await forget(store, state, await erasure_of(store, 2))

        snapshot = await store.snapshot(REF, tail_tokens=100)
        assert snapshot is not None
        assert [message.kind for message in snapshot.tail] == ["message", "forgotten", "message"]

    async def test_an_append_that_is_retried_brings_nothing_back(self, store: Store) -> None:
        message = Message.user("message", id="m").replace(tokens=TOKENS)
        state = (await store.append(REF, [message], user=None)).state
        await forget(store, state, await erasure_of(store, 1))

        (again,) = (await store.append(REF, [message], user=None)).messages

        assert (again.kind, again.text) == ("forgotten", "[forgotten]")

    async def test_an_append_to_a_tape_that_was_erased_meanwhile_writes_nothing(
        self, store: Store, other: Store
    ) -> None:
        state = await tape(store, 3)
        answer = [Message.assistant("about message 2").replace(tokens=3)]
        appended = await store.append(REF, answer, user="ana", after=state)
        forgotten = await forget(other, appended.state, await erasure_of(store, 2))

        with pytest.raises(ConversationErased, match="read it again"):
            await store.append(REF, answer, user="ana", after=appended.state)
        again = await store.append(REF, answer, user="ana", after=forgotten.state)
        await other.delete(REF)
        with pytest.raises(ConversationErased):
            await store.append(REF, answer, user="ana", after=again.state)
        assert await store.state(REF) is None
        begun = await store.append(REF, answer, user="ana")
        with pytest.raises(ConversationErased):
            await store.append(REF, answer, user="ana", after=replace(state, last_seq=1))

        assert begun.state.last_seq == 1
        assert [one.seq for one in await store.messages(REF, after=0, limit=None)] == [1]

    async def test_texts_of_errors_go(self, store: Store) -> None:
        state = await tape(store, 4)
        state = expect_state(await store.record_failure(state, failure(message="quotes message")))

        after = (await forget(store, state, await erasure_of(store, 1))).state

        assert after.observe_failure is not None
        assert "quotes" not in after.observe_failure.message
        assert not any("quotes" in entry.detail for entry in await store.log(REF))

    async def test_facts_go_and_those_that_they_superseded_hold_again(self, store: Store) -> None:
        state = await tape(store, 2)
        await store.save_facts(new(fact("a", "lives in Lisbon")))
        await store.save_facts(new(fact("b", "lives in Porto"), a="b"))

        await forget(store, state, await erasure_of(store, 1, facts=("b",)))

        assert [each.id for each in await store.facts(ANA, history=True)] == ["a"]
        assert [each.id for each in await store.search_facts(ANA, "Lisbon", limit=5)] == ["a"]
        assert await store.search_facts(ANA, "Porto", limit=5) == ()

    async def test_work_on_other_conversations_of_the_user_that_knows_a_fact_is_void(
        self, store: Store
    ) -> None:
        state = await tape(store, 2)
        elsewhere = await observe_ranges(store, [(1, 2)], OTHER)
        await store.save_facts(new(fact("a", "lives in Lisbon")))

        await forget(store, state, await erasure_of(store, 1, facts=("a",)))

        changes = new(fact("b", "still lives in Lisbon"))
        assert await store.commit_facts(elsewhere, changes, facts_seq=2, at=at(91)) is None

    async def test_a_forgotten_user_is_gone_and_others_stay(self, store: Store) -> None:
        await active(store, [(1, 2)])
        await store.append(OTHER, [Message.user("hello").replace(tokens=1)], user="ben")
        await store.save_facts(new(fact("a", "lives in Lisbon")))
        await store.record_usage([usage()])

        await store.forget_user(ANA)

        assert [state.ref for state in await store.conversations()] == [OTHER]
        assert await store.facts(ANA, history=True) == ()
        assert await store.usage(user="ana") == ()
        assert [total.calls for total in await store.usage()] == [1]
        await store.scrub()
        assert await store.check() == ()

    async def test_a_call_that_ends_after_its_user_was_forgotten_names_nobody(
        self, store: Store
    ) -> None:
        await tape(store, 1)
        await store.forget_user(ANA)

        await store.record_usage([usage()])

        assert await store.usage(user="ana") == ()
        assert [total.calls for total in await store.usage()] == [1]
