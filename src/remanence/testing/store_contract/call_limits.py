"""Rate limits of models: one rate and one pause for all handles."""

import asyncio
from datetime import datetime, timedelta

from remanence.protocols import Store
from remanence.testing.store_contract.handles import Handles
from remanence.testing.store_contract.samples import START, at
from remanence.types import CallPermit, ModelPause

ALLOWED = CallPermit()


def after(seconds: float) -> datetime:
    """A time after START."""
    return START + timedelta(seconds=seconds)


async def take(
    store: Store,
    seconds: float,
    *,
    share: float = 0.0,
    is_follow_up: bool = False,
    waited: bool = False,
) -> CallPermit:
    """Ask for a call of one model."""
    now = after(seconds)
    return await store.take_call(
        "m", share=share, is_follow_up=is_follow_up, waited=waited, now=now
    )


class CallLimitContract(Handles):
    """`take_call`, `pause_calls`, `resume_calls` and `paused_models`."""

    async def test_calls_without_a_limit_do_not_wait(self, store: Store) -> None:
        assert [await take(store, 0) for _ in range(3)] == [ALLOWED] * 3

    async def test_no_minute_has_more_calls_than_the_limit_and_few_are_lost(
        self, store: Store, other: Store
    ) -> None:
        allowed = [
            second
            for second in range(0, 180, 2)
            for handle in (store, other)
            if await take(handle, second, share=1 / 20, waited=second > 0) == ALLOWED
        ]

        assert max(sum(0 <= each - first < 60 for each in allowed) for first in allowed) == 20
        assert len(allowed) >= 0.9 * 3 * 20

    async def test_calls_of_one_instant_are_counted_one_by_one(
        self, store: Store, other: Store
    ) -> None:
        async with asyncio.TaskGroup() as group:
            asked = [
                group.create_task(take(handle, 0, share=1 / 60))
                for _ in range(6)
                for handle in (store, other)
            ]
        waits = [task.result().wait_until for task in asked]

        assert waits.count(None) == 6
        assert len({wait for wait in waits if wait is not None}) == 6

    async def test_those_who_wait_are_told_times_a_share_apart(
        self, store: Store, other: Store
    ) -> None:
        assert await take(store, 0, share=1) == ALLOWED

        waits = [(await take(handle, 1, share=1)).wait_until for handle in (store, other, store)]

        assert waits == [after(60), after(126), after(192)]
        assert await take(other, 60, share=1, waited=True) == ALLOWED

    async def test_those_who_wait_go_before_those_who_ask_anew(
        self, store: Store, other: Store
    ) -> None:
        await take(store, 0, share=1)
        await take(store, 1, share=1)

        assert (await take(other, 61, share=1)).wait_until == after(126)
        assert await take(store, 61, share=1, waited=True) == ALLOWED

    async def test_a_place_that_those_who_wait_leave_is_not_lost(
        self, store: Store, other: Store
    ) -> None:
        await take(store, 0, share=1)
        await take(store, 1, share=1)

        assert await take(other, 66, share=1) == ALLOWED

    async def test_work_that_was_begun_is_counted_and_never_waits(self, store: Store) -> None:
        for _ in range(2):
            assert await take(store, 0, share=1, is_follow_up=True) == ALLOWED

        assert (await take(store, 0, share=1)).wait_until == after(2 * 66 - 6)

    async def test_work_that_was_begun_waits_for_a_pause(self, store: Store) -> None:
        await store.pause_calls("m", until=after(30))

        assert await take(store, 24, is_follow_up=True) == CallPermit(wait_until=after(30))
        assert await take(store, 30) == CallPermit(tests_pause=after(35))
        assert await take(store, 30, is_follow_up=True) == ALLOWED

    async def test_another_model_has_limits_of_its_own(self, store: Store) -> None:
        await take(store, 0, share=1)
        await store.pause_calls("m", until=at(9))

        assert (
            await store.take_call("n", share=1, is_follow_up=False, waited=False, now=START)
            == ALLOWED
        )

    async def test_a_pause_binds_all_until_an_answer_ends_it(
        self, store: Store, other: Store
    ) -> None:
        await store.pause_calls("m", until=after(30))
        await store.pause_calls("m", until=after(20))

        assert await other.paused_models(now=START) == (ModelPause("m", after(30)),)
        assert await take(other, 29) == CallPermit(wait_until=after(30))
        assert await take(other, 30) == CallPermit(tests_pause=after(35))
        assert await take(store, 30) == CallPermit(wait_until=after(35))
        assert await take(store, 36) == CallPermit(tests_pause=after(41))
        await other.resume_calls("m", paused_until=after(35))
        assert await take(other, 37) == CallPermit(wait_until=after(41))
        await store.resume_calls("m", paused_until=after(41))
        assert [await take(other, 37), await take(store, 37)] == [ALLOWED] * 2
        assert await other.paused_models(now=START) == ()

    async def test_a_pause_that_only_a_wrong_clock_can_have_made_is_not_believed(
        self, store: Store
    ) -> None:
        await store.pause_calls("m", until=at(3 * 24 * 60))

        assert await take(store, 0) == ALLOWED
