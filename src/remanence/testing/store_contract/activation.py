"""Activation: the cursor of the prompt moves to a segment boundary, never back."""

import pytest

from remanence.errors import StoreError
from remanence.protocols import Store
from remanence.testing.store_contract.handles import Handles
from remanence.testing.store_contract.samples import REF, at, expect_state, observe_ranges


class ActivationContract(Handles):
    """`activate`."""

    async def test_activation_moves_the_cursor_and_the_tail(self, store: Store) -> None:
        state = await observe_ranges(store, [(1, 2), (3, 5)])

        after = expect_state(await store.activate(state, active_seq=5, tail_seq=4, at=at(70)))

        assert (after.active_seq, after.active_sum_tokens) == (5, 50)
        assert (after.tail_seq, after.tail_sum_tokens, after.tail_tokens) == (4, 30, 20)
        assert after.lock_version == state.lock_version + 1
        assert await store.state(REF) == after
        assert await store.check() == ()

    async def test_activation_may_stop_at_an_earlier_boundary(self, store: Store) -> None:
        state = await observe_ranges(store, [(1, 2), (3, 5)])
        state = expect_state(await store.activate(state, active_seq=2, tail_seq=3, at=at(70)))

        after = expect_state(await store.activate(state, active_seq=5, tail_seq=6, at=at(71)))

        assert (after.active_seq, after.tail_seq, after.tail_sum_tokens) == (5, 6, 50)

    async def test_the_tail_alone_may_move(self, store: Store) -> None:
        state = await observe_ranges(store, [(1, 5)])
        state = expect_state(await store.activate(state, active_seq=5, tail_seq=2, at=at(70)))

        after = expect_state(await store.activate(state, active_seq=5, tail_seq=4, at=at(71)))

        assert (after.active_seq, after.tail_seq, after.tail_sum_tokens) == (5, 4, 30)

    async def test_the_loser_of_a_race_moves_nothing(self, store: Store, other: Store) -> None:
        state = await observe_ranges(store, [(1, 2), (3, 5)])
        winner = expect_state(await store.activate(state, active_seq=2, tail_seq=3, at=at(70)))

        assert await other.activate(state, active_seq=5, tail_seq=6, at=at(70)) is None
        assert await store.state(REF) == winner

    async def test_a_tail_that_another_one_moved_further_stays(self, store: Store) -> None:
        state = await observe_ranges(store, [(1, 5)])
        state = expect_state(await store.activate(state, active_seq=5, tail_seq=2, at=at(70)))
        winner = expect_state(await store.activate(state, active_seq=5, tail_seq=4, at=at(71)))

        assert await store.activate(state, active_seq=5, tail_seq=3, at=at(71)) is None
        assert await store.state(REF) == winner

    @pytest.mark.parametrize(
        ("active_seq", "tail_seq"),
        [(1, 2), (3, 3), (6, 6), (99, 1), (2, 4), (5, 7)],
        ids=["inside", "inside the next", "beyond", "far", "gap", "gap at the end"],
    )
    async def test_another_place_than_a_boundary_is_refused(
        self, store: Store, active_seq: int, tail_seq: int
    ) -> None:
        state = await observe_ranges(store, [(1, 2), (3, 5)])

        with pytest.raises(StoreError):
            await store.activate(state, active_seq=active_seq, tail_seq=tail_seq, at=at(70))

        assert await store.state(REF) == state

    async def test_the_cursor_never_goes_back(self, store: Store) -> None:
        state = await observe_ranges(store, [(1, 2), (3, 5)])
        state = expect_state(await store.activate(state, active_seq=5, tail_seq=2, at=at(70)))

        with pytest.raises(StoreError):
            await store.activate(state, active_seq=2, tail_seq=2, at=at(71))

        assert await store.state(REF) == state
