"""How a conversation's state changes with each commit, and which commits are refused."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from tests.builders import state

from remanence.errors import StoreError
from remanence.stores.transitions import (
    Span,
    after_activation,
    after_facts,
    after_failure,
    after_observation,
    after_reflection,
    after_reobservation,
    after_retry,
    coverage_fault,
    describe,
)
from remanence.testing.store_contract.samples import observation
from remanence.types import (
    DroppedLine,
    FailedStretch,
    Failure,
    MemoryState,
    Segment,
)

AT = datetime(2026, 3, 2, 9, 0, tzinfo=UTC)
LATER = AT + timedelta(hours=1)


def failure(step: str = "observe", *, message: str = "no answer") -> Failure:
    return Failure(
        step=step,  # type: ignore[arg-type]  # one of three
        reason="timeout",
        message=message,
        at=AT,
        next_attempt_at=LATER,
        failures=1,
        last_seq=10,
    )


STATE = state(
    created_at=AT,
    last_seq=10,
    observed_seq=6,
    active_seq=4,
    reflected_seq=2,
    tail_seq=3,
    last_sum_tokens=100,
    observed_sum_tokens=60,
    active_sum_tokens=40,
    tail_sum_tokens=20,
    observe_failure=failure("observe"),
    reflect_failure=failure("reflect"),
    facts_seq=1,
    facts_failure=failure("facts"),
    lock_version=7,
)
FAILURES = ("observe_failure", "reflect_failure", "facts_failure")
NO_FAILURES: dict[str, Any] = dict.fromkeys(FAILURES)  # None for each
LIVE = (Span("r", 1, 1, 2), Span("a", 0, 3, 4), Span("b", 0, 5, 6))


def segment(first_seq: int, last_seq: int, generation: int = 0) -> Segment:
    return observation(
        first_seq,
        last_seq,
        id="seg_1",
        generation=generation,
        tokens=9,
        source_tokens=80,
        sum_tokens=90,
        lost=("INV-7", "40 EUR"),
        made_by="scripted/1",
        created_at=LATER,
    )


def activation(
    *,
    current: MemoryState | None = STATE,
    expected: MemoryState = STATE,
    active_seq: int = 6,
    tail_seq: int = 5,
    is_boundary: bool = True,
) -> MemoryState | None:
    return after_activation(
        current,
        expected,
        active_seq=active_seq,
        tail_seq=tail_seq,
        is_boundary=is_boundary,
    )


@pytest.mark.parametrize("last_seq", [7, 9, 10])
def test_an_observation_moves_its_cursor_sets_its_time_and_ends_its_failures(
    last_seq: int,
) -> None:
    assert after_observation(STATE, STATE, segment(7, last_seq)) == replace(
        STATE,
        observed_seq=last_seq,
        last_observed_at=LATER,
        observe_failure=None,
        lock_version=8,
    )


FAILED = (FailedStretch(7, 8, "refused", "no"), FailedStretch(9, 9, "empty", "nothing"))


def test_an_observation_of_messages_that_failed_ends_no_account_but_its_rejections() -> None:
    rejected = replace(failure(), failures=4, rejections=3, timeouts=1)
    skipped = replace(segment(7, 9), failed=FAILED)

    found = after_observation(replace(STATE, observe_failure=rejected), STATE, skipped)
    without = after_observation(replace(STATE, observe_failure=None), STATE, skipped)

    assert found is not None
    assert without is not None
    assert found.observe_failure == replace(rejected, rejections=0, timeouts=0)
    assert without.observe_failure is None


def test_an_observation_that_takes_the_place_of_one_changes_its_time_and_ends_the_failure() -> None:
    assert after_reobservation(STATE, segment(5, 6), "b", live=LIVE) == replace(
        STATE, last_observed_at=LATER, observe_failure=None, lock_version=8
    )
    assert after_reobservation(None, segment(5, 6), "b", live=LIVE) is None
    assert after_reobservation(STATE, segment(5, 6), "gone", live=LIVE) is None
    with pytest.raises(
        StoreError,
        match=r"'seg_1' of 4\.\.6 must cover the range of the segment it replaces, 'b' of 5",
    ):
        after_reobservation(STATE, segment(4, 6), "b", live=LIVE)


def test_an_observation_of_a_deleted_conversation_is_discarded() -> None:
    assert after_observation(None, STATE, segment(7, 9)) is None


@pytest.mark.parametrize("seen_seq", [5, 7])
def test_an_observation_from_another_cursor_is_discarded(seen_seq: int) -> None:
    expected = replace(STATE, observed_seq=seen_seq)

    assert after_observation(STATE, expected, segment(7, 9)) is None


def test_what_else_changed_since_does_not_discard_an_observation() -> None:
    expected = replace(STATE, last_seq=9, lock_version=5, active_seq=2)

    assert after_observation(STATE, expected, segment(7, 9)) is not None


def test_an_observation_is_of_generation_0() -> None:
    with pytest.raises(
        StoreError, match=r"^observation 'seg_1' of 7\.\.9 has generation 1: an observation has 0$"
    ):
        after_observation(STATE, STATE, segment(7, 9, 1))


@pytest.mark.parametrize(("first_seq", "last_seq"), [(6, 9), (8, 9), (7, 11), (7, 6)])
def test_an_observation_begins_behind_the_cursor_and_ends_on_the_tape(
    first_seq: int, last_seq: int
) -> None:
    with pytest.raises(StoreError, match="it must start at 7 and end at 10 or before"):
        after_observation(STATE, STATE, segment(first_seq, last_seq))


def test_a_reflection_moves_its_cursor_sets_its_time_and_ends_its_failures() -> None:
    assert after_reflection(STATE, segment(3, 4, 1), ["a"], live=LIVE) == replace(
        STATE, reflected_seq=4, last_reflected_at=LATER, reflect_failure=None, lock_version=8
    )


def test_a_reflection_of_reflections_leaves_the_cursor_where_it_is() -> None:
    state = after_reflection(STATE, segment(1, 2, 2), ["r"], live=LIVE)

    assert state is not None
    assert state.reflected_seq == 2


def test_a_reflection_may_replace_reflections_and_observations_that_follow_them() -> None:
    state = after_reflection(STATE, segment(1, 4, 2), ["a", "r"], live=LIVE)

    assert state is not None
    assert state.reflected_seq == 4


def test_a_reflection_of_a_deleted_conversation_is_discarded() -> None:
    assert after_reflection(None, segment(3, 4, 1), ["a"], live=LIVE) is None


@pytest.mark.parametrize("replaced", [["gone"], ["a", "gone"]])
def test_a_reflection_whose_sources_are_not_live_any_more_is_discarded(replaced: list[str]) -> None:
    assert after_reflection(STATE, segment(3, 4, 1), replaced, live=LIVE) is None


def test_a_source_that_is_named_twice_counts_once() -> None:
    assert after_reflection(STATE, segment(3, 4, 1), ["a", "a"], live=LIVE) is not None


def test_a_reflection_is_of_generation_1_or_more() -> None:
    with pytest.raises(
        StoreError,
        match=r"^reflection 'seg_1' of 3\.\.4 has generation 0: a reflection has 1 or more$",
    ):
        after_reflection(STATE, segment(3, 4, 0), ["a"], live=LIVE)


@pytest.mark.parametrize(
    ("first_seq", "last_seq", "replaced"),
    [(3, 5, ["a"]), (2, 4, ["a"]), (4, 4, ["a"]), (3, 3, ["a"]), (1, 6, ["r", "b"]), (3, 4, [])],
)
def test_a_reflection_covers_the_range_of_its_sources(
    first_seq: int, last_seq: int, replaced: list[str]
) -> None:
    with pytest.raises(StoreError, match="does not cover exactly the segments that it replaces"):
        after_reflection(STATE, segment(first_seq, last_seq, 1), replaced, live=LIVE)


def test_a_reflection_replaces_nothing_that_no_prompt_shows_yet() -> None:
    with pytest.raises(StoreError, match="replaces segments beyond active_seq=4"):
        after_reflection(STATE, segment(3, 6, 1), ["a", "b"], live=LIVE)


def test_a_reflection_leaves_no_observation_before_it() -> None:
    live = (Span("x", 0, 1, 2), Span("a", 0, 3, 4))

    with pytest.raises(StoreError, match="leaves observations before it: start at 1 or before"):
        after_reflection(replace(STATE, reflected_seq=0), segment(3, 4, 1), ["a"], live=live)


@pytest.mark.parametrize(("active_seq", "tail_seq"), [(6, 5), (6, 7), (6, 3), (5, 3)])
def test_an_activation_moves_the_cursor_and_the_start_of_the_tail(
    active_seq: int, tail_seq: int
) -> None:
    assert activation(active_seq=active_seq, tail_seq=tail_seq) == replace(
        STATE,
        active_seq=active_seq,
        tail_seq=tail_seq,
        lock_version=8,
    )


def test_the_tail_alone_may_move_and_needs_no_boundary() -> None:
    state = activation(active_seq=4, tail_seq=5, is_boundary=False)

    assert state is not None
    assert (state.active_seq, state.tail_seq) == (4, 5)


def test_an_activation_that_lost_a_race_is_discarded() -> None:
    assert activation(current=None) is None
    assert activation(expected=replace(STATE, active_seq=3)) is None
    assert activation(expected=replace(STATE, active_seq=5)) is None
    assert activation(tail_seq=2) is None


@pytest.mark.parametrize("active_seq", [3, 7])
def test_an_activation_neither_goes_back_nor_beyond_what_is_observed(active_seq: int) -> None:
    with pytest.raises(
        StoreError,
        match=f"^active_seq={active_seq} is not between 4, where it is, and observed_seq=6$",
    ):
        activation(active_seq=active_seq, tail_seq=3)


def test_an_activation_ends_with_a_segment() -> None:
    with pytest.raises(StoreError, match=r"^active_seq=5 is not the end of a live segment$"):
        activation(active_seq=5, is_boundary=False)


def test_an_activation_leaves_no_message_out() -> None:
    with pytest.raises(StoreError, match=r"^tail_seq=8 leaves messages after active_seq=6 out"):
        activation(tail_seq=8)


@pytest.mark.parametrize("facts_seq", [1, 5, 6])
def test_extracted_facts_move_their_cursor_and_end_its_failures(facts_seq: int) -> None:
    assert after_facts(STATE, STATE, facts_seq=facts_seq) == replace(
        STATE, facts_seq=facts_seq, facts_failure=None, lock_version=8
    )


def test_facts_that_lost_a_race_are_discarded() -> None:
    assert after_facts(None, STATE, facts_seq=5) is None
    assert after_facts(STATE, replace(STATE, facts_seq=0), facts_seq=5) is None


@pytest.mark.parametrize("facts_seq", [0, 11])
def test_facts_come_from_messages_of_the_tape(facts_seq: int) -> None:
    with pytest.raises(
        StoreError, match=f"facts_seq={facts_seq} is not between 1, where it is, and last_seq=10"
    ):
        after_facts(STATE, STATE, facts_seq=facts_seq)


@pytest.mark.parametrize(
    ("step", "field"),
    [
        ("observe", "observe_failure"),
        ("reflect", "reflect_failure"),
        ("facts", "facts_failure"),
    ],
)
def test_a_failure_is_kept_with_its_step_and_moves_nothing_else(step: str, field: str) -> None:
    state = replace(STATE, **NO_FAILURES)

    changed = after_failure(state, state, failure(step))

    kept = {name: getattr(changed, name) for name in FAILURES if getattr(changed, name)}
    assert kept == {field: failure(step)}
    assert changed is not None
    assert replace(changed, lock_version=7, **NO_FAILURES) == state
    assert changed.lock_version == 8


def test_the_message_of_a_failure_is_cut_at_500_characters() -> None:
    changed = after_failure(STATE, STATE, failure(message="x" * 499 + "yz"))

    assert changed is not None
    assert changed.observe_failure is not None
    assert changed.observe_failure.message == "x" * 499 + "y"


@pytest.mark.parametrize(
    "seen",
    [
        replace(STATE, observed_seq=0),
        replace(STATE, reflected_seq=0),
        replace(STATE, facts_seq=0),
    ],
    ids=["observed", "reflected", "facts"],
)
def test_a_failure_of_a_step_that_others_have_overtaken_is_discarded(
    seen: MemoryState,
) -> None:
    assert after_failure(None, STATE, failure()) is None
    assert after_failure(STATE, seen, failure()) is None


def test_failures_can_be_forgotten_and_without_any_nothing_changes() -> None:
    without = replace(STATE, **NO_FAILURES)

    assert after_retry(STATE) == replace(without, lock_version=8)
    assert after_retry(without) is None
    assert after_retry(None) is None


def test_the_log_tells_of_a_segment_what_it_stands_for_and_what_it_lost() -> None:
    assert describe(segment(7, 9), "messages") == (
        "seg_1: 7..9, 80 tokens of messages became 9, 2 literals lost, by scripted/1"
    )


def test_the_log_names_the_messages_of_a_segment_that_failed() -> None:
    assert describe(replace(segment(7, 9), failed=FAILED), "messages").endswith(
        ", by scripted/1; 7..8 failed: refused: no; 9..9 failed: empty: nothing"
    )


def test_the_log_counts_the_lines_that_became_no_note_by_their_reason() -> None:
    dropped = [
        DroppedLine(text="a", reason="repeated"),
        DroppedLine(text="b", reason="invented"),
        DroppedLine(text="c", reason="repeated"),
    ]

    assert describe(replace(segment(7, 9), dropped=tuple(dropped)), "messages").endswith(
        "2 literals lost, 3 lines dropped (1 invented, 2 repeated), by scripted/1"
    )


@pytest.mark.parametrize("live", [LIVE, (), (Span("a", 0, 1, 6),), (Span("r", 2, 1, 6),)])
def test_live_segments_that_tile_the_tape_have_no_fault(live: tuple[Span, ...]) -> None:
    reflected_seq = max((span.last_seq for span in live if span.generation), default=0)
    observed_seq = live[-1].last_seq if live else 0

    assert coverage_fault(live, reflected_seq=reflected_seq, observed_seq=observed_seq) is None


@pytest.mark.parametrize(
    ("live", "fault"),
    [
        ((Span("a", 0, 2, 6),), "there is a gap between 1 and segment 'a' at 2"),
        (
            (Span("r", 1, 1, 2), Span("a", 0, 4, 6)),
            "there is a gap between 3 and segment 'a' at 4",
        ),
        (
            (Span("r", 1, 1, 2), Span("a", 0, 2, 6)),
            "there is an overlap between 3 and segment 'a' at 2",
        ),
        (
            (Span("a", 0, 1, 2), Span("b", 0, 3, 6)),
            "segment 'a' of generation 0 ends at 2, but reflected_seq is 2",
        ),
        (
            (Span("r", 1, 1, 2), Span("s", 1, 3, 6)),
            "segment 's' of generation 1 ends at 6, but reflected_seq is 2",
        ),
        (
            (Span("r", 1, 1, 2), Span("a", 0, 3, 6), Span("b", 0, 7, 5)),
            "segment 'b' ends at 5, before it begins",
        ),
        ((Span("r", 1, 1, 2), Span("a", 0, 3, 5)), "segments end at 5, but observed_seq is 6"),
        ((Span("r", 1, 1, 2), Span("a", 0, 3, 7)), "segments end at 7, but observed_seq is 6"),
    ],
)
def test_a_fault_of_coverage_is_told(live: tuple[Span, ...], fault: str) -> None:
    assert coverage_fault(live, reflected_seq=2, observed_seq=6) == fault
