"""Reading messages and snapshots."""

import asyncio

import pytest

from remanence.protocols import Store
from remanence.testing.store_contract.handles import Handles
from remanence.testing.store_contract.samples import REF, active, observe_ranges, tape, user
from remanence.types import ConversationRef

UNKNOWN = ConversationRef("default", "unknown")


class ReadingContract(Handles):
    """`state`, `messages` and `snapshot`."""

    async def test_an_unknown_conversation_has_nothing(self, store: Store) -> None:
        await tape(store, 1)

        assert await store.state(UNKNOWN) is None
        assert await store.snapshot(UNKNOWN, tail_tokens=100) is None
        assert await store.messages(UNKNOWN, after=0, limit=None) == ()
        assert await store.segments(UNKNOWN, live=True) == ()
        assert await store.segments(UNKNOWN, live=False) == ()
        assert await store.segment(UNKNOWN, "x") is None
        assert await store.message(UNKNOWN, "m-1") is None
        assert await store.log(UNKNOWN) == ()
        assert await store.search(UNKNOWN, "message", limit=5) == ()

    async def test_a_tenant_reads_nothing_of_another_one(self, store: Store) -> None:
        await observe_ranges(store, [(1, 2)])
        [third] = (await store.append(REF, [user("message 3", id="m-3")], user="ana")).messages
        same_id = ConversationRef("other", REF.id)

        assert await store.state(same_id) is None
        assert await store.messages(same_id, after=0, limit=None) == ()
        assert await store.segment(same_id, "g0-1-2") is None
        assert await store.message(same_id, "m-3") is None
        assert await store.message(REF, "m-3") == third
        assert await store.search(same_id, "message", limit=5) == ()

    @pytest.mark.parametrize(
        ("after", "limit", "max_tokens", "seqs"),
        [
            (0, None, None, [1, 2, 3, 4, 5]),
            (2, None, None, [3, 4, 5]),
            (5, None, None, []),
            (99, None, None, []),
            (0, 2, None, [1, 2]),
            (3, 9, None, [4, 5]),
            (0, None, 30, [1, 2, 3]),
            (0, None, 29, [1, 2]),
            (1, None, 1, [2]),
            (1, None, 0, [2]),
            (0, 2, 30, [1, 2]),
            (0, 3, 20, [1, 2]),
        ],
    )
    async def test_messages_are_read_in_order_within_their_limits(
        self,
        store: Store,
        after: int,
        limit: int | None,
        max_tokens: int | None,
        seqs: list[int],
    ) -> None:
        await tape(store, 5)

        read = await store.messages(REF, after=after, limit=limit, max_tokens=max_tokens)

        assert [message.seq for message in read] == seqs

    async def test_a_snapshot_holds_state_segments_and_tail(self, store: Store) -> None:
        state = await active(store, [(1, 2), (3, 5)])
        after = await store.append(REF, [user("new")], user="ana")

        snapshot = await store.snapshot(REF, tail_tokens=1_000)

        assert snapshot is not None
        assert snapshot.state == after.state
        assert snapshot.state.tail_seq == state.tail_seq == 6
        assert [(s.first_seq, s.last_seq) for s in snapshot.segments] == [(1, 2), (3, 5)]
        assert snapshot.tail == after.messages

    @pytest.mark.parametrize(
        ("tail_tokens", "seqs"),
        [
            (1_000, [*range(3, 11)]),
            (80, [*range(3, 11)]),
            (79, [*range(4, 11)]),
            (50, [*range(6, 11)]),
            (40, [*range(7, 11)]),
            (0, [10]),
        ],
    )
    async def test_the_tail_is_cut_at_its_old_end(
        self, store: Store, tail_tokens: int, seqs: list[int]
    ) -> None:
        state = await observe_ranges(store, [(1, 2), (3, 10)])
        await store.activate(state, active_seq=2, tail_seq=3, at=state.created_at)

        snapshot = await store.snapshot(REF, tail_tokens=tail_tokens)

        assert snapshot is not None
        assert [message.seq for message in snapshot.tail] == seqs

    @pytest.mark.parametrize(("tail_tokens", "first_seq"), [(40, 1), (39, 2), (8, 2)])
    async def test_a_huge_message_counts_for_a_quarter_of_the_tail(
        self, store: Store, tail_tokens: int, first_seq: int
    ) -> None:
        sizes = (10, 10, 1_000, 5, 5)
        await store.append(REF, [user(f"{n}", tokens=n) for n in sizes], user="ana")

        snapshot = await store.snapshot(REF, tail_tokens=tail_tokens)

        assert snapshot is not None
        assert snapshot.tail[0].seq == first_seq

    async def test_messages_of_no_tokens_cost_nothing_of_the_tail(self, store: Store) -> None:
        await store.append(REF, [user(f"{n}", tokens=0) for n in range(5)], user="ana")

        snapshot = await store.snapshot(REF, tail_tokens=0)

        assert snapshot is not None
        assert len(snapshot.tail) == 5

    async def test_a_snapshot_is_of_one_instant(self, store: Store, other: Store) -> None:
        await tape(store, 1)

        async def write() -> None:
            for number in range(30):
                await store.append(REF, [user(f"{number}"), user("b")], user="ana")

        async with asyncio.TaskGroup() as group:
            writing = group.create_task(write())
            while not writing.done():
                snapshot = await other.snapshot(REF, tail_tokens=10_000)
                assert snapshot is not None
                assert snapshot.tail[-1].seq == snapshot.state.last_seq == len(snapshot.tail)
                assert snapshot.state.last_seq % 2 == 1
