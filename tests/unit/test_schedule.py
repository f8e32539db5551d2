"""When a step is due, and how much of the tape it takes."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from tests.builders import state

from remanence import Message, Policy
from remanence.policy.schedule import (
    UNREACHABLE,
    activation,
    facts_end,
    facts_time,
    is_latched,
    later_steps_wait,
    longest_wait,
    look_tokens,
    may_try,
    observation_due,
    observation_slice,
    observation_target,
    plan_reflection,
    reflection_sources,
    reflection_time,
    restore_time,
    retry_delay,
    tail_start,
    takes_over,
)
from remanence.testing.store_contract.samples import observation
from remanence.types import (
    Failure,
    MemoryState,
    Segment,
    Snapshot,
    ToolCallPart,
)

NOW = datetime(2026, 3, 2, 9, 0, tzinfo=UTC)
BRAIN = Policy.brain()


def unobserved(tokens: int) -> MemoryState:
    return state(last_seq=9, last_sum_tokens=1_000 + tokens, observed_sum_tokens=1_000)


def tape(*tokens: int, first_seq: int = 1) -> list[Message]:
    return [
        Message.user(f"m{seq}").replace(seq=seq, tokens=size)
        for seq, size in enumerate(tokens, first_seq)
    ]


def segment(first_seq: int, last_seq: int, **changes: object) -> Segment:
    id_ = f"{changes.get('generation', 0)}-{first_seq}"
    fields = {"id": id_, "tokens": 100, "sum_tokens": 0, **changes}
    return observation(first_seq, last_seq, **fields)


def failure(**changes: object) -> Failure:
    made = Failure(
        step="observe",
        reason="timeout",
        message="late",
        at=NOW,
        next_attempt_at=NOW + timedelta(seconds=60),
        failures=1,
        last_seq=9,
    )
    return replace(made, **changes)  # type: ignore[arg-type]  # fields by name


# Observations


@pytest.mark.parametrize(
    ("compare", "tokens", "due"),
    [
        ("gt", 999, False),
        ("gt", 1_000, False),
        ("gt", 1_001, True),
        ("gte", 999, False),
        ("gte", 1_000, True),
    ],
)
def test_an_observation_is_due_above_its_threshold_or_on_it(
    compare: str, tokens: int, *, due: bool
) -> None:
    policy = Policy(observe_tokens=1_000, observe_compare=compare)  # type: ignore[arg-type]

    assert observation_due(policy, unobserved(tokens)) is due


def test_an_observation_in_advance_is_due_at_its_share_of_the_threshold() -> None:
    policy = Policy(observe_tokens=1_000, precompute_at=0.7)

    assert not observation_due(policy, unobserved(700))
    assert observation_due(policy, unobserved(701))


def test_nothing_is_due_when_memory_is_off_or_all_is_observed() -> None:
    gauge_of_the_window = Policy(observe_tokens=10, observe_gauge="working_window")
    observed = state(last_seq=9, last_sum_tokens=500, observed_sum_tokens=500)

    assert not observation_due(Policy(observe_tokens=10, enabled=False), unobserved(500))
    assert not observation_due(gauge_of_the_window, observed)


def test_the_gauge_counts_what_is_unobserved_or_what_no_ready_notes_will_replace() -> None:
    marks = state(
        last_sum_tokens=1_000, observed_sum_tokens=700, active_sum_tokens=400, tail_sum_tokens=250
    )

    for gauged, tokens in (
        (Policy(), 300),
        (Policy(observe_gauge="working_window"), 750 - 300),
    ):
        policy = gauged.replace(precompute_at=None)
        assert observation_due(policy.replace(observe_tokens=tokens - 1), marks)
        assert not observation_due(policy.replace(observe_tokens=tokens), marks)


def sliced(policy: Policy, messages: Sequence[Message], *, everything: bool = False) -> list[int]:
    now = state(last_seq=messages[-1].seq if messages else 0)
    return [m.seq for m in observation_slice(policy, now, messages, everything=everything).messages]


BUDGET = Policy(observe_tokens=100, observe_max_tokens=1_000, keep_last=0)


@pytest.mark.parametrize(
    ("sizes", "seqs"),
    [
        ([], []),
        ([50, 50, 50], [1, 2]),
        ([50, 51, 50], [1]),
        ([300, 50], [1]),
        ([24, 300, 50], [1, 2]),
        ([25, 300, 50], [1]),
        ([20, 4, 300, 50], [1, 2, 3]),
        ([10, 20, 30, 40], [1, 2, 3, 4]),
        ([10, 20, 30, 41], [1, 2, 3]),
    ],
)
def test_a_slice_of_the_budget_fills_it_and_a_few_words_take_the_next_message_too(
    sizes: list[int], seqs: list[int]
) -> None:
    assert sliced(BUDGET, tape(*sizes)) == seqs


def test_a_slice_of_the_oldest_takes_so_many_messages_however_long() -> None:
    policy = BUDGET.replace(
        observe_slice="oldest_n", observe_slice_messages=3, observe_max_tokens=300
    )

    assert sliced(policy, tape(90, 90, 90, 90)) == [1, 2, 3]
    assert sliced(policy, tape(1, 1, 1, 1)) == [1, 2, 3]
    assert sliced(policy, tape(150, 150, 1)) == [1, 2]
    assert sliced(policy, tape(150, 151, 1)) == [1]


def test_a_slice_of_all_takes_what_one_reading_may_have() -> None:
    policy = BUDGET.replace(observe_slice="all", observe_max_tokens=300)

    assert sliced(policy, tape(100, 100, 100, 100)) == [1, 2, 3]
    assert sliced(policy, tape(100, 100, 101, 100)) == [1, 2]
    assert sliced(policy, tape(900, 100)) == [1]


def test_the_newest_messages_are_not_observed_unless_everything_or_all_is_asked_for() -> None:
    keeping = BUDGET.replace(observe_tokens=1_000, keep_last=2)

    assert sliced(keeping, tape(10, 10, 10, 10)) == [1, 2]
    assert sliced(keeping, tape(10, 10, 10, 10), everything=True) == [1, 2, 3, 4]
    assert sliced(keeping.replace(observe_slice="all"), tape(10, 10, 10)) == [1, 2, 3]


def test_a_slice_ends_with_the_results_of_its_calls() -> None:
    call = Message.assistant("", tool_calls=[ToolCallPart(id="a", name="look", arguments="{}")])
    messages = [
        message.replace(seq=seq, tokens=60)
        for seq, message in enumerate([Message.user("Hi"), call, Message.tool("a", "1")], start=1)
    ]

    assert sliced(BUDGET, messages) == [1]
    assert sliced(BUDGET.replace(observe_tokens=180), messages) == [1, 2, 3]
    assert sliced(BUDGET.replace(observe_tokens=180), messages[:2]) == [1]
    assert sliced(BUDGET.replace(observe_tokens=180), messages[:2], everything=True) == [1, 2]


def test_messages_that_are_not_the_end_of_the_tape_wait_for_results_also_when_all_is_asked() -> (
    None
):
    call = Message.assistant("", tool_calls=[ToolCallPart(id="a", name="look", arguments="{}")])
    page = [tape(10)[0], call.replace(seq=2, tokens=10)]

    found = observation_slice(BUDGET, state(last_seq=3), page, everything=True)

    assert [message.seq for message in found.messages] == [1]


@pytest.mark.parametrize(
    ("source_tokens", "target"),
    [(10_000, 2_000), (100, 64), (44, 64), (43, 63), (1, 21), (400_000, 16_000)],
)
def test_notes_are_a_share_of_their_source_and_of_a_few_words_all_of_it(
    source_tokens: int, target: int
) -> None:
    assert observation_target(Policy(note_ratio=0.2), source_tokens) == target


@pytest.mark.parametrize(
    ("source_tokens", "target"),
    [(3_010, 602), (2_990, 600), (1_201, 600), (1_000, 500), (320, 160)],
)
def test_notes_of_a_short_source_may_take_half_of_it(source_tokens: int, target: int) -> None:
    policy = Policy(note_ratio=0.2, min_note_tokens=600)

    assert observation_target(policy, source_tokens) == target
    without = policy.replace(min_note_tokens=0)
    assert observation_target(without, source_tokens) == max(64, source_tokens // 5)


def test_notes_of_a_short_source_take_no_more_than_those_of_a_full_one() -> None:
    policy = Policy(note_ratio=0.2, min_note_tokens=600, observe_tokens=1_000)

    assert observation_target(policy, 900) == 200


@pytest.mark.parametrize(("noted_tokens", "target"), [(0, 500), (5_999, 500), (6_000, 200)])
def test_only_the_beginning_of_a_conversation_has_more_notes_than_their_share(
    noted_tokens: int, target: int
) -> None:
    policy = Policy(note_ratio=0.2, min_note_tokens=600, observe_tokens=8_000)

    assert observation_target(policy, 1_000, noted_tokens) == target


# Activation


def ready(*, last_sum: int, active_sum: int = 0, tail: Sequence[Message] = ()) -> Snapshot:
    segments = (segment(1, 4, sum_tokens=400), segment(5, 8, sum_tokens=800))
    now = state(
        last_seq=12,
        observed_seq=8,
        active_seq=0,
        last_sum_tokens=last_sum,
        active_sum_tokens=active_sum,
        tail_sum_tokens=active_sum,
    )
    return Snapshot(state=now, segments=segments, tail=tuple(tail))


LATE = Policy(tail_tokens=1_000, tail_keep_tokens=300, keep_last=4)


@pytest.mark.parametrize(
    ("last_sum", "keep_tokens", "keep_last", "active_seq"),
    [
        (1_000, 300, 4, None),
        (1_001, 300, 4, 4),
        (1_100, 300, 4, 8),
        (1_100, 301, 4, 4),
        (1_100, 300, 5, 4),
        (1_100, 300, 8, 4),
        (1_100, 300, 9, 4),
        (1_100, 900, 4, 4),
    ],
)
def test_a_tail_over_its_budget_is_activated_as_far_as_leaves_enough_and_by_one_segment_at_least(
    last_sum: int, keep_tokens: int, keep_last: int, active_seq: int | None
) -> None:
    policy = LATE.replace(tail_keep_tokens=keep_tokens, keep_last=keep_last)

    assert activation(policy, ready(last_sum=last_sum), now=NOW) == active_seq


def test_a_tail_too_large_for_its_context_is_activated_within_its_budget() -> None:
    assert activation(LATE, ready(last_sum=1_000), now=NOW, overfull=True) == 4


def test_tokens_that_notes_stand_for_do_not_count_for_the_tail() -> None:
    assert activation(LATE, ready(last_sum=1_400, active_sum=400), now=NOW) is None


def test_without_notes_that_are_ready_there_is_nothing_to_activate() -> None:
    snapshot = ready(last_sum=5_000)

    assert activation(LATE, replace(snapshot, segments=()), now=NOW) is None
    used = replace(snapshot.state, active_seq=8)
    assert activation(LATE, replace(snapshot, state=used), now=NOW) is None


def test_notes_are_activated_as_soon_as_they_are_made_where_the_policy_says_so() -> None:
    policy = LATE.replace(activate="when_observed")

    assert activation(policy, ready(last_sum=801), now=NOW) == 8


def test_a_cold_cache_makes_activation_free_but_not_of_what_has_to_stay_raw() -> None:
    old = Message.assistant("Hi").replace(seq=12, tokens=1, created_at=NOW - timedelta(hours=1))
    roomy = LATE.replace(tail_keep_tokens=900)

    assert activation(LATE, ready(last_sum=1_000, tail=[old]), now=NOW) == 4
    assert activation(roomy, ready(last_sum=1_000, tail=[old]), now=NOW) is None
    assert activation(LATE, ready(last_sum=1_000), now=NOW, model_changed=True) == 4
    fresh = old.replace(created_at=NOW - timedelta(seconds=300))
    assert activation(LATE, ready(last_sum=1_000, tail=[fresh]), now=NOW) is None


@pytest.mark.parametrize(
    ("keep_last", "keep_tokens", "tail_tokens", "start"),
    [
        (0, 0, 1_000, 6),
        (1, 0, 1_000, 6),
        (2, 0, 1_000, 5),
        (4, 0, 1_000, 3),
        (0, 30, 1_000, 4),
        (0, 31, 1_000, 3),
        (0, 500, 1_000, 1),
        (0, 500, 25, 5),
        (0, 500, 30, 4),
        (3, 500, 15, 4),
    ],
)
def test_beside_notes_of_all_messages_the_newest_stay_raw(
    keep_last: int, keep_tokens: int, tail_tokens: int, start: int
) -> None:
    policy = BRAIN.replace(keep_last=keep_last, tail_keep_tokens=0, tail_tokens=30_000).replace(
        tail_keep_tokens=keep_tokens, tail_tokens=max(tail_tokens, keep_tokens + 1)
    )
    if tail_tokens <= keep_tokens:
        policy = BRAIN.replace(keep_last=keep_last, tail_keep_tokens=tail_tokens - 1).replace(
            tail_tokens=tail_tokens
        )

    assert tail_start(policy, tape(*[10] * 6), 6) == start


def test_what_is_not_under_notes_stays_raw_whatever_its_size() -> None:
    policy = BRAIN.replace(keep_last=0)

    assert tail_start(policy, tape(*[20_000] * 6), 2) == 3
    assert tail_start(policy, tape(*[10] * 3, first_seq=9), 6) == 7
    assert tail_start(policy, [], 6) == 7


def test_a_tail_does_not_begin_with_a_result() -> None:
    call = Message.assistant("", tool_calls=[ToolCallPart(id="a", name="look", arguments="{}")])
    messages = [
        message.replace(seq=seq, tokens=10)
        for seq, message in enumerate([Message.user("Hi"), call, Message.tool("a", "1")], start=1)
    ]

    assert tail_start(BRAIN.replace(keep_last=1), messages, 3) == 2


# Facts


@pytest.mark.parametrize(
    ("changes", "everything", "end"),
    [
        ({}, False, 4),
        ({}, True, 8),
        ({"facts_failure": failure()}, False, 8),
        ({"facts_seq": 4}, False, None),
        ({"facts_seq": 4}, True, 8),
        ({"facts_seq": 8}, True, None),
        ({"user": None}, True, None),
    ],
)
def test_facts_are_due_of_what_was_reflected_or_of_everything_that_was_observed(
    changes: dict[str, object], everything: bool, end: int | None
) -> None:
    now = state(**{"last_seq": 9, "observed_seq": 8, "reflected_seq": 4, **changes})

    assert facts_end(Policy(), now, everything=everything) == end


def test_facts_are_not_extracted_where_memory_or_they_are_off() -> None:
    now = state(observed_seq=8, reflected_seq=4)

    assert facts_end(Policy(extract_facts=False), now) is None
    assert facts_end(Policy(enabled=False), now) is None


# Reflections


def sources(policy: Policy, *segments: Segment, **changes: object) -> list[str]:
    now = state(**{"active_seq": 100, **changes})
    return [found.id for found in reflection_sources(policy, now, segments)]


GENERATIONS = Policy(reflect_tokens=(250, 400))


def test_a_generation_over_its_budget_is_condensed_and_one_on_it_is_not() -> None:
    three = [segment(n, n, tokens=100) for n in (1, 2, 3)]
    fewer = [segment(1, 1, tokens=100), segment(2, 2, tokens=150)]

    assert sources(GENERATIONS, *three) == ["0-1", "0-2", "0-3"]
    assert sources(GENERATIONS, *fewer) == []


def test_generations_are_summed_apart_or_by_kind_or_all_together() -> None:
    mixed = [
        segment(1, 1, tokens=200, generation=2),
        segment(2, 2, tokens=201, generation=1),
        segment(3, 3, tokens=200),
    ]

    assert sources(Policy(reflect_tokens=(250, 250, 250)), *mixed) == []
    assert sources(Policy(reflect_tokens=(250, 400), reflect_scope="kind"), *mixed) == [
        "2-1",
        "1-2",
    ]
    assert sources(Policy(reflect_tokens=(600,), reflect_scope="all"), *mixed) == [
        "2-1",
        "1-2",
        "0-3",
    ]
    assert sources(Policy(reflect_tokens=(601,), reflect_scope="all"), *mixed) == []


def test_observations_are_condensed_before_reflections() -> None:
    both = [segment(1, 1, tokens=500, generation=1), segment(2, 2, tokens=300)]

    assert sources(GENERATIONS, *both) == ["0-2"]
    assert sources(GENERATIONS, both[0]) == ["1-1"]


def test_what_no_prompt_shows_yet_is_not_condensed() -> None:
    three = [segment(n, n, tokens=100) for n in (1, 2, 3)]

    assert sources(GENERATIONS, *three, active_seq=2) == []
    assert sources(GENERATIONS, *three, active_seq=3) == ["0-1", "0-2", "0-3"]
    whole = Policy(reflect_tokens=(250,), reflect_scope="all")
    assert sources(whole, *three, active_seq=2) == []


def test_nothing_is_condensed_where_memory_is_off_or_no_budget_is_named() -> None:
    big = segment(1, 1, tokens=9_000)

    assert sources(GENERATIONS.replace(enabled=False), big) == []
    assert sources(GENERATIONS.replace(reflect_tokens=()), big) == []


def test_a_reflection_waits_for_the_least_time_after_the_one_before() -> None:
    policy = GENERATIONS.replace(reflect_min_interval_seconds=60)
    before = state(last_reflected_at=NOW - timedelta(seconds=20))
    from_a_wrong_clock = state(last_reflected_at=NOW + timedelta(seconds=1))

    assert reflection_time(policy, before, now=NOW) == NOW + timedelta(seconds=40)
    assert reflection_time(policy, state(), now=NOW) == NOW
    assert reflection_time(policy, state(last_reflected_at=NOW), now=NOW) == NOW + timedelta(
        seconds=60
    )
    assert reflection_time(policy, from_a_wrong_clock, now=NOW) == NOW


@pytest.mark.parametrize(
    ("scope", "budgets", "generations", "made"),
    [
        ("generation", (1, 1), [0], 1),
        ("generation", (1, 1), [1], 1),
        ("generation", (1, 1, 1), [1], 2),
        ("generation", (1, 1, 1), [2], 2),
        ("kind", (1, 1), [1, 2], 3),
        ("all", (1,), [2, 0], 3),
        ("all", (1,), [0], 1),
    ],
)
def test_a_reflection_is_one_generation_above_its_newest_source_up_to_the_top(
    scope: str, budgets: tuple[int, ...], generations: list[int], made: int
) -> None:
    policy = Policy(reflect_scope=scope, reflect_tokens=budgets)  # type: ignore[arg-type]
    found = [segment(n, n, generation=g) for n, g in enumerate(generations, start=1)]

    assert plan_reflection(policy, found).generation == made


@pytest.mark.parametrize(
    ("policy", "generation", "tokens", "target", "limit"),
    [
        (Policy(reflect_tokens=(1_000, 2_000), reflect_ratio=0.5), 0, 1_200, 600, 1_200),
        (Policy(reflect_tokens=(1_000, 2_000), reflect_ratio=0.5), 0, 9_000, 1_500, 2_000),
        (Policy(reflect_tokens=(1_000, 2_000), reflect_ratio=0.5), 1, 2_100, 1_500, 2_000),
        (
            Policy(reflect_tokens=(1_000,), reflect_scope="all", reflect_ratio=0.5),
            0,
            1_200,
            600,
            1_000,
        ),
        (
            Policy(reflect_tokens=(900, 2_000), reflect_scope="kind", reflect_ratio=0.5),
            1,
            2_200,
            1_100,
            2_000,
        ),
        (
            Policy(reflect_tokens=(1_000, 2_000), reflect_ratio=0.2, max_output_tokens=1_600),
            1,
            9_000,
            1_500,
            2_000,
        ),
    ],
)
def test_a_reflection_is_a_share_of_its_sources_and_leaves_room_in_its_own_budget(
    policy: Policy, generation: int, tokens: int, target: int, limit: int
) -> None:
    found = [segment(1, 1, tokens=tokens, generation=generation)]

    assert plan_reflection(policy, found).target_tokens == target
    assert plan_reflection(policy, found).limit_tokens == limit


def test_a_reflection_has_room_for_a_note_with_its_date_and_speaker() -> None:
    policy = Policy(reflect_tokens=(100, 100), reflect_ratio=0.17)

    assert plan_reflection(policy, [segment(1, 1, tokens=120)]).target_tokens == 64


def test_a_reflection_is_no_longer_than_a_model_can_write() -> None:
    policy = Policy(
        reflect_tokens=(1_000, 3_000),
        reflect_ratio=0.5,
        max_output_tokens=1_600,
        observe_max_tokens=4_000,
    )

    assert plan_reflection(policy, [segment(1, 1, tokens=9_000)]).target_tokens == 1_600


def test_the_target_of_hardly_any_text_is_a_token() -> None:
    assert plan_reflection(Policy(), [segment(1, 1, tokens=1)]).target_tokens == 1


# Failures


@pytest.mark.parametrize(
    ("failures", "jitter", "seconds"),
    [(1, 0.0, 60), (2, 0.0, 120), (3, 0.0, 240), (7, 0.0, 3_600), (99, 0.0, 3_600), (1, 1.0, 75)],
)
def test_the_wait_doubles_with_each_failure_up_to_its_limit_and_has_jitter(
    failures: int, jitter: float, seconds: float
) -> None:
    assert retry_delay(Policy(), failures, jitter=jitter) == timedelta(seconds=seconds)


def test_an_answer_that_was_cut_off_is_tried_again_ten_times_later() -> None:
    delay = retry_delay(Policy(), 1, jitter=0.0, reason="cut_off")

    assert delay == timedelta(seconds=600)


@pytest.mark.parametrize(("asked", "seconds"), [(30, 60), (900, 900), (10**9, 86_400)])
def test_a_provider_that_asks_for_a_wait_is_obeyed_within_a_day(
    asked: float, seconds: float
) -> None:
    assert retry_delay(Policy(), 1, jitter=0.0, asked_seconds=asked) == timedelta(seconds=seconds)


def test_the_wait_of_many_failures_is_still_a_number() -> None:
    longest = Policy(retry_seconds=1.0, retry_max_seconds=1e10)

    assert retry_delay(longest, 31, jitter=0.0) == timedelta(seconds=2**30)
    assert retry_delay(longest, 32, jitter=0.0) == timedelta(seconds=2**30)


@pytest.mark.parametrize(("seconds", "may"), [(59, False), (60, True), (61, True)])
def test_a_failed_step_may_be_tried_again_when_its_wait_is_over(seconds: int, *, may: bool) -> None:
    now = NOW + timedelta(seconds=seconds)

    assert may_try(Policy(), state(last_seq=9), failure(), now=now, made_by="m") is may
    assert may_try(Policy(), state(last_seq=9), None, now=NOW, made_by="m")


@pytest.mark.parametrize(
    ("failures", "last_seq", "latched"),
    [(5, 9, False), (6, 9, True), (7, 9, True), (6, 10, False), (6, 8, True)],
)
def test_after_so_many_failures_only_new_messages_allow_another_try(
    failures: int, last_seq: int, *, latched: bool
) -> None:
    late = NOW + timedelta(days=1)
    made = failure(failures=failures)

    assert is_latched(Policy(), state(last_seq=last_seq), made) is latched
    assert may_try(Policy(), state(last_seq=last_seq), made, now=late, made_by="m") is not latched


@pytest.mark.parametrize("reason", sorted(UNREACHABLE))
def test_later_steps_wait_while_the_observers_model_cannot_be_reached(reason: str) -> None:
    down = state(observe_failure=failure(reason=reason))

    assert later_steps_wait(down, now=NOW, observer="m")
    assert not later_steps_wait(down, now=NOW + timedelta(seconds=60), observer="m")


def test_later_steps_do_not_wait_for_a_failure_of_what_was_written() -> None:
    assert not later_steps_wait(state(), now=NOW, observer="m")
    assert not later_steps_wait(
        state(observe_failure=failure(reason="empty")), now=NOW, observer="m"
    )


def test_what_counts_as_unreachable_are_failures_of_access_service_and_database() -> None:
    assert {
        "auth",
        "connection",
        "cooling",
        "deferred",
        "overloaded",
        "quota",
        "rate_limit",
        "server",
        "store",
        "timeout",
        "unknown_model",
    } == UNREACHABLE


def test_what_another_maker_met_says_nothing_about_this_one() -> None:
    made = failure(made_by="a", failures=9)

    assert may_try(Policy(), state(last_seq=9), made, now=NOW, made_by="b")
    assert not may_try(Policy(), state(last_seq=9), made, now=NOW, made_by="a")
    assert later_steps_wait(state(observe_failure=made), now=NOW, observer="a")
    assert not later_steps_wait(state(observe_failure=made), now=NOW, observer="b")


def test_a_failure_of_the_future_is_of_a_wrong_clock_and_holds_nothing_up() -> None:
    before = NOW - timedelta(seconds=1)

    assert may_try(Policy(), state(last_seq=9), failure(), now=before, made_by="m")
    assert not may_try(Policy(), state(last_seq=9), failure(), now=NOW, made_by="m")
    assert not later_steps_wait(state(observe_failure=failure()), now=before, observer="m")


def test_all_that_waits_is_looked_at_again_after_the_longest_wait_of_a_failure() -> None:
    assert longest_wait(Policy(retry_max_seconds=100.0)) == timedelta(seconds=125)


@pytest.mark.parametrize(
    ("compare", "precompute_at", "tokens"),
    [("gt", None, 1_100), ("gte", None, 1_099), ("gt", 0.55, 1_055), ("gte", 0.555, 1_055)],
)
def test_a_look_makes_sense_where_an_observation_becomes_due(
    compare: Any, precompute_at: float | None, tokens: int
) -> None:
    policy = Policy(observe_tokens=100, observe_compare=compare, precompute_at=precompute_at)
    waiting = unobserved(10)

    assert look_tokens(policy, waiting) == tokens
    assert not observation_due(policy, unobserved(tokens - 1_000))
    assert observation_due(policy, unobserved(tokens - 999))


def test_a_look_while_an_observation_is_due_makes_sense_with_the_next_message() -> None:
    assert look_tokens(Policy(observe_tokens=100), unobserved(500)) == 1_500


def test_a_single_unobserved_token_may_make_an_observation_due_and_none_never() -> None:
    assert observation_due(Policy(observe_tokens=1, observe_compare="gte"), unobserved(1))
    assert not observation_due(Policy(observe_tokens=1, observe_compare="gte"), unobserved(0))


def test_of_many_segments_the_last_is_activated_where_all_are() -> None:
    three = replace(
        ready(last_sum=1_201),
        segments=(segment(1, 2), segment(3, 4), segment(5, 8)),
    )

    assert activation(LATE.replace(activate="when_observed"), three, now=NOW) == 8


# Facts of a conversation that rests, and an observer that is away


def resting(**changes: object) -> MemoryState:
    fields = {"user": "ana", "last_seq": 9, "facts_seq": 8, "last_message_at": NOW, **changes}
    return state(last_sum_tokens=1_000, observed_sum_tokens=1_000, **fields)


def test_facts_are_due_once_a_conversation_has_rested_for_so_long() -> None:
    policy = Policy(facts_idle_seconds=0.5)

    assert facts_time(policy, resting(), now=NOW) == NOW + timedelta(seconds=0.5)


def test_facts_of_the_last_day_of_all_are_due_at_its_end() -> None:
    last = datetime.max.replace(tzinfo=UTC)

    assert facts_time(Policy(), resting(last_message_at=last), now=last) == last


def test_facts_of_a_message_dated_more_than_a_day_ahead_are_due_at_once() -> None:
    policy = Policy(facts_idle_seconds=300.0)

    for seconds, due_seconds in ((300, 600), (86_400, 86_700), (86_401, 0)):
        ahead = resting(last_message_at=NOW + timedelta(seconds=seconds))
        assert facts_time(policy, ahead, now=NOW) == NOW + timedelta(seconds=due_seconds)


@pytest.mark.parametrize(
    ("policy", "changes"),
    [
        (Policy(enabled=False), {}),
        (Policy(extract_facts=False), {}),
        (Policy(facts_idle_seconds=0.0), {}),
        (Policy(), {"user": None}),
        (Policy(), {"facts_seq": 9}),
        (Policy(), {"last_message_at": None}),
    ],
)
def test_no_rest_makes_facts_due_where_none_are_wanted_or_all_are_there(
    policy: Policy, changes: dict[str, object]
) -> None:
    assert facts_time(policy, resting(**changes), now=NOW) is None


def test_the_next_message_begins_the_time_of_facts_where_all_are_there() -> None:
    policy = Policy(observe_tokens=500)

    assert look_tokens(policy, resting(facts_seq=9)) == 1_000
    assert look_tokens(policy, resting()) == 1_500
    assert look_tokens(policy, resting(facts_seq=9, user=None)) == 1_500


def test_nothing_is_raw_before_the_first_message_of_a_tail() -> None:
    policy = Policy(keep_last=2, tail_keep_tokens=0)
    raw = tape(10, 10, 10, first_seq=4)

    assert tail_start(policy, raw, 3) == 4
    assert tail_start(policy, raw, 6) == 5
    assert tail_start(replace(policy, keep_last=4), raw, 4) == 4


@pytest.mark.parametrize(
    ("failures", "after", "takes"), [(1, 2, False), (2, 2, True), (3, 2, True), (9, None, False)]
)
def test_the_embedded_observer_takes_over_after_so_many_failures(
    failures: int, after: int | None, *, takes: bool
) -> None:
    failed = state(observe_failure=failure(failures=failures, made_by="claude"))
    policy = Policy(fallback_after_failures=after)

    assert takes_over(policy, failed, "claude") is takes
    assert not takes_over(policy, failed, "gpt")
    assert not takes_over(policy, state(), "claude")


def test_notes_that_stand_in_are_restored_when_the_wait_of_their_maker_is_over() -> None:
    failed = state(observe_failure=failure(made_by="claude"))

    assert restore_time(failed, now=NOW, observer="claude") == NOW + timedelta(seconds=60)
    assert restore_time(failed, now=NOW + timedelta(seconds=60), observer="claude") is None
    assert restore_time(failed, now=NOW, observer="gpt") is None
    assert restore_time(state(), now=NOW, observer="claude") is None
