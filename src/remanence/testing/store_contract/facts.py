"""Facts: one owner's, superseded with dates, erased with their conversation."""

import asyncio
from dataclasses import replace
from math import inf

import pytest

from remanence.errors import StoreError
from remanence.protocols import Store
from remanence.testing.store_contract.handles import Handles
from remanence.testing.store_contract.samples import (
    ANA,
    BOB,
    REF,
    at,
    expect_state,
    fact,
    failure,
    new,
    observe_ranges,
    tape,
)
from remanence.types import ConversationRef, FactChanges, FactsPin, Owner

ANA_ELSEWHERE = Owner("other", "ana")


class FactContract(Handles):
    """`save_facts`, `commit_facts`, `facts`, `fact`, `search_facts`, `forget_fact`, `pin_facts`."""

    async def test_facts_are_read_in_pages(self, store: Store) -> None:
        await store.save_facts(new(*(fact(f"f{n}", f"keeps bee {n}") for n in range(5))))
        await store.save_facts(new(fact("f5", "keeps wasps"), f2="f5"))

        first = await store.facts(ANA, limit=3)
        rest = await store.facts(ANA, after=first[-1].id)

        assert [each.id for each in first + rest] == ["f5", "f4", "f3", "f1", "f0"]
        behind = await store.facts(ANA, history=True, after="f3", limit=2)
        assert [each.id for each in behind] == ["f2", "f1"]
        assert await store.facts(BOB, after="f3") == ()

    async def test_facts_go_on_behind_the_place_of_an_erased_one(self, store: Store) -> None:
        await store.save_facts(new(*(fact(f"f{n}", f"keeps bee {n}") for n in range(5))))
        seen = await store.facts(ANA, limit=2)
        for erased in (seen[-1].id, "f0"):
            await store.forget_fact(ANA, erased)

        rest = await store.facts(ANA, after=seen[-1].id)

        assert [each.id for each in rest] == ["f2", "f1"]
        assert await store.facts(ANA, after="f0") == ()

    async def test_a_saved_fact_is_read_as_it_was_written(self, store: Store, other: Store) -> None:
        whole = fact("f1", "keeps bees", conversation="chat", first_seq=3, last_seq=4, type="skill")

        assert await store.save_facts(new(whole)) == (whole,)
        assert await other.facts(ANA) == (whole,)
        assert await other.fact(ANA, "f1") == whole

    async def test_facts_of_most_worth_are_found(self, store: Store) -> None:
        facts = [fact(f"f{n}", f"fact {n}") for n in range(6)]
        worth = {"f0": inf, "f1": 0.5, "f2": 9.0, "f4": 0.5, "f5": -2.0}
        await store.save_facts(replace(new(*facts, f2="f5"), worth=worth))

        assert [f.id for f in await store.lasting_facts(ANA, limit=3)] == ["f4", "f1", "f0"]
        assert len(await store.lasting_facts(ANA, limit=9)) == 4
        assert await store.lasting_facts(BOB, limit=9) == ()

    async def test_a_revived_fact_keeps_its_worth(self, store: Store) -> None:
        first = fact("f1", "lives in Rome")
        await store.save_facts(replace(new(first), worth={"f1": 0.5}))
        await store.save_facts(new(fact("f2", "lives in Oslo", conversation=REF.id), f1="f2"))
        await tape(store, 1)
        await store.delete(REF)

        assert await store.lasting_facts(ANA, limit=1) == (first,)

    async def test_facts_come_newest_first_and_no_more_than_asked_for(self, store: Store) -> None:
        await store.save_facts(new(*(fact(f"f{n}", f"fact {n}") for n in range(4))))

        assert [f.id for f in await store.facts(ANA)] == ["f3", "f2", "f1", "f0"]
        assert [f.id for f in await store.facts(ANA, limit=2)] == ["f3", "f2"]

    async def test_nobody_sees_facts_of_others(self, store: Store) -> None:
        await store.save_facts(new(fact("f1", "keeps bees")))

        for stranger in (BOB, ANA_ELSEWHERE):
            assert await store.facts(stranger, history=True) == ()
            assert await store.fact(stranger, "f1") is None
            assert await store.search_facts(stranger, "bees", limit=5) == ()
            assert not await store.forget_fact(stranger, "f1")
        assert len(await store.facts(ANA)) == 1

    async def test_equal_words_are_one_fact(self, store: Store) -> None:
        (first,) = await store.save_facts(new(fact("f1", "Keeps bees"))) or ()

        assert await store.save_facts(new(fact("f2", "keeps  BEES."))) == (first,)
        assert await store.facts(ANA) == (first,)

    async def test_a_replaced_fact_ends_and_stays_in_history(self, store: Store) -> None:
        await store.save_facts(new(fact("f1", "lives in Rome")))
        await store.save_facts(new(fact("f2", "lives in Oslo", valid_from=at(9)), f1="f2"))

        assert [f.id for f in await store.facts(ANA)] == ["f2"]
        now, old = await store.facts(ANA, history=True)
        assert (now.valid_to, old.valid_to, old.superseded_by) == (None, at(9), "f2")
        assert await store.search_facts(ANA, "Rome", limit=5) == ()

    async def test_a_fact_may_end_without_a_successor(self, store: Store, other: Store) -> None:
        first = fact("f1", "lives in Rome", valid_from=at(1))
        await store.save_facts(new(first, fact("f2", "keeps bees")))
        ended = FactChanges(ended=(replace(first, valid_to=at(9)),), newest="f2")

        assert await store.save_facts(ended) == ()

        assert [each.id for each in await other.facts(ANA)] == ["f2"]
        _, old = await other.facts(ANA, history=True)
        assert (old.valid_to, old.superseded_by) == (at(9), None)
        assert await store.search_facts(ANA, "Rome", limit=5) == ()
        gone = replace(first, id="gone", valid_to=at(9))
        assert await store.save_facts(FactChanges(ended=(gone,))) is None

    async def test_what_holds_no_more_cannot_be_replaced_again(self, store: Store) -> None:
        await store.save_facts(new(fact("f1", "lives in Rome")))
        await store.save_facts(new(fact("f2", "lives in Oslo"), f1="f2"))

        assert await store.save_facts(new(fact("f3", "lives in Bonn"), f1="f3")) is None
        assert [f.id for f in await store.facts(ANA)] == ["f2"]

    async def test_a_fact_that_was_said_between_two_takes_its_place_between_them(
        self, store: Store
    ) -> None:
        await store.save_facts(new(fact("f1", "lives in Rome", valid_from=at(1))))
        await store.save_facts(new(fact("f2", "lives in Oslo", valid_from=at(9)), f1="f2"))
        bern = fact("f3", "lives in Bern", valid_from=at(5), valid_to=at(9), superseded_by="f2")

        assert await store.save_facts(new(bern, f1="f3")) == (bern,)

        history = {each.id: each for each in await store.facts(ANA, history=True)}
        assert (history["f1"].valid_to, history["f1"].superseded_by) == (at(5), "f3")
        assert [each.id for each in await store.facts(ANA)] == ["f2"]
        assert await store.search_facts(ANA, "Bern", limit=5) == ()
        late = fact("f4", "lives in Bonn", valid_to=at(9), superseded_by="f2")
        assert await store.save_facts(new(late, f1="f4")) is None
        gone = fact("f5", "lives in Kyiv", valid_to=at(9), superseded_by="gone")
        assert await store.save_facts(new(gone)) is None

    async def test_a_fact_may_be_replaced_by_another_new_one(self, store: Store) -> None:
        await store.save_facts(new(fact("f1", "lives in Rome")))
        oslo, bern = fact("f2", "lives in Oslo"), fact("f3", "lives in Bern", valid_from=at(9))

        await store.save_facts(new(oslo, bern, f1="f2", f2="f3"))

        assert await store.facts(ANA) == (bern,)
        history = await store.facts(ANA, history=True)
        assert [each.superseded_by for each in history] == [None, "f3", "f2"]
        assert await store.search_facts(ANA, "Oslo Rome", limit=5) == ()

    async def test_a_fact_is_not_replaced_by_one_with_its_own_words(self, store: Store) -> None:
        first = fact("f1", "lives in Rome")
        await store.save_facts(new(first))

        assert await store.save_facts(new(fact("f2", "Lives in Rome."), f1="f2")) == (first,)
        assert await store.facts(ANA) == (first,)

    async def test_facts_that_were_not_compared_with_the_newest_are_not_written(
        self, store: Store
    ) -> None:
        first = replace(new(fact("f1", "lives in Rome")), newest="")
        late = replace(new(fact("f2", "lives in Oslo")), newest="")

        assert await store.save_facts(first) is not None
        assert await store.save_facts(late) is None
        assert await store.save_facts(replace(late, newest="f1")) is not None

    async def test_facts_not_compared_with_one_outdated_when_said_are_not_written(
        self, store: Store
    ) -> None:
        later, outdated = fact("f1", "lives in Bern"), fact("f2", "lives in Rome")
        late = replace(new(fact("f3", "lives in Oslo")), newest="f1", newest_ever="f1")
        await store.save_facts(new(later))
        ended = replace(outdated, valid_to=later.valid_from, superseded_by="f1")
        assert await store.save_facts(FactChanges(facts=(ended,)))

        assert await store.save_facts(late) is None
        assert await store.save_facts(replace(late, newest_ever="f2")) is not None

    async def test_one_of_two_rivals_replaces_a_fact(self, store: Store, other: Store) -> None:
        await store.save_facts(new(fact("f1", "lives in Rome")))
        async with asyncio.TaskGroup() as group:
            tries = [
                group.create_task(handle.save_facts(new(fact(id_, f"lives in {id_}"), f1=id_)))
                for handle, id_ in ((store, "f2"), (other, "f3"))
            ]

        assert sorted(task.result() is None for task in tries) == [False, True]
        assert len(await store.facts(ANA)) == 1

    @pytest.mark.parametrize("query", ["bees", "BEE", "꿀벌", "蜜蜂"])
    async def test_a_word_of_a_fact_is_found_in_any_script(self, store: Store, query: str) -> None:
        keeper = fact("f1", "keeps bees / 꿀벌을 길러요 / 我养蜜蜂")
        await store.save_facts(new(keeper, fact("f2", "plays the cello")))

        assert await store.search_facts(ANA, query, limit=5) == (keeper,)

    async def test_a_search_gives_the_best_first_and_no_more_than_asked_for(
        self, store: Store
    ) -> None:
        texts = ("red wine", "red bicycle", "a bicycle", "tea")
        await store.save_facts(new(*(fact(text, text) for text in texts)))

        assert [f.id for f in await store.search_facts(ANA, "red bicycle", limit=1)] == [
            "red bicycle"
        ]
        assert await store.search_facts(ANA, "red bicycle", limit=0) == ()
        assert await store.search_facts(ANA, '"(', limit=5) == ()

    async def test_a_condition_on_facts_is_kept_also_behind_better_matches(
        self, store: Store
    ) -> None:
        for day in range(30):
            await store.save_facts(new(fact(f"f{day}", f"ran {day} km", valid_from=at(day))))
        long = fact("g1", "ran and rested for most of the day", valid_from=at(3))
        await store.save_facts(new(long))

        found = await store.search_facts(
            ANA, "ran", limit=2, only=lambda each: each.valid_from == at(3)
        )

        assert [each.id for each in found] == ["f3", "g1"]

    async def test_forgetting_takes_along_what_was_superseded(self, store: Store) -> None:
        await store.save_facts(new(fact("f1", "lives in Rome")))
        await store.save_facts(new(fact("f2", "lives in Oslo"), f1="f2"))
        await store.save_facts(new(fact("f3", "lives in Bonn"), f2="f3"))
        await store.save_facts(new(fact("f4", "keeps bees")))

        assert await store.forget_fact(ANA, "f3")
        assert not await store.forget_fact(ANA, "f3")
        assert [f.id for f in await store.facts(ANA, history=True)] == ["f4"]
        assert await store.search_facts(ANA, "Bonn", limit=5) == ()

    async def test_a_commit_brings_facts_and_moves_the_cursor(self, store: Store) -> None:
        state = await observe_ranges(store, [(1, 2), (3, 4)])
        kept = fact("f1", "keeps bees", conversation=REF.id)

        after = expect_state(await store.commit_facts(state, new(kept), facts_seq=2, at=at(80)))

        assert (after.facts_seq, after.lock_version) == (2, state.lock_version + 1)
        assert await store.state(REF) == after
        assert await store.facts(ANA) == (kept,)
        assert (await store.log(REF))[-1].kind == "facts"

    async def test_a_second_commit_of_the_same_range_writes_nothing(self, store: Store) -> None:
        state = await observe_ranges(store, [(1, 2)])
        await store.commit_facts(state, new(fact("f1", "keeps bees")), facts_seq=2, at=at(80))

        late = await store.commit_facts(state, new(fact("f2", "is late")), facts_seq=2, at=at(81))

        assert late is None
        assert [f.id for f in await store.facts(ANA)] == ["f1"]

    async def test_a_commit_that_would_replace_what_is_gone_writes_nothing(
        self, store: Store
    ) -> None:
        state = await observe_ranges(store, [(1, 2)])

        late = await store.commit_facts(
            state, new(fact("f2", "lives in Oslo"), f1="f2"), facts_seq=2, at=at(80)
        )

        assert late is None
        assert await store.state(REF) == state
        assert await store.facts(ANA) == ()

    async def test_facts_may_be_extracted_up_to_the_end_of_the_tape(self, store: Store) -> None:
        state = await observe_ranges(store, [(1, 2)])
        await tape(store, 4)

        with pytest.raises(StoreError, match="facts_seq=7"):
            await store.commit_facts(state, FactChanges(), facts_seq=7, at=at(80))
        after = expect_state(await store.commit_facts(state, FactChanges(), facts_seq=6, at=at(80)))

        assert (after.facts_seq, after.observed_seq) == (6, 2)

    async def test_a_failure_of_facts_is_kept_and_forgotten_with_success(
        self, store: Store
    ) -> None:
        state = await observe_ranges(store, [(1, 2)])

        failed = expect_state(await store.record_failure(state, failure("facts")))
        retried = expect_state(
            await store.commit_facts(failed, FactChanges(), facts_seq=2, at=at(80))
        )

        assert failed.facts_failure == failure("facts")
        assert (retried.facts_failure, retried.failures) == (None, 0)

    async def test_a_deleted_conversation_takes_its_facts_along(self, store: Store) -> None:
        await tape(store, 1)
        elsewhere = fact("f2", "plays the cello", conversation="another")
        namesake = fact("f3", "reads", ANA_ELSEWHERE, conversation=REF.id)
        await store.save_facts(new(fact("f1", "keeps bees", conversation=REF.id), elsewhere))
        await store.save_facts(new(namesake))

        await store.delete(REF)

        assert await store.facts(ANA, history=True) == (elsewhere,)
        assert await store.facts(ANA_ELSEWHERE) == (namesake,)
        assert await store.search_facts(ANA, "bees", limit=5) == ()

    async def test_a_deleted_conversation_leaves_the_facts_of_other_users(
        self, store: Store
    ) -> None:
        early = fact("f1", "keeps bees", BOB, conversation=REF.id)  # before ana began it
        await store.save_facts(new(early))
        await tape(store, 1)

        await store.delete(REF)

        assert await store.facts(BOB) == (early,)

    async def test_what_an_erased_fact_had_replaced_holds_again(self, store: Store) -> None:
        await tape(store, 1)
        old = fact("f1", "lives in Rome")
        await store.save_facts(new(old))
        await store.save_facts(new(fact("f2", "lives in Oslo", conversation=REF.id), f1="f2"))

        await store.delete(REF)

        assert await store.facts(ANA, history=True) == (old,)
        assert await store.search_facts(ANA, "Rome", limit=5) == (old,)

    async def test_what_an_erased_fact_had_replaced_stays_replaced_by_its_successor(
        self, store: Store
    ) -> None:
        await tape(store, 1)
        await store.save_facts(new(fact("f1", "lives in Rome")))
        await store.save_facts(new(fact("f2", "lives in Oslo", conversation=REF.id), f1="f2"))
        newest = fact("f3", "lives in Bern", valid_from=at(9))
        await store.save_facts(new(newest, f2="f3"))

        await store.delete(REF)

        assert await store.facts(ANA) == (newest,)
        first = await store.fact(ANA, "f1")
        assert first is not None
        assert (first.superseded_by, first.valid_to) == ("f3", newest.valid_from)

    async def test_work_on_a_deleted_conversation_brings_no_facts(
        self, store: Store, other: Store
    ) -> None:
        state = await observe_ranges(store, [(1, 2)])
        await other.delete(REF)
        pin = FactsPin(marker="m", text="text", at=at(1))

        late = await store.commit_facts(state, new(fact("f1", "late")), facts_seq=2, at=at(80))

        assert late is None
        assert await store.facts(ANA) == ()
        assert not await store.pin_facts(state, ANA, pin)

    async def test_pinned_facts_come_with_the_snapshot(self, store: Store, other: Store) -> None:
        state = await tape(store, 1)
        first, second = (FactsPin(marker=m, text=f"text {m}", at=at(1)) for m in "ab")

        assert await store.pin_facts(state, ANA, first)
        assert await other.pin_facts(state, ANA, second)

        snapshot = await store.snapshot(REF, tail_tokens=100)
        assert snapshot is not None
        assert snapshot.facts == second

    async def test_erasing_a_fact_unpins_what_may_show_it(self, store: Store) -> None:
        mine = await tape(store, 1)
        theirs_ref = ConversationRef("default", "bobs")
        theirs = await tape(store, 1, theirs_ref)
        pin = FactsPin(marker="m", text="keeps bees", at=at(1))
        await store.save_facts(new(fact("f1", "keeps bees")))
        await store.pin_facts(mine, ANA, pin)
        await store.pin_facts(theirs, BOB, pin)

        await store.forget_fact(ANA, "f1")

        snapshots = [await store.snapshot(ref, tail_tokens=9) for ref in (REF, theirs_ref)]
        assert [s.facts if s else None for s in snapshots] == [None, pin]

    async def test_a_request_to_forget_unpins_what_its_user_took_back(self, store: Store) -> None:
        other = ConversationRef("default", "other")
        state, shown_in = await tape(store, 2), await tape(store, 1, other)
        await store.save_facts(new(told := fact("f1", "keeps bees")))
        await store.pin_facts(shown_in, ANA, FactsPin(marker="m", text="keeps bees", at=at(1)))
        ended = (replace(told, valid_to=at(9)),)
        changes = FactChanges(ended=ended, newest="f1", requests=1)

        assert await store.commit_facts(state, changes, facts_seq=2, at=at(80))

        snapshot = await store.snapshot(other, tail_tokens=9)
        assert snapshot is not None
        assert snapshot.facts is None

    async def test_a_request_to_forget_that_ends_no_fact_keeps_the_pins(self, store: Store) -> None:
        state = await tape(store, 2)
        pin = FactsPin(marker="m", text="keeps bees", at=at(1))
        await store.save_facts(new(fact("f1", "keeps bees")))
        await store.pin_facts(state, ANA, pin)

        assert await store.commit_facts(state, FactChanges(requests=1), facts_seq=2, at=at(80))

        snapshot = await store.snapshot(REF, tail_tokens=9)
        assert snapshot is not None
        assert snapshot.facts == pin

    async def test_replacing_a_fact_unpins_it_and_a_new_one_does_not(self, store: Store) -> None:
        state = await tape(store, 1)
        pin = FactsPin(marker="m", text="lives in Rome", at=at(1))
        await store.save_facts(new(fact("f1", "lives in Rome")))
        await store.pin_facts(state, ANA, pin)

        shown = []
        for changes in (new(fact("f2", "keeps bees")), new(fact("f3", "lives in Oslo"), f1="f3")):
            await store.save_facts(changes)
            snapshot = await store.snapshot(REF, tail_tokens=9)
            shown.append(snapshot and snapshot.facts)

        assert shown == [pin, None]
