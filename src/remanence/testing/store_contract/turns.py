"""Turns: one owner at a time, also before the first message of a conversation."""

import asyncio

import pytest

from remanence.errors import TurnTaken
from remanence.protocols import Store
from remanence.testing.store_contract.handles import Handles
from remanence.testing.store_contract.samples import REF, at, user


class TurnContract(Handles):
    """Taking, renewing and ending turns, and appending under a turn."""

    async def test_a_turn_keeps_others_out_until_it_ends(self, store: Store, other: Store) -> None:
        assert await store.take_turn(REF, owner="a", now=at(0), until=at(5)) is None
        assert await other.take_turn(REF, owner="b", now=at(1), until=at(6)) == at(5)

        await store.end_turn(REF, owner="a")

        assert await other.take_turn(REF, owner="b", now=at(1), until=at(6)) is None

    async def test_a_turn_that_is_prolonged_ends_later(self, store: Store, other: Store) -> None:
        await store.take_turn(REF, owner="a", now=at(0), until=at(5))

        assert await store.prolong_turn(REF, owner="a", until=at(9))
        assert await other.take_turn(REF, owner="b", now=at(8.9), until=at(14)) == at(9)
        assert await other.take_turn(REF, owner="b", now=at(9), until=at(14)) is None
        assert not await store.prolong_turn(REF, owner="a", until=at(20))

    async def test_a_turn_known_to_be_dead_is_taken_over_whatever_its_end(
        self, store: Store, other: Store
    ) -> None:
        await store.take_turn(REF, owner="a", now=at(0), until=at(5_000))

        assert await other.take_turn(REF, owner="b", now=at(0), until=at(5), dead=at(4_999))
        assert not await other.take_turn(REF, owner="b", now=at(0), until=at(5), dead=at(5_000))

    async def test_only_its_owner_ends_a_turn(self, store: Store) -> None:
        await store.take_turn(REF, owner="a", now=at(0), until=at(5))

        await store.end_turn(REF, owner="b")

        assert await store.take_turn(REF, owner="b", now=at(1), until=at(6)) == at(5)

    async def test_one_of_many_rivals_gets_the_turn(self, store: Store, other: Store) -> None:
        async with asyncio.TaskGroup() as group:
            taking = [
                group.create_task(
                    handle.take_turn(REF, owner=f"{name}{number}", now=at(0), until=at(5))
                )
                for number in range(5)
                for name, handle in (("a", store), ("b", other))
            ]

        assert [task.result() for task in taking].count(None) == 1

    async def test_what_is_appended_under_a_lost_turn_is_refused(
        self, store: Store, other: Store
    ) -> None:
        await store.take_turn(REF, owner="a", now=at(0), until=at(5))
        await store.append(REF, [user("one")], user=None, turn="a")
        await other.take_turn(REF, owner="b", now=at(6), until=at(9))

        with pytest.raises(TurnTaken, match="send the message again"):
            await store.append(REF, [user("two")], user=None, turn="a")
        await other.append(REF, [user("three")], user=None, turn="b")

        messages = await store.messages(REF, after=0, limit=None)
        assert [message.text for message in messages] == ["one", "three"]

    async def test_deleting_a_conversation_ends_its_turn(self, store: Store) -> None:
        await store.take_turn(REF, owner="a", now=at(0), until=at(5))
        await store.append(REF, [user("one")], user=None, turn="a")
        await store.delete(REF)

        assert not await store.prolong_turn(REF, owner="a", until=at(9))
        with pytest.raises(TurnTaken):
            await store.append(REF, [user("two")], user=None, turn="a")
        assert await store.state(REF) is None
