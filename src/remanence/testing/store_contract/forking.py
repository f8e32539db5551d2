"""Forks: the beginning of a tape in a new conversation, with its notes; facts that outlive it."""

from dataclasses import replace

import pytest

from remanence.errors import StoreError
from remanence.protocols import Store
from remanence.testing.store_contract.forgetting import erasure_of, forget, remade
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
    new,
    observe_ranges,
    reflection,
    said_again,
    tape,
    user,
)
from remanence.types import ConversationRef, MemoryState


async def fork(store: Store, state: MemoryState, last_seq: int) -> MemoryState:
    """Fork to `OTHER`, which must succeed and leave the database consistent."""
    forked = expect_state(await store.fork(state, OTHER, last_seq=last_seq, at=at(90)))
    assert forked == await store.state(OTHER)
    await store.scrub()
    assert await store.check() == ()
    return forked


async def spans(store: Store) -> list[tuple[int, int, int]]:
    """Return the generation and range of the fork's segments."""
    segments = await store.segments(OTHER, live=False)
    return [(segment.generation, segment.first_seq, segment.last_seq) for segment in segments]


class ForkContract(Handles):
    """`fork`, and what a fork keeps when its source is deleted."""

    async def test_a_fork_has_the_messages_up_to_its_end_and_their_notes(
        self, store: Store
    ) -> None:
        state = await active(store, [(1, 2), (3, 4)])
        state = await tape(store, 3)

        forked = await fork(store, state, 6)

        assert await store.messages(OTHER, after=0, limit=None) == await store.messages(
            REF, after=0, limit=6
        )
        assert await spans(store) == [(0, 1, 2), (0, 3, 4)]
        cursors = (forked.observed_seq, forked.active_seq, forked.tail_seq, forked.last_seq)
        assert cursors == (4, 4, 5, 6)
        assert (forked.user, forked.last_sum_tokens, forked.unobserved_tokens) == (
            "ana",
            6 * TOKENS,
            2 * TOKENS,
        )
        assert [entry.kind for entry in await store.log(OTHER)] == ["forked"]
        assert await store.state(REF) == state

    async def test_a_fork_is_searched_like_any_conversation(self, store: Store) -> None:
        state = await active(store, [(1, 2), (3, 4)])

        await fork(store, state, 3)

        found = await store.search(OTHER, "message said", limit=9)
        assert sorted((hit.kind, hit.last_seq) for hit in found) == [
            ("message", 1),
            ("message", 2),
            ("message", 3),
            ("note", 2),
        ]

    async def test_a_fork_grows_alone(self, store: Store) -> None:
        await fork(store, await active(store, [(1, 2), (3, 4)]), 3)

        (message,) = (await store.append(OTHER, [user("new")], user="ana")).messages

        assert message.seq == 4
        assert len(await store.messages(REF, after=0, limit=None)) == 4
        assert await store.check() == ()

    async def test_a_fork_within_a_reflection_has_the_observations_that_it_replaced(
        self, store: Store
    ) -> None:
        state = await active(store, [(1, 2), (3, 4), (5, 6)])
        state = expect_state(
            await store.commit_reflection(state, reflection(1, 4), ["g0-1-2", "g0-3-4"])
        )

        forked = await fork(store, state, 3)

        assert await spans(store) == [(0, 1, 2)]
        assert (forked.reflected_seq, forked.active_seq, forked.tail_seq) == (0, 0, 1)

    async def test_a_fork_behind_a_reflection_has_it(self, store: Store) -> None:
        state = await active(store, [(1, 2), (3, 4), (5, 6)])
        state = expect_state(
            await store.commit_reflection(state, reflection(1, 4), ["g0-1-2", "g0-3-4"])
        )

        forked = await fork(store, state, 6)

        assert await spans(store) == [(1, 1, 4), (0, 5, 6)]
        assert (forked.reflected_seq, forked.active_seq, forked.tail_seq) == (4, 4, 5)

    async def test_a_fork_always_has_a_message_behind_its_active_notes(self, store: Store) -> None:
        state = await active(store, [(1, 2), (3, 4)])
        state = expect_state(
            await store.commit_reflection(state, reflection(1, 4), ["g0-1-2", "g0-3-4"])
        )

        forked = await fork(store, state, 4)

        assert forked.observed_seq == 4
        assert forked.tail_seq <= forked.last_seq
        assert await spans(store) == [(0, 1, 2), (0, 3, 4)]

    async def test_a_fork_at_the_end_of_a_reflection_keeps_the_tail_of_its_source(
        self, store: Store
    ) -> None:
        state = await observe_ranges(store, [(1, 2), (3, 4), (5, 6)])
        state = expect_state(await store.activate(state, active_seq=6, tail_seq=3, at=at(70)))
        state = expect_state(
            await store.commit_reflection(state, reflection(1, 4), ["g0-1-2", "g0-3-4"])
        )

        forked = await fork(store, state, 4)

        assert await spans(store) == [(1, 1, 4)]
        assert (forked.active_seq, forked.tail_seq) == (4, 3)

    async def test_forgotten_messages_stay_forgotten(self, store: Store) -> None:
        state = await active(store, [(1, 2), (3, 4)])
        erasure = await erasure_of(store, 3, segments=("g0-3-4",), remade=(remade(3, 4),))
        state = (await forget(store, state, erasure)).state

        await fork(store, state, 4)

        messages = await store.messages(OTHER, after=0, limit=None)
        assert messages == await store.messages(REF, after=0, limit=None)
        assert messages[2].kind == "forgotten"
        assert [segment.text for segment in await store.segments(OTHER, live=True)][1] == "rest"

    async def test_no_facts_are_extracted_again(self, store: Store) -> None:
        state = await tape(store, 6)
        one = fact("f", "Lives in Rome", conversation=REF.id, first_seq=1, last_seq=4)
        state = expect_state(await store.commit_facts(state, new(one), facts_seq=4, at=at(80)))

        forked = await fork(store, state, 5)

        assert forked.facts_seq == 4

    async def test_facts_of_shared_messages_stay_with_a_fork_when_its_source_is_deleted(
        self, store: Store
    ) -> None:
        state = await tape(store, 6)
        shared = fact("f1", "Lives in Rome", conversation=REF.id, first_seq=1, last_seq=2)
        later = fact("f2", "Lives in Oslo", conversation=REF.id, first_seq=6, last_seq=6)
        by_hand = fact("f3", "Keeps bees", conversation=REF.id)
        await store.save_facts(new(shared, by_hand))
        await store.save_facts(new(later, f1="f2"))
        await fork(store, state, 5)

        await store.delete(REF)

        (left,) = await store.facts(ANA, history=True)
        assert (left.summary, left.conversation) == (shared.summary, OTHER.id)
        assert (left.first_seq, left.last_seq, left.valid_to) == (1, 2, None)
        assert await store.search_facts(ANA, "rome", limit=5) == (left,)
        assert await store.repetitions(ANA) == ()
        await store.delete(OTHER)
        assert await store.facts(ANA, history=True) == ()
        await store.scrub()
        assert await store.check() == ()

    async def test_facts_of_shared_messages_are_those_of_every_fork(self, store: Store) -> None:
        state = await tape(store, 6)
        third = ConversationRef(REF.tenant, "third")
        shared = fact("f1", "Lives in Rome", conversation=REF.id, first_seq=1, last_seq=2)
        later = fact("f2", "Lives in Oslo", conversation=REF.id, first_seq=4, last_seq=5)
        by_hand = fact("f3", "Keeps bees", conversation=REF.id)
        facts = (shared, later, by_hand)
        forked = await fork(store, state, 5)
        await store.append(OTHER, [user("hello")], user=ANA.user)
        expect_state(await store.fork(forked, third, last_seq=4, at=at(91)))
        await tape(store, 6, ConversationRef(REF.tenant, "unrelated"))

        for ref, own in ((third, [shared]), (OTHER, [shared, later])):
            adopted = tuple(
                replace(one, conversation=ref.id) if one in own else one for one in facts
            )
            assert await store.adopt_facts(ref, facts) == adopted
            assert await store.adopt_facts(REF, adopted[:1]) == (shared,)
        for other in ("unrelated", "none"):
            assert await store.adopt_facts(ConversationRef(REF.tenant, other), facts) == facts
        assert await store.unshared_facts(REF, facts) == (by_hand,)
        await store.delete(OTHER)
        assert await store.unshared_facts(REF, facts) == (later, by_hand)

    async def test_a_repetition_stays_with_a_fork_of_its_conversation(self, store: Store) -> None:
        state = await tape(store, 2)
        third = ConversationRef(REF.tenant, "third")
        await tape(store, 1, third)
        first = fact("f1", "Keeps bees", conversation=third.id, first_seq=1, last_seq=1)
        again = fact("f2", "Has bees", conversation=REF.id, first_seq=2, last_seq=2)
        await store.save_facts(new(first))
        await store.save_facts(said_again("f1", again))
        await fork(store, state, 2)

        await store.delete(REF)
        await store.delete(third)

        (left,) = await store.facts(ANA, history=True)
        assert (left.summary, left.conversation) == ("Has bees", OTHER.id)

    async def test_a_fact_of_a_forgotten_message_stays_with_a_fork_that_has_it(
        self, store: Store
    ) -> None:
        state = await tape(store, 6)
        shared = fact("f1", "Lives in Rome", conversation=REF.id, first_seq=1, last_seq=2)
        other = fact("f2", "Keeps bees", conversation=REF.id, first_seq=3, last_seq=3)
        named = fact("f3", "Plays chess", conversation=REF.id, first_seq=2, last_seq=2)
        await store.save_facts(new(shared, other, named))
        await fork(store, state, 5)
        gone = {"facts": ("f1", "f3"), "named": ("f3",)}

        await forget(store, state, await erasure_of(store, 2, **gone))

        left = {one.summary: one for one in await store.facts(ANA, history=True)}
        assert left.keys() == {shared.summary, other.summary}
        assert left[shared.summary].conversation == OTHER.id
        assert left[other.summary] == other
        assert await store.repetitions(ANA) == ()
        forked = await store.state(OTHER)
        assert forked is not None
        again = {"facts": (left[shared.summary].id,)}
        await forget(store, forked, await erasure_of(store, 2, **again))
        assert await store.facts(ANA, history=True) == (other,)

    async def test_facts_of_messages_that_a_fork_has_forgotten_go_with_its_source(
        self, store: Store
    ) -> None:
        state = await tape(store, 2)
        one = fact("f1", "Lives in Rome", conversation=REF.id, first_seq=2, last_seq=2)
        await store.save_facts(new(one))
        forked = await fork(store, state, 2)
        await forget(store, forked, await erasure_of(store, 2))

        await store.delete(REF)

        assert await store.facts(ANA, history=True) == ()

    async def test_a_conversation_that_exists_is_no_fork(self, store: Store) -> None:
        state = await tape(store, 2)
        other = await tape(store, 1, OTHER)

        assert await store.fork(state, OTHER, last_seq=2, at=at(90)) is None
        assert await store.state(OTHER) == other

    async def test_a_source_that_changed_hands_or_forgot_is_not_forked(
        self, store: Store, other: Store
    ) -> None:
        state = await observe_ranges(store, [(1, 2)])
        await forget(other, state, await erasure_of(store, 2))
        assert await store.fork(state, OTHER, last_seq=1, at=at(90)) is None

        await other.delete(REF)
        await other.append(REF, [user("hello")], user="bob")
        assert await store.fork(state, OTHER, last_seq=1, at=at(90)) is None
        assert await store.state(OTHER) is None

    async def test_a_fork_stays_in_its_tenant_and_on_its_tape(self, store: Store) -> None:
        state = await tape(store, 2)

        with pytest.raises(StoreError, match="another tenant"):
            await store.fork(state, ConversationRef("else", "x"), last_seq=1, at=at(90))
        for last_seq in (0, 3):
            with pytest.raises(StoreError, match="not on the tape"):
                await store.fork(state, OTHER, last_seq=last_seq, at=at(90))
