"""Repetitions: a fact from several sources stays until the last of them is erased."""

import asyncio
from dataclasses import replace

import pytest

from remanence.protocols import Store
from remanence.testing.store_contract.handles import Handles
from remanence.testing.store_contract.samples import (
    ANA,
    BOB,
    OTHER,
    REF,
    at,
    expect_state,
    fact,
    new,
    observe_ranges,
    said_again,
    tape,
)
from remanence.types import ConversationRef, Erasure, Fact, FactsPin
from remanence.types.receipt import tombstone


def said(id_: str, ref: ConversationRef = REF, seq: int = 1, **changes: object) -> Fact:
    """Return a fact about Ana from one message."""
    fields = {"conversation": ref.id, "first_seq": seq, "last_seq": seq, **changes}
    return fact(id_, **{"summary": "keeps bees", **fields})  # type: ignore[arg-type]  # by name


async def forget_first_message(store: Store, facts: tuple[str, ...], *, named: bool) -> None:
    """Forget the first message of `REF`, and facts."""
    state = expect_state(await store.state(REF))
    (message,) = await store.messages(REF, after=0, limit=1)
    tomb = tombstone(message, "salt").replace(tokens=3)
    erasure = Erasure(tombstones=(tomb,), facts=facts, named=facts if named else ())
    assert await store.forget(state, erasure, at=at(90)) is not None


