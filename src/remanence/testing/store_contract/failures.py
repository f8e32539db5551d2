"""Failures: each step keeps its own account, and no cursor moves."""

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
    reflection,
    tape,
)


class FailureContract(Handles):
    """`record_failure`."""

    async def test_a_failure_is_kept_and_changes_no_cursor(self, store: Store) -> None:
        state = await tape(store, 4)

        after = expect_state(await store.record_failure(state, failure(failures=3)))

        assert after.observe_failure == failure(failures=3)
        assert after.failures == 3
        assert after.next_attempt_at == at(62)
        assert after.lock_version == state.lock_version + 1
        assert (after.observed_seq, after.reflected_seq, after.active_seq) == (0, 0, 0)
        assert await store.state(REF) == after

    async def test_the_steps_keep_separate_accounts(self, store: Store) -> None:
        state = await tape(store, 4)
        state = expect_state(await store.record_failure(state, failure("observe", failures=1)))
        state = expect_state(await store.record_failure(state, failure("reflect", failures=5)))

        after = expect_state(await store.record_failure(state, failure("observe", failures=2)))

        assert after.observe_failure == failure("observe", failures=2)
        assert after.reflect_failure == failure("reflect", failures=5)

    async def test_what_was_left_out_on_purpose_is_kept_and_logged_as_such(
        self, store: Store
    ) -> None:
        state = await tape(store, 4)

        after = expect_state(await store.record_failure(state, failure(failures=0, skips=2)))

        assert after.observe_failure == failure(failures=0, skips=2)
        assert after.failures == 0
        assert after.next_attempt_at == at(62)
        assert [entry.kind for entry in await store.log(REF)] == ["skipped"]

    async def test_a_long_message_is_cut(self, store: Store) -> None:
        state = await tape(store, 4)

        after = expect_state(await store.record_failure(state, failure(message="x" * 100_000)))

        assert after.observe_failure is not None
        assert after.observe_failure.message == "x" * 500

    @pytest.mark.parametrize("step", ["observe", "reflect"])
    async def test_a_failure_that_others_overtook_is_not_kept(
        self, store: Store, step: str
    ) -> None:
        state = await active(store, [(1, 2), (3, 4)])
        if step == "observe":
            newer = await tape(store, 2)
            expect_state(await store.commit_observation(newer, observation(5, 6)))
        else:
            expect_state(await store.commit_reflection(state, reflection(1, 2), ["g0-1-2"]))

        assert await store.record_failure(state, failure(step)) is None

        after = await store.state(REF)
        assert after is not None
        assert after.failures == 0
