"""Handles on a database: each reads the writes of the others, and closing is final."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import ClassVar, TypeAlias

import pytest

from remanence.errors import Closed
from remanence.protocols import Store
from remanence.testing.store_contract.samples import (
    ANA,
    REF,
    at,
    failure,
    observation,
    reflection,
    tape,
    usage,
    user,
    users,
)
from remanence.types import (
    ConversationRef,
    Erasure,
    FactChanges,
    FactsPin,
    Keep,
    MemoryState,
    VectorTask,
)

OpenStore: TypeAlias = Callable[[], Awaitable[Store]]


class Handles:
    """The fixtures of every contract. `durable` is false if closing discards everything."""

    durable: ClassVar[bool] = True

    @pytest.fixture
    async def store(self, open_again: OpenStore) -> AsyncIterator[Store]:
        """Yield a handle on an empty database."""
        store = await open_again()
        yield store
        await store.close()

    @pytest.fixture
    async def other(self, store: Store, open_again: OpenStore) -> AsyncIterator[Store]:
        """Yield a second handle on the database of `store`."""
        if not self.durable:
            yield store
            return
        other = await open_again()
        yield other
        await other.close()


class HandleContract(Handles):
    """Closing, reopening, probes, leases, paging."""

    async def test_a_probe_leaves_nothing_behind(self, store: Store, other: Store) -> None:
        before = (await tape(store, 2)).last_seq
        for _ in range(3):
            await store.probe()
        appended = await other.append(REF, [user("later")], user="ana")

        assert appended.state.last_seq == before + 1
        assert [state.ref for state in await other.conversations()] == [REF]
        assert not await other.check()

    async def test_what_was_appended_is_there_after_reopening(
        self, store: Store, open_again: OpenStore
    ) -> None:
        if not self.durable:
            pytest.skip("this store forgets everything when it closes")
        appended = await store.append(REF, users(3), user="ana")
        await store.close()
        again = await open_again()

        assert await again.messages(REF, after=0, limit=None) == appended.messages
        assert await again.state(REF) == appended.state
        await again.close()

    async def test_another_handle_reads_what_was_just_appended(
        self, store: Store, other: Store
    ) -> None:
        appended = await store.append(REF, [user("hello")], user=None)

        assert await other.messages(REF, after=0, limit=None) == appended.messages

    async def test_closing_finishes_the_appends_that_were_asked_for(self, store: Store) -> None:
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(tape(store, 1)) for _ in range(20)]
            await asyncio.sleep(0)
            await store.close()

        assert sorted(task.result().last_seq for task in tasks) == list(range(1, 21))

    async def test_closing_twice_does_nothing(self, store: Store) -> None:
        await store.close()
        await store.close()

    async def test_a_closed_store_says_so(self, store: Store) -> None:
        state = await tape(store, 1)
        await store.close()

        for call in _every_call(store, state):
            with pytest.raises(Closed):
                await call

    async def test_a_lease_keeps_others_out_until_it_is_released(
        self, store: Store, other: Store
    ) -> None:
        state = await tape(store, 1)
        assert await store.lease(state, owner="a", now=at(0), until=at(5))
        assert not await other.lease(state, owner="b", now=at(1), until=at(6))

        await store.release(state, owner="a")

        assert await other.lease(state, owner="b", now=at(1), until=at(6))

    async def test_a_lease_is_prolonged_by_its_owner_and_ends_with_its_time(
        self, store: Store, other: Store
    ) -> None:
        state = await tape(store, 1)
        assert await store.lease(state, owner="a", now=at(0), until=at(5))
        assert await store.lease(state, owner="a", now=at(4), until=at(9))
        assert not await other.lease(state, owner="b", now=at(8.9), until=at(20))

        assert await other.lease(state, owner="b", now=at(9), until=at(20))

        taken = await store.state(REF)
        assert taken is not None
        assert (taken.lease_owner, taken.lease_until) == ("b", at(20))

    async def test_only_its_owner_releases_a_lease(self, store: Store) -> None:
        state = await tape(store, 1)
        await store.lease(state, owner="a", now=at(0), until=at(5))

        await store.release(state, owner="b")

        assert not await store.lease(state, owner="b", now=at(1), until=at(6))

    async def test_a_lease_does_not_disturb_a_commit(self, store: Store) -> None:
        state = await tape(store, 1)
        await store.lease(state, owner="a", now=at(0), until=at(5))

        after = await store.commit_observation(state, observation(1, 1))

        assert after is not None
        assert after.lock_version == state.lock_version + 1

    async def test_one_of_many_rivals_gets_the_lease(self, store: Store, other: Store) -> None:
        state = await tape(store, 1)
        async with asyncio.TaskGroup() as group:
            tries = [
                group.create_task(
                    handle.lease(state, owner=f"{name}{number}", now=at(0), until=at(5))
                )
                for number in range(10)
                for name, handle in (("a", store), ("b", other))
            ]

        assert sum(task.result() for task in tries) == 1

    async def test_conversations_are_paged_in_order_of_tenant_and_id(self, store: Store) -> None:
        refs = [ConversationRef(tenant, id_) for tenant in ("t1", "t2") for id_ in ("a", "b", "c")]
        for ref in reversed(refs):
            await tape(store, 1, ref)

        pages, after = [], None
        while page := await store.conversations(after=after, limit=2):
            pages.append([state.ref for state in page])
            after = page[-1].ref

        assert pages == [refs[0:2], refs[2:4], refs[4:6]]

    async def test_conversations_of_one_tenant_are_listed_alone(self, store: Store) -> None:
        for tenant in ("t1", "t2"):
            for id_ in ("a", "b"):
                await tape(store, 1, ConversationRef(tenant, id_))

        listed = await store.conversations(tenant="t2")
        rest = await store.conversations(tenant="t2", after=ConversationRef("t2", "a"))

        assert [state.ref.id for state in listed] == ["a", "b"]
        assert [state.ref.id for state in rest] == ["b"]
        assert await store.conversations(tenant="t3") == ()

    async def test_conversations_of_one_user_are_listed_alone(self, store: Store) -> None:
        for tenant, id_, owner in (("t1", "a", "ana"), ("t2", "a", "ana"), ("t2", "b", "bob")):
            await store.append(ConversationRef(tenant, id_), [user("x")], user=owner)
        await store.append(ConversationRef("t2", "c"), [user("x")], user="ana")

        listed = await store.conversations(tenant="t2", user="ana")
        rest = await store.conversations(
            tenant="t2", user="ana", after=ConversationRef("t2", "a"), limit=1
        )

        assert [state.ref.id for state in listed] == ["a", "c"]
        assert [state.ref.id for state in rest] == ["c"]

    async def test_a_listed_state_is_that_of_its_conversation(self, store: Store) -> None:
        state = await tape(store, 3)

        assert await store.conversations() == (state,)


def _every_call(store: Store, state: MemoryState) -> list[Awaitable[object]]:
    return [
        store.append(REF, [user("x")], user=None),
        store.state(REF),
        store.snapshot(REF, tail_tokens=1),
        store.messages(REF, after=0, limit=None),
        store.segments(REF, live=True),
        store.segment(REF, "x"),
        store.commit_observation(state, observation(1, 1)),
        store.commit_reflection(state, reflection(1, 1), ["x"]),
        store.activate(state, active_seq=0, tail_seq=1, at=at(0)),
        store.record_failure(state, failure()),
        store.lease(state, owner="a", now=at(0), until=at(1)),
        store.release(state, owner="a"),
        store.take_turn(REF, owner="a", now=at(0), until=at(1)),
        store.prolong_turn(REF, owner="a", until=at(1)),
        store.end_turn(REF, owner="a"),
        store.log(REF),
        store.conversations(),
        store.search(REF, "x", limit=1),
        store.facts(ANA),
        store.fact(ANA, "x"),
        store.search_facts(ANA, "x", limit=1),
        store.save_facts(FactChanges()),
        store.commit_facts(state, FactChanges(), facts_seq=0, at=at(0)),
        store.forget_fact(ANA, "x"),
        store.pin_facts(state, ANA, FactsPin(marker="", text="", at=at(0))),
        store.next_vector_task("model", keep=Keep(), at=at(0)),
        store.save_vectors(VectorTask(model="m", subject="fact", cursor=0, items=()), []),
        store.nearest(REF, "model", (1.0,), limit=1),
        store.nearest_facts(ANA, "model", (1.0,), limit=1),
        store.fork(state, REF, last_seq=1, at=at(0)),
        store.forget(state, Erasure(tombstones=()), at=at(0)),
        store.delete(REF),
        store.forget_user(ANA),
        store.scrub(),
        store.record_usage([usage()]),
        store.usage(),
        store.check(),
    ]