class RepetitionContract(Handles):
    """`repetitions`, and their part in `save_facts`, `commit_facts`, `forget` and `delete`."""

    async def test_repetitions_are_read_as_they_were_written(
        self, store: Store, other: Store
    ) -> None:
        again = said("f2", OTHER, 5, summary="has bees", type="skill", valid_from=at(9))
        await store.save_facts(new(said("f1")))

        assert await store.save_facts(said_again("f1", again)) == ()

        assert await other.repetitions(ANA) == said_again("f1", again).repetitions
        assert await other.repetitions(BOB) == ()
        assert [each.id for each in await store.facts(ANA, history=True)] == ["f1"]
        assert await store.search_facts(ANA, "has", limit=5) == ()

    async def test_the_same_source_is_kept_once_and_one_of_a_fact_saved_by_hand_not_at_all(
        self, store: Store
    ) -> None:
        await store.save_facts(new(said("f1"), fact("f2", "plays the cello")))

        for number in (1, 2):
            await store.save_facts(said_again("f1", said(f"a{number}"), said(f"b{number}", OTHER)))
            await store.save_facts(said_again("f2", said(f"c{number}")))

        assert [repetition.fact.id for repetition in await store.repetitions(ANA)] == ["b1"]

    async def test_a_fact_saved_again_by_hand_has_all_tags_and_the_earlier_start(
        self, store: Store
    ) -> None:
        await store.save_facts(new(fact("f1", "has bees", tags=("a",), valid_from=at(5))))

        for start, tag in ((3, "b"), (4, "a")):
            again = fact(f"f{start}", "has bees", tags=(tag,), valid_from=at(start))
            assert await store.save_facts(said_again("f1", again)) == ()

        (kept,) = await store.facts(ANA)
        assert (kept.tags, kept.valid_from) == (("a", "b"), at(3))

    @pytest.mark.parametrize(("first", "kept"), [(1, 100), (150, 150)])
    async def test_a_fact_saved_again_gets_no_tags_beyond_a_hundred(
        self, store: Store, first: int, kept: int
    ) -> None:
        tags = tuple(f"t{number}" for number in range(200))
        await store.save_facts(new(fact("f1", "has bees", tags=tags[:first])))

        await store.save_facts(said_again("f1", fact("f2", "has bees", tags=tags[first:])))

        (found,) = await store.facts(ANA)
        assert found.tags == tags[:kept]

    async def test_a_fact_that_replaced_another_starts_no_earlier_when_it_is_saved_again(
        self, store: Store
    ) -> None:
        await store.save_facts(new(fact("f1", "has bees", valid_from=at(3))))
        later = fact("f2", "has no bees", valid_from=at(5))
        await store.save_facts(new(later, f1="f2"))

        await store.save_facts(said_again("f2", replace(later, id="f3", valid_from=at(2))))

        (kept,) = await store.facts(ANA)
        assert kept.valid_from == at(5)

    async def test_a_new_fact_with_the_words_of_another_is_its_repetition(
        self, store: Store
    ) -> None:
        first, second = said("f1"), said("f2", OTHER)
        await store.save_facts(new(first))

        assert await store.save_facts(new(second)) == (first,)
        assert await store.repetitions(ANA) == said_again("f1", second).repetitions

    async def test_a_fact_comes_with_its_repetition_in_one_commit(self, store: Store) -> None:
        state = await observe_ranges(store, [(1, 2)])
        again = said_again("f1", said("f2", seq=2))
        changes = replace(again, facts=(said("f1"),))

        expect_state(await store.commit_facts(state, changes, facts_seq=2, at=at(80)))

        assert await store.facts(ANA) == changes.facts
        assert await store.repetitions(ANA) == again.repetitions

    async def test_a_repetition_of_a_fact_that_is_gone_is_not_written(self, store: Store) -> None:
        changes = said_again("f1", said("f2"))

        assert await store.save_facts(changes) is None
        assert await store.repetitions(ANA) == ()

    async def test_a_fact_of_a_deleted_conversation_stays_in_the_words_of_another(
        self, store: Store
    ) -> None:
        for ref in (REF, OTHER):
            await tape(store, 1, ref)
        heir = said("f2", OTHER, summary="has bees", valid_from=at(9))
        late = said("f3", OTHER, 4, summary="bees are kept", valid_from=at(11))
        await store.save_facts(new(said("f1")))
        await store.save_facts(said_again("f1", late, heir, said("f4", REF, 7)))

        await store.delete(REF)

        assert await store.facts(ANA, history=True) == (heir,)
        assert await store.search_facts(ANA, "has", limit=5) == (heir,)
        assert await store.search_facts(ANA, "keeps", limit=5) == ()
        assert await store.repetitions(ANA) == said_again("f2", late).repetitions
        await store.delete(OTHER)
        assert await store.facts(ANA, history=True) == ()
        assert await store.repetitions(ANA) == ()
        await store.scrub()
        assert await store.check() == ()

    async def test_a_repetition_goes_with_its_conversation(self, store: Store) -> None:
        await tape(store, 1, OTHER)
        await store.save_facts(new(said("f1")))
        await store.save_facts(said_again("f1", said("f2", OTHER)))

        await store.delete(OTHER)

        assert await store.facts(ANA) == (said("f1"),)
        assert await store.repetitions(ANA) == ()

    async def test_a_fact_of_a_forgotten_message_stays_if_another_message_says_it(
        self, store: Store
    ) -> None:
        await tape(store, 3)
        heir = said("f2", seq=2)
        await store.save_facts(new(said("f1")))
        await store.save_facts(
            said_again("f1", heir, said("f3", first_seq=1, last_seq=3), said("f4", OTHER))
        )

        await forget_first_message(store, ("f1",), named=False)

        assert await store.facts(ANA, history=True) == (heir,)
        assert [each.fact.id for each in await store.repetitions(ANA)] == ["f4"]

    async def test_a_named_fact_goes_with_all_repetitions(self, store: Store) -> None:
        await tape(store, 3)
        await store.save_facts(new(said("f1"), said("f5", summary="plays the cello")))
        await store.save_facts(said_again("f1", said("f2", seq=2), said("f3", OTHER)))
        await store.save_facts(said_again("f5", said("f6", OTHER)))

        await forget_first_message(store, ("f1",), named=True)
        assert [each.id for each in await store.facts(ANA, history=True)] == ["f5"]
        assert [each.fact.id for each in await store.repetitions(ANA)] == ["f6"]

        await store.forget_fact(ANA, "f5")
        assert await store.facts(ANA, history=True) == ()
        assert await store.repetitions(ANA) == ()

    async def test_a_repetition_takes_over_what_its_fact_had_superseded_and_its_end(
        self, store: Store
    ) -> None:
        await tape(store, 1)
        await store.save_facts(new(fact("f1", "lives in Rome")))
        await store.save_facts(new(said("f2", summary="lives in Oslo"), f1="f2"))
        heir = said("f3", OTHER, summary="Oslo is home", valid_from=at(20))
        await store.save_facts(said_again("f2", heir))
        newest = fact("f4", "lives in Bern", valid_from=at(30))
        await store.save_facts(new(newest, f2="f4"))

        await store.delete(REF)

        assert await store.facts(ANA) == (newest,)
        history = {each.id: each for each in await store.facts(ANA, history=True)}
        assert (history["f1"].superseded_by, history["f1"].valid_to) == ("f3", at(20))
        assert (history["f3"].superseded_by, history["f3"].valid_to) == ("f4", at(30))
        assert await store.search_facts(ANA, "Oslo", limit=5) == ()

    async def test_what_was_said_before_the_fact_that_it_would_replace_takes_no_place(
        self, store: Store
    ) -> None:
        await tape(store, 1)
        old = fact("f1", "lives in Rome", valid_from=at(10))
        await store.save_facts(new(old))
        now = said("f2", summary="lives in Oslo", valid_from=at(20))
        await store.save_facts(new(now, f1="f2"))
        await store.save_facts(
            said_again("f2", said("f3", OTHER, summary="lives in Oslo", valid_from=at(1)))
        )

        await store.delete(REF)

        assert await store.facts(ANA, history=True) == (old,)

    async def test_a_fact_is_current_again_though_its_words_were_also_in_what_is_erased(
        self, store: Store
    ) -> None:
        await tape(store, 1)
        bees = said("f1", OTHER, valid_from=at(1))
        await store.save_facts(new(bees))
        await store.save_facts(new(said("f2", summary="keeps no bees"), f1="f2"))
        await store.save_facts(new(said("f3")))

        await store.delete(REF)

        assert await store.facts(ANA, history=True) == (bees,)
        assert await store.search_facts(ANA, "bees", limit=5) == (bees,)

    async def test_two_facts_with_the_same_words_hold_again_as_a_fact_and_its_repetition(
        self, store: Store
    ) -> None:
        for ref in (REF, OTHER):
            await tape(store, 1, ref)
        third = ConversationRef("default", "third")
        await store.save_facts(new(said("f1", third, summary="lives in Rome")))
        await store.save_facts(new(said("f2", summary="lives in Oslo"), f1="f2"))
        again = said("f3", third, 7, summary="lives in Rome")
        await store.save_facts(new(again))
        bern = said("f4", OTHER, summary="lives in Bern")
        await store.save_facts(new(bern, f2="f4", f3="f4"))

        await store.delete(REF)
        await store.delete(OTHER)

        (fact,) = await store.facts(ANA, history=True)
        assert (fact.id, fact.valid_to, fact.superseded_by) == ("f1", None, None)
        assert await store.repetitions(ANA) == said_again("f1", again).repetitions

    async def test_facts_that_go_together_leave_nothing_that_holds_again(
        self, store: Store
    ) -> None:
        await tape(store, 1)
        rome, again = said("f1", summary="lives in Rome"), said("f4", summary="lives in Rome")
        await store.save_facts(new(rome))
        await store.save_facts(new(said("f2", summary="lives in Oslo", valid_from=at(5)), f1="f2"))
        await store.save_facts(new(replace(again, valid_from=at(6)), f2="f4"))

        await store.delete(REF)

        assert await store.facts(ANA, history=True) == ()
        assert await store.repetitions(ANA) == ()

    async def test_no_fact_ends_before_it_begins(self, store: Store) -> None:
        for ref in (REF, OTHER):
            await tape(store, 1, ref)
        later = said("f2", OTHER, summary="lives in Rome", valid_from=at(9))
        await store.save_facts(new(said("f1", summary="lives in Rome", valid_from=at(1))))
        await store.save_facts(said_again("f1", later))
        oslo = fact("f3", "lives in Oslo", valid_from=at(5))
        await store.save_facts(new(oslo, f1="f3"))
        await store.save_facts(new(fact("f4", "has lived in Bern", valid_from=at(0)), f3="f4"))

        await store.delete(REF)

        history = {each.id: each for each in await store.facts(ANA, history=True)}
        assert history["f2"].valid_to == history["f2"].valid_from == at(9)
        assert history["f3"].valid_to == history["f3"].valid_from == at(5)

    async def test_contexts_that_show_the_words_of_an_erased_fact_are_made_anew(
        self, store: Store
    ) -> None:
        state = await tape(store, 1, OTHER)
        await tape(store, 1)
        await store.save_facts(new(said("f1")))
        await store.save_facts(said_again("f1", said("f2", OTHER)))
        await store.pin_facts(state, ANA, FactsPin(marker="m", text="keeps bees", at=at(1)))

        await store.delete(REF)

        snapshot = await store.snapshot(OTHER, tail_tokens=9)
        assert snapshot is not None
        assert snapshot.facts is None
        assert not await store.pin_facts(state, ANA, FactsPin(marker="m", text="late", at=at(1)))

    async def test_a_fact_that_is_repeated_while_its_source_is_deleted_is_not_lost(
        self, store: Store, other: Store
    ) -> None:
        for number in range(10):
            source = ConversationRef("default", f"chat {number}")
            await tape(store, 1, source)
            summary = f"keeps {number} bees"
            await store.save_facts(new(said(f"f{number}", source, summary=summary)))
            again = said_again(f"f{number}", said(f"r{number}", OTHER, number, summary=summary))
            async with asyncio.TaskGroup() as group:
                group.create_task(store.delete(source))
                saving = group.create_task(other.save_facts(again))

            left = [each.id for each in await store.facts(ANA) if each.summary == summary]
            assert left == ([] if saving.result() is None else [f"r{number}"])

    async def test_nothing_is_left_of_a_forgotten_user(self, store: Store) -> None:
        await tape(store, 1)
        await store.save_facts(new(said("f1")))
        await store.save_facts(said_again("f1", said("f2", OTHER)))

        await store.forget_user(ANA)

        assert await store.facts(ANA, history=True) == ()
        assert await store.repetitions(ANA) == ()
