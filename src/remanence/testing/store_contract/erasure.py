"""Deletion: nothing remains, nothing returns, and nothing else changes."""

import pytest

from remanence.protocols import Store
from remanence.testing.store_contract.handles import Handles
from remanence.testing.store_contract.samples import (
    OTHER,
    REF,
    active,
    at,
    failure,
    observation,
    observe_ranges,
    reflection,
    tape,
    user,
)
from remanence.types import MemoryState


class ErasureContract(Handles):
    """`delete` and `check`."""

    async def test_a_deleted_conversation_is_gone_with_all_that_was_made_of_it(
        self, store: Store
    ) -> None:
        await active(store, [(1, 2), (3, 4)])

        assert await store.delete(REF) == 0

        assert await store.state(REF) is None
        assert await store.snapshot(REF, tail_tokens=100) is None
        assert await store.messages(REF, after=0, limit=None) == ()
        assert await store.segments(REF, live=False) == ()
        assert await store.log(REF) == ()
        assert await store.search(REF, "message", limit=5) == ()
        assert await store.conversations() == ()
        await store.scrub()
        assert await store.check() == ()

    async def test_nothing_is_due_after_a_scrub(self, store: Store) -> None:
        await tape(store, 1)
        await store.delete(REF)
        was_due = await store.scrub()

        assert (was_due, await store.scrub(if_due=True)) == (True, False)

    async def test_deleting_what_is_not_there_is_no_error(self, store: Store) -> None:
        await tape(store, 1)

        assert [await store.delete(REF) for _ in range(2)] == [0, None]
        assert await store.delete(OTHER) is None

    async def test_other_conversations_stay_as_they_are(self, store: Store) -> None:
        await active(store, [(1, 2)])
        await active(store, [(1, 2)], OTHER)
        before = await store.snapshot(OTHER, tail_tokens=100)
        hits = await store.search(OTHER, "message", limit=9)

        await store.delete(REF)

        assert await store.snapshot(OTHER, tail_tokens=100) == before
        assert [hit.text for hit in await store.search(OTHER, "message", limit=9)] == [
            hit.text for hit in hits
        ]

    @pytest.mark.parametrize("again", [False, True], ids=["gone", "made again"])
    async def test_work_that_was_under_way_changes_nothing(
        self, store: Store, other: Store, *, again: bool
    ) -> None:
        state = await observe_ranges(store, [(1, 2)])
        await other.delete(REF)
        fresh: MemoryState | None = await tape(other, 4) if again else None

        late = [
            await store.commit_observation(state, observation(3, 4)),
            await store.commit_observation(state, observation(1, 2)),
            await store.commit_reflection(state, reflection(1, 2), ["g0-1-2"]),
            await store.activate(state, active_seq=2, tail_seq=3, at=at(70)),
            await store.record_failure(state, failure()),
        ]
        leased = await store.lease(state, owner="a", now=at(0), until=at(5))
        await store.release(state, owner="a")

        assert late == [None] * 5
        assert not leased
        assert await store.state(REF) == fresh
        assert await store.segments(REF, live=False) == ()

    async def test_a_conversation_that_is_made_again_starts_anew(self, store: Store) -> None:
        old = await observe_ranges(store, [(1, 2)])
        await store.delete(REF)

        new = (await store.append(REF, [user("hello", id="m1")], user=None)).state

        assert new.key != old.key
        assert (new.last_seq, new.observed_seq, new.lock_version) == (1, 0, 0)
        assert new.user is None
        assert [hit.text for hit in await store.search(REF, "hello message", limit=5)] == ["hello"]

    async def test_a_sound_database_has_no_problems(self, store: Store) -> None:
        await store.scrub()
        assert await store.check() == ()
        await active(store, [(1, 2), (3, 4)])
        await tape(store, 3, OTHER)

        await store.scrub()
        assert await store.check() == ()
