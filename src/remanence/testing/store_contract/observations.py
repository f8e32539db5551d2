"""Observations: a range is committed once, with cursor, token account and log entry."""

import asyncio
from dataclasses import replace

import pytest

from remanence.errors import StoreError
from remanence.protocols import Store
from remanence.testing.store_contract.handles import Handles
from remanence.testing.store_contract.samples import (
    REF,
    at,
    expect_state,
    failure,
    observation,
    observe_ranges,
    tape,
    user,
)
from remanence.types import DroppedLine, FailedStretch, Note


class ObservationContract(Handles):
    """`commit_observation`, `segments`, `segment` and `log`."""

    async def test_an_observation_moves_the_cursor_and_its_account(self, store: Store) -> None:
        state = await tape(store, 5)

        after = expect_state(await store.commit_observation(state, observation(1, 3)))

        assert (after.observed_seq, after.observed_sum_tokens) == (3, 30)
        assert (after.active_seq, after.reflected_seq, after.tail_seq) == (0, 0, 1)
        assert after.last_observed_at == at(60)
        assert after.lock_version == state.lock_version + 1
        assert await store.state(REF) == after
        assert await store.check() == ()

    async def test_a_failed_stretch_is_named_until_an_observation_takes_its_place(
        self, store: Store
    ) -> None:
        state = await tape(store, 5)
        stretch = FailedStretch(1, 2, "error", "ValueError: 「nested」")
        empty = replace(observation(1, 2, id="empty"), text="", notes=(), failed=(stretch,))
        state = expect_state(await store.commit_observation(state, empty))
        (stored,) = await store.segments(REF, live=True)
        problems = await store.check()

        after = expect_state(
            await store.replace_observation(state, observation(1, 2, id="again"), "empty")
        )

        assert stored.failed == (stretch,)
        assert [(problem.conversation, problem.level) for problem in problems] == [(REF, "warning")]
        assert stretch.message in problems[0].what
        assert after.observed_seq == 2
        assert [s.id for s in await store.segments(REF, live=True)] == ["again"]
        assert [s.id for s in await store.segments(REF, live=False)] == ["empty", "again"]
        assert await store.check() == ()
        late = observation(1, 2, id="late")
        assert await store.replace_observation(state, late, "empty") is None
        with pytest.raises(
            StoreError, match=r"of 1\.\.3 must cover the range of the segment it replaces, 'again'"
        ):
            await store.replace_observation(after, observation(1, 3, id="wide"), "again")

    async def test_an_observation_comes_back_as_it_was_given(self, store: Store) -> None:
        notes = (
            Note(
                text="Ana's flight LH 454 「金曜日」",
                first_seq=1,
                last_seq=2,
                observed_at=at(1),
                referenced_at="2024-05-24",
                priority="CRITICAL",
                tag="Decision",
                speaker="ana",
                topic="travel",
                supersedes="LH 400",
            ),
            Note(text="plain", first_seq=2, last_seq=2),
        )
        dropped = (
            DroppedLine(text="Ana waves 「金」", reason="over_budget", detail="NOTE Fact"),
            DroppedLine(text="see LH 999", reason="invented", detail="999"),
        )
        segment = observation(
            1, 2, notes=notes, lost=("LH 400", "é"), text="# notes\n", dropped=dropped
        )
        state = await tape(store, 2)
        after = expect_state(await store.commit_observation(state, segment))

        stored = await store.segment(REF, segment.id)

        assert stored is not None
        assert stored.version == after.lock_version
        assert stored.live
        assert await store.segments(REF, live=True) == (stored,)
        fields = (
            "notes",
            "lost",
            "dropped",
            "text",
            "tokens",
            "made_by",
            "created_at",
            "generation",
        )
        assert all(getattr(stored, name) == getattr(segment, name) for name in fields)
        (entry,) = await store.log(REF)
        assert "2 lines dropped (1 invented, 1 over_budget)" in entry.detail

    async def test_an_observation_of_nothing_is_kept(self, store: Store) -> None:
        state = await tape(store, 2)
        empty = observation(1, 2, text="", notes=(), tokens=0)

        assert await store.commit_observation(state, empty) is not None

        (stored,) = await store.segments(REF, live=True)
        assert (stored.text, stored.notes) == ("", ())

    async def test_the_tape_counts_the_tokens_of_an_observation(self, store: Store) -> None:
        state = await tape(store, 5)
        wrong = observation(1, 3, source_tokens=1, sum_tokens=2)

        after = expect_state(await store.commit_observation(state, wrong))

        (stored,) = await store.segments(REF, live=True)
        assert (stored.source_tokens, stored.sum_tokens) == (30, 30)
        assert after.observed_sum_tokens == 30

    async def test_messages_that_arrive_meanwhile_do_not_disturb_an_observation(
        self, store: Store
    ) -> None:
        state = await tape(store, 3)
        await store.append(REF, [user("late", tokens=99)], user="ana")

        after = expect_state(await store.commit_observation(state, observation(1, 3)))

        assert (after.last_seq, after.last_sum_tokens, after.unobserved_tokens) == (4, 129, 99)

    async def test_the_loser_of_a_race_writes_nothing(self, store: Store, other: Store) -> None:
        state = await tape(store, 5)
        winner = expect_state(await store.commit_observation(state, observation(1, 3)))

        loser = await other.commit_observation(state, observation(1, 5, id="late"))

        assert loser is None
        assert await store.state(REF) == winner
        assert await store.segment(REF, "late") is None
        assert len(await store.log(REF)) == 1

    async def test_one_of_many_rivals_commits(self, store: Store, other: Store) -> None:
        state = await tape(store, 5)
        async with asyncio.TaskGroup() as group:
            rivals = [
                group.create_task(
                    handle.commit_observation(state, observation(1, 1 + n % 5, id=f"{name}{n}"))
                )
                for n in range(10)
                for name, handle in (("a", store), ("b", other))
            ]

        assert sum(rival.result() is not None for rival in rivals) == 1
        assert len(await store.segments(REF, live=False)) == 1
        assert await store.check() == ()

    @pytest.mark.parametrize(
        ("first_seq", "last_seq"), [(1, 3), (2, 4), (4, 6), (3, 2), (1, 6), (0, 2), (3, 99)]
    )
    async def test_an_observation_of_another_range_is_refused(
        self, store: Store, first_seq: int, last_seq: int
    ) -> None:
        state = await observe_ranges(store, [(1, 2)])
        state = (await store.append(REF, [user(f"x{n}") for n in range(3)], user="ana")).state

        with pytest.raises(StoreError):
            await store.commit_observation(state, observation(first_seq, last_seq, id="wrong"))

        assert await store.state(REF) == state
        assert len(await store.segments(REF, live=False)) == 1

    async def test_an_observation_of_a_later_generation_is_refused(self, store: Store) -> None:
        state = await tape(store, 2)

        with pytest.raises(StoreError, match="generation"):
            await store.commit_observation(state, observation(1, 2, generation=1))

    async def test_a_segment_id_is_used_once(self, store: Store) -> None:
        state = await tape(store, 4)
        state = expect_state(await store.commit_observation(state, observation(1, 2, id="same")))

        with pytest.raises(StoreError, match="'same'"):
            await store.commit_observation(state, observation(3, 4, id="same"))

        assert await store.state(REF) == state

    async def test_success_forgets_the_failures_of_its_own_step(self, store: Store) -> None:
        state = await tape(store, 4)
        state = expect_state(await store.record_failure(state, failure("observe")))
        state = expect_state(await store.record_failure(state, failure("reflect")))

        after = expect_state(await store.commit_observation(state, observation(1, 2)))

        assert after.observe_failure is None
        assert after.reflect_failure == failure("reflect")

    async def test_every_commit_is_logged_with_its_cursors(self, store: Store) -> None:
        state = await tape(store, 4)
        state = expect_state(await store.commit_observation(state, observation(1, 2)))
        state = expect_state(await store.activate(state, active_seq=2, tail_seq=2, at=at(65)))
        state = expect_state(await store.record_failure(state, failure(at=at(66))))

        log = await store.log(REF)

        assert [(entry.kind, entry.version, entry.at) for entry in log] == [
            ("observed", 1, at(60)),
            ("activated", 2, at(65)),
            ("failed", 3, at(66)),
        ]
        assert await store.log(REF, after=1, limit=1) == log[1:2]
        assert [(entry.observed_seq, entry.active_seq, entry.tail_seq) for entry in log] == [
            (2, 0, 1),
            (2, 2, 2),
            (2, 2, 2),
        ]
        assert "timeout" in log[-1].detail
        assert state.lock_version == 3
