"""Scheduled looks: a change of a conversation's memory schedules one, and pages are in order."""

import pytest

from remanence.protocols import Store
from remanence.testing.store_contract.handles import Handles
from remanence.testing.store_contract.samples import (
    REF,
    active,
    at,
    expect_state,
    failure,
    observation,
    tape,
)
from remanence.types import ConversationRef, Look, MemoryState, Message


async def _plan(store: Store) -> list[ConversationRef]:
    return [look.ref for look in await store.looks(after=None, limit=100)]


async def _resting(store: Store, messages: int = 4) -> MemoryState:
    state = await tape(store, messages)
    assert await store.rest(state, at=None, tokens=state.last_sum_tokens + 100)
    return state


class LookContract(Handles):
    """`looks`, `backlog`, `rest`, `use_look_rules`, `forget_failures` and `outcomes`."""

    async def test_a_first_message_plans_a_look(self, store: Store) -> None:
        await tape(store, 1)

        assert await _plan(store) == [REF]

    async def test_a_conversation_at_rest_is_found_by_no_look(self, store: Store) -> None:
        await _resting(store)

        assert await _plan(store) == []

    async def test_a_tape_that_grows_beyond_the_planned_tokens_plans_a_look(
        self, store: Store
    ) -> None:
        state = await _resting(store)
        small = Message.user("Hello.").replace(tokens=100)
        grown = await store.append(REF, [small], user="ana")
        assert await _plan(store) == []
        assert grown.state.look_at is None

        grown = await store.append(REF, [small.replace(tokens=1)], user="ana")

        assert grown.state.last_sum_tokens == state.last_sum_tokens + 101
        assert grown.state.look_at is not None
        assert await _plan(store) == [REF]

    @pytest.mark.parametrize("change", ["observe", "activate", "fail"])
    async def test_a_change_of_the_memory_plans_a_look(self, store: Store, change: str) -> None:
        await active(store, [(1, 2)])
        state = await tape(store, 3)
        state = expect_state(await store.commit_observation(state, observation(3, 4)))
        assert await store.rest(state, at=None, tokens=10_000)

        if change == "observe":
            await store.commit_observation(state, observation(5, 5))
        elif change == "activate":
            await store.activate(state, active_seq=4, tail_seq=5, at=at(9))
        else:
            await store.record_failure(state, failure())

        assert await _plan(store) == [REF]

    async def test_a_rest_that_others_overtook_plans_nothing(self, store: Store) -> None:
        state = await tape(store, 4)
        await tape(store, 1)

        assert not await store.rest(state, at=None, tokens=10_000)

        assert await _plan(store) == [REF]

    async def test_looks_come_in_order_of_time_page_by_page(self, store: Store) -> None:
        refs = [ConversationRef("default", name) for name in "abcde"]
        for number, ref in enumerate(refs):
            state = (await store.append(ref, [Message.user("Hello.")], user=None)).state
            assert await store.rest(state, at=at(50 - 10 * (number // 2)), tokens=10_000)

        found: list[Look] = []
        while page := await store.looks(
            after=(found[-1].at, found[-1].key) if found else None, limit=2
        ):
            found += page

        assert "".join(look.ref.id for look in found) == "ecdab"
        assert [look.at for look in found] == [at(30), at(40), at(40), at(50), at(50)]

    async def test_the_backlog_has_what_is_due_up_to_a_limit(self, store: Store) -> None:
        for number, name in enumerate("abcd"):
            ref = ConversationRef("default", name)
            message = Message.user("Hello.").replace(tokens=100 + number)
            state = (await store.append(ref, [message], user=None)).state
            assert await store.rest(state, at=at(10 * number), tokens=10_000)

        assert await store.backlog(now=at(25), limit=10) == (3, 303, 1_500.0)
        assert await store.backlog(now=at(25), limit=2) == (2, 201, 1_500.0)
        assert await store.backlog(now=at(-1), limit=10) == (0, 0, 0.0)

    async def test_other_rules_plan_a_look_at_everything_once(self, store: Store) -> None:
        await store.use_look_rules("one", at=at(1))
        await _resting(store)

        assert not await store.use_look_rules("one", at=at(2))
        assert await _plan(store) == []
        assert await store.use_look_rules("other", at=at(3))

        assert await _plan(store) == [REF]
        assert not await store.use_look_rules("other", at=at(4))

    async def test_failures_are_forgotten_on_demand(self, store: Store) -> None:
        state = await tape(store, 4)
        state = expect_state(await store.record_failure(state, failure("observe", failures=9)))
        state = expect_state(await store.record_failure(state, failure("facts", failures=1)))

        after = expect_state(await store.forget_failures(state, at=at(9)))

        assert (after.failures, after.last_error) == (0, None)
        assert [entry.kind for entry in await store.log(REF)] == ["failed", "failed", "retried"]
        assert await store.forget_failures(after, at=at(9)) is None

    async def test_the_end_of_a_lease_by_a_clock_that_is_ahead_is_moved_back(
        self, store: Store
    ) -> None:
        state = await tape(store, 4)
        assert await store.lease(state, owner="ahead", now=at(3_600), until=at(3_610))

        assert not await store.lease(state, owner="other", now=at(0), until=at(10))

        assert not await store.lease(state, owner="other", now=at(9), until=at(10))
        assert await store.lease(state, owner="other", now=at(10), until=at(20))

    async def test_a_look_names_who_works_on_the_conversation(self, store: Store) -> None:
        state = await tape(store, 4)
        await store.lease(state, owner="one", now=at(0), until=at(10))

        (look,) = await store.looks(after=None, limit=10)

        assert (look.lease_owner, look.lease_until) == ("one", at(10))

    async def test_the_outcomes_of_steps_come_newest_first(self, store: Store) -> None:
        first = await tape(store, 4)
        other = ConversationRef("other", "b")
        second = (await store.append(other, [Message.user("Hello.")], user=None)).state
        first = expect_state(await store.commit_observation(first, observation(1, 2)))
        first = expect_state(await store.activate(first, active_seq=2, tail_seq=3, at=at(61)))
        await store.record_failure(second, failure("facts", at=at(62)))
        await store.record_failure(first, failure(failures=0, skips=1, at=at(63)))

        newest = await store.outcomes(since=at(0), limit=10)

        assert [entry.kind for entry in newest] == ["failed", "observed"]
        assert newest[0].detail.startswith("facts: ")
        assert await store.outcomes(since=at(0), limit=1) == newest[:1]
        assert await store.outcomes(since=at(62), limit=10) == newest[:1]
