"""Reflections: segments are replaced together, and the live ones still tile the tape."""

import asyncio
from collections.abc import Sequence

import pytest

from remanence.errors import StoreError
from remanence.protocols import Store
from remanence.testing.store_contract.handles import Handles
from remanence.testing.store_contract.samples import (
    REF,
    active,
    at,
    expect_state,
    failure,
    observation,
    observe_ranges,
    reflection,
    user,
)

RANGES = [(1, 2), (3, 4), (5, 6)]
IDS = ["g0-1-2", "g0-3-4", "g0-5-6"]


class ReflectionContract(Handles):
    """`commit_reflection`."""

    async def test_a_reflection_replaces_its_sources(self, store: Store) -> None:
        state = await active(store, RANGES)

        after = expect_state(await store.commit_reflection(state, reflection(1, 4), IDS[:2]))

        assert (after.reflected_seq, after.active_seq, after.observed_seq) == (4, 6, 6)
        assert after.last_reflected_at == at(60)
        assert after.lock_version == state.lock_version + 1
        assert await _live(store) == [(1, 1, 4), (0, 5, 6)]
        assert await store.state(REF) == after
        assert await store.check() == ()

    async def test_replaced_segments_stay_readable_in_order_of_their_versions(
        self, store: Store
    ) -> None:
        state = await active(store, RANGES)
        after = expect_state(await store.commit_reflection(state, reflection(1, 4), IDS[:2]))

        every = await store.segments(REF, live=False)

        assert [segment.id for segment in every] == [*IDS, "g1-1-4"]
        version = after.lock_version
        assert [segment.superseded for segment in every] == [version, version, None, None]
        assert [segment.version for segment in every] == sorted(s.version for s in every)
        assert (every[-1].source_tokens, every[-1].sum_tokens) == (40, 40)

    async def test_replaced_segments_are_deleted_where_that_is_asked_for(
        self, store: Store
    ) -> None:
        state = await active(store, RANGES)

        await store.commit_reflection(state, reflection(1, 4), IDS[:2], purge=True)

        assert [s.id for s in await store.segments(REF, live=False)] == [IDS[2], "g1-1-4"]
        assert await store.check() == ()

    async def test_reflections_are_condensed_into_a_higher_one(self, store: Store) -> None:
        state = await active(store, RANGES)
        state = expect_state(await store.commit_reflection(state, reflection(1, 2), IDS[:1]))
        state = expect_state(await store.commit_reflection(state, reflection(3, 4), IDS[1:2]))
        assert await _live(store) == [(1, 1, 2), (1, 3, 4), (0, 5, 6)]

        higher = reflection(1, 4, generation=2, id="top")
        after = expect_state(await store.commit_reflection(state, higher, ["g1-1-2", "g1-3-4"]))

        assert after.reflected_seq == 4
        assert await _live(store) == [(2, 1, 4), (0, 5, 6)]

    async def test_a_reflection_may_take_reflections_and_observations(self, store: Store) -> None:
        state = await active(store, RANGES)
        state = expect_state(await store.commit_reflection(state, reflection(1, 2), IDS[:1]))
        whole = reflection(1, 6, id="whole")

        after = expect_state(await store.commit_reflection(state, whole, ["g1-1-2", *IDS[1:]]))

        assert after.reflected_seq == 6
        assert await _live(store) == [(1, 1, 6)]
        assert await store.check() == ()

    async def test_an_observation_that_arrives_meanwhile_survives(self, store: Store) -> None:
        state = await active(store, RANGES)
        newer = (await store.append(REF, [user("x")], user="ana")).state
        expect_state(await store.commit_observation(newer, observation(7, 7)))

        expect_state(await store.commit_reflection(state, reflection(1, 6), IDS))

        assert await _live(store) == [(1, 1, 6), (0, 7, 7)]
        assert await store.check() == ()

    async def test_the_loser_of_a_race_replaces_nothing(self, store: Store, other: Store) -> None:
        state = await active(store, RANGES)
        winner = expect_state(await store.commit_reflection(state, reflection(1, 4), IDS[:2]))

        loser = await other.commit_reflection(state, reflection(1, 6, id="late"), IDS)

        assert loser is None
        assert await store.state(REF) == winner
        assert await store.segment(REF, "late") is None

    async def test_one_of_many_rival_reflections_commits(self, store: Store, other: Store) -> None:
        state = await active(store, RANGES)
        async with asyncio.TaskGroup() as group:
            rivals = [
                group.create_task(
                    handle.commit_reflection(state, reflection(1, 4, id=f"{name}{n}"), IDS[:2])
                )
                for n in range(10)
                for name, handle in (("a", store), ("b", other))
            ]

        assert sum(rival.result() is not None for rival in rivals) == 1
        assert await _live(store) == [(1, 1, 4), (0, 5, 6)]
        assert await store.check() == ()

    @pytest.mark.parametrize(
        ("first_seq", "last_seq", "replaced", "generation"),
        [
            (1, 4, IDS[:1], 1),
            (1, 2, IDS[:2], 1),
            (1, 3, IDS[:2], 1),
            (1, 6, [IDS[0], IDS[2]], 1),
            (3, 4, IDS[1:2], 1),
            (1, 2, [], 1),
            (1, 2, IDS[:1], 0),
        ],
        ids=["more", "less", "other", "with a hole", "not from the start", "none", "generation"],
    )
    async def test_a_reflection_that_would_break_the_tiling_is_refused(
        self, store: Store, first_seq: int, last_seq: int, replaced: Sequence[str], generation: int
    ) -> None:
        state = await active(store, RANGES)
        wrong = reflection(first_seq, last_seq, generation=generation, id="wrong")

        with pytest.raises(StoreError):
            await store.commit_reflection(state, wrong, replaced)

        assert await store.state(REF) == state
        assert await _live(store) == [(0, 1, 2), (0, 3, 4), (0, 5, 6)]

    async def test_a_reflection_of_what_is_not_active_is_refused(self, store: Store) -> None:
        state = await observe_ranges(store, RANGES)
        state = expect_state(await store.activate(state, active_seq=2, tail_seq=3, at=at(70)))

        with pytest.raises(StoreError, match="active_seq"):
            await store.commit_reflection(state, reflection(1, 4), IDS[:2])

    async def test_a_reflection_forgets_the_failures_of_its_own_step(self, store: Store) -> None:
        state = await active(store, RANGES)
        state = expect_state(await store.record_failure(state, failure("observe")))
        state = expect_state(await store.record_failure(state, failure("reflect")))

        after = expect_state(await store.commit_reflection(state, reflection(1, 2), IDS[:1]))

        assert after.reflect_failure is None
        assert after.observe_failure == failure("observe")


async def _live(store: Store) -> list[tuple[int, int, int]]:
    live = await store.segments(REF, live=True)
    return [(segment.generation, segment.first_seq, segment.last_seq) for segment in live]
