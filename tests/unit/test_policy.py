"""The settings of a memory: what each preset is, and which values are refused."""

import ast
import dataclasses
import math
import re
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, strategies as st

from remanence import Policy
from remanence.catalog import look_up
from remanence.errors import InvalidArgument, InvalidPolicy
from remanence.policy.policy import request_tokens

DEFAULTS = {
    "enabled": True,
    "disabled_messages": None,
    "model": "claude-sonnet-5-5",
    "token_counter": None,
    "observe_tokens": 8_000,
    "observe_compare": "gt",
    "observe_gauge": "unobserved",
    "observe_slice": "budget",
    "observe_slice_messages": 20,
    "observe_max_tokens": 8_000,
    "observe_timeout_seconds": 120.0,
    "observer_mode": "separate",
    "precompute_at": None,
    "note_ratio": 0.2,
    "min_note_tokens": 1_600,
    "note_format": "compact",
    "note_language": "conversation",
    "max_output_tokens": 16_000,
    "activate": "over_budget",
    "tail_tokens": 8_000,
    "tail_keep_tokens": 1_500,
    "keep_last": 4,
    "keep_last_tool_results": None,
    "cache_ttl_seconds": None,
    "reflect_tokens": (5_000, 24_000),
    "reflect_scope": "generation",
    "reflect_ratio": 0.17,
    "reflect_min_interval_seconds": 0.0,
    "reflect_at_end": False,
    "superseded": "keep",
    "extract_facts": True,
    "facts_idle_seconds": 300.0,
    "facts_tokens": 1_500,
    "facts_place": "prefix",
    "recall_each_turn": True,
    "recall_tokens": 400,
    "recall_timeout_seconds": 2.0,
    "max_context_tokens": None,
    "block_after": None,
    "sync_timeout_seconds": 10.0,
    "render_order": "oldest_first",
    "heading": "## Conversation Memory",
    "separator": "",
    "show_clock": True,
    "retry_seconds": 60.0,
    "retry_max_seconds": 3_600.0,
    "max_failures": 6,
    "fallback_after_failures": None,
    "max_message_bytes": 16_777_216,
}


def test_each_setting_has_the_default_that_the_pages_name() -> None:
    assert dataclasses.asdict(Policy.default()) == DEFAULTS


@pytest.mark.parametrize(
    ("preset", "differences"),
    [
        (
            Policy.lango,
            {
                "enabled": False,
                "disabled_messages": 100,
                "recall_each_turn": False,
                "token_counter": "cjk",
                "min_note_tokens": 0,
                "observe_tokens": 1_000,
                "observe_slice": "all",
                "observe_max_tokens": None,
                "note_format": "prose",
                "activate": "when_observed",
                "tail_tokens": 8_000,
                "tail_keep_tokens": 7_000,
                "keep_last": 0,
                "reflect_tokens": (2_000, 2_000),
                "reflect_ratio": 0.25,
                "extract_facts": False,
                "facts_tokens": 0,
                "show_clock": False,
                "reflect_scope": "kind",
                "superseded": "purge",
                "render_order": "newest_first",
            },
        ),
        (
            Policy.zora,
            {
                "min_note_tokens": 0,
                "recall_each_turn": False,
                "token_counter": "split",
                "observe_tokens": 30_000,
                "observe_gauge": "working_window",
                "observe_slice": "oldest_n",
                "observe_max_tokens": None,
                "precompute_at": 0.7,
                "note_format": "dated_priority",
                "tail_tokens": 30_000,
                "tail_keep_tokens": 20_000,
                "keep_last": 0,
                "reflect_tokens": (10_000,),
                "reflect_ratio": 0.55,
                "reflect_scope": "all",
                "reflect_at_end": True,
                "facts_idle_seconds": 0.0,
                "facts_tokens": 5_000,
                "block_after": 2.0,
                "heading": "## Earlier in This Session",
            },
        ),
        (
            Policy.brain,
            {
                "min_note_tokens": 0,
                "recall_each_turn": False,
                "token_counter": "flat",
                "observe_tokens": 30_000,
                "observe_slice": "all",
                "observe_max_tokens": None,
                "note_format": "tagged",
                "activate": "when_observed",
                "tail_tokens": 30_000,
                "tail_keep_tokens": 0,
                "keep_last": 12,
                "keep_last_tool_results": 6,
                "reflect_tokens": (40_000,),
                "facts_tokens": 2_000,
                "reflect_scope": "all",
                "reflect_ratio": 0.6,
                "reflect_min_interval_seconds": 3_600.0,
                "facts_idle_seconds": 0.0,
                "max_output_tokens": 32_000,
                "facts_place": "volatile",
                "heading": "## Conversation Context (Observations)",
                "separator": "---",
            },
        ),
    ],
)
def test_a_preset_differs_from_the_defaults_in_what_its_design_says(
    preset: Callable[..., Policy], differences: dict[str, object]
) -> None:
    made = preset()

    assert {name: getattr(made, name) for name in differences} == differences
    others = [name for name in DEFAULTS if name not in differences]
    assert {name: getattr(made, name) for name in others} == {
        name: DEFAULTS[name] for name in others
    }


@pytest.mark.parametrize("preset", [Policy.default, Policy.lango, Policy.zora, Policy.brain])
def test_a_setting_that_is_given_wins_over_that_of_the_preset(
    preset: Callable[..., Policy],
) -> None:
    assert preset(enabled=False, keep_last=3, heading="").keep_last == 3
    assert not preset(enabled=False).enabled


@pytest.mark.parametrize(
    "name",
    [
        "observe_tokens",
        "observe_slice_messages",
        "observe_max_tokens",
        "observe_timeout_seconds",
        "max_output_tokens",
        "tail_tokens",
        "retry_seconds",
        "retry_max_seconds",
        "max_failures",
        "max_message_bytes",
    ],
)
@pytest.mark.parametrize("value", [0, -1])
def test_a_size_or_a_time_is_positive(name: str, value: int) -> None:
    with pytest.raises(InvalidPolicy) as refused:
        Policy.default(**{name: value})

    or_none = ", or None" if name == "observe_max_tokens" else ""
    assert str(refused.value) == f"{name}={value} is impossible: use a positive number{or_none}"


@pytest.mark.parametrize(
    "name",
    [
        "tail_keep_tokens",
        "keep_last",
        "reflect_min_interval_seconds",
        "facts_tokens",
        "recall_tokens",
        "recall_timeout_seconds",
        "sync_timeout_seconds",
    ],
)
def test_a_least_number_may_be_0_and_no_less(name: str) -> None:
    assert getattr(Policy.default(**{name: 0}), name) == 0
    with pytest.raises(InvalidPolicy) as refused:
        Policy.default(**{name: -1})

    assert str(refused.value) == f"{name}=-1 is impossible: use 0 or more"


@pytest.mark.parametrize("name", ["note_ratio", "reflect_ratio", "precompute_at"])
@pytest.mark.parametrize("value", [0.0, -0.1, 1.01])
def test_a_share_is_above_0_and_at_most_1(name: str, value: float) -> None:
    with pytest.raises(InvalidPolicy) as refused:
        Policy.default(**{name: value})

    or_none = ", or None" if name == "precompute_at" else ""
    remedy = f"use a share between 0 and 1{or_none}"
    assert str(refused.value) == f"{name}={value} is impossible: {remedy}"


@pytest.mark.parametrize(
    ("settings", "refusal"),
    [
        ({"cache_ttl_seconds": -1}, "cache_ttl_seconds=-1 is impossible: use 0 or more, or None"),
        ({"block_after": 0.9}, "block_after=0.9 is impossible: use 1.0 or more, or None"),
        (
            {"disabled_messages": 0},
            "disabled_messages=0 is impossible: use a positive number, or None",
        ),
        (
            {"keep_last_tool_results": -1},
            "keep_last_tool_results=-1 is impossible: use 0 or more, or None",
        ),
        (
            {"reflect_tokens": (5_000,)},
            (
                "reflect_tokens=(5000,) is impossible: name two or more, of observations and of each "
                "generation of reflections, or set reflect_scope='all'"
            ),
        ),
        (
            {"reflect_tokens": (5_000,), "reflect_scope": "kind"},
            (
                "reflect_tokens=(5000,) is impossible: with reflect_scope='kind' name two, of "
                "observations and of reflections"
            ),
        ),
        (
            {"reflect_tokens": (5_000, 5_000, 5_000), "reflect_scope": "kind"},
            (
                "reflect_tokens=(5000, 5000, 5000) is impossible: with reflect_scope='kind' name two, of "
                "observations and of reflections"
            ),
        ),
        (
            {"reflect_tokens": (5_000, 0)},
            "reflect_tokens=(5000, 0) is impossible: use positive budgets",
        ),
        (
            {"max_context_tokens": 36_999},
            (
                "reflect_tokens=(5000, 24000) is impossible: with tail_tokens=8,000 and "
                "reflect_tokens=(5000, 24000), messages and notes take 37,000 of the 36,999 tokens of "
                "a context: raise max_context_tokens to 37,000, take a preset such as Policy.default, "
                "whose budgets then fit, or lower it, such as to (4999, 23999)"
            ),
        ),
        (
            {"max_context_tokens": 11_625},
            (
                "tail_tokens=8000 is impossible: with tail_tokens=8,000 and "
                "reflect_tokens=(5000, 24000), messages and notes take 37,000 of the 11,625 tokens of "
                "a context: raise max_context_tokens to 37,000, take a preset such as Policy.default, "
                "whose budgets then fit, or lower both, such as to tail_tokens=2513 and "
                "reflect_tokens=(1570, 7540)"
            ),
        ),
        (
            {"max_context_tokens": 11_626},
            (
                "reflect_tokens=(5000, 24000) is impossible: with tail_tokens=8,000 and "
                "reflect_tokens=(5000, 24000), messages and notes take 37,000 of the 11,626 tokens of "
                "a context: raise max_context_tokens to 37,000, take a preset such as Policy.default, "
                "whose budgets then fit, or lower it, such as to (625, 3000)"
            ),
        ),
        (
            {"tail_keep_tokens": 8_000},
            (
                "tail_keep_tokens=8000 is impossible: it must be below tail_tokens=8,000, or activation "
                "frees nothing: lower it, such as to 5333"
            ),
        ),
        (
            {"max_output_tokens": 1_599, "reflect_tokens": ()},
            (
                "note_ratio=0.2 is impossible: notes of 1,600 tokens would exceed "
                "max_output_tokens=1,599 and be cut off: lower note_ratio or observe_max_tokens"
            ),
        ),
        (
            {"max_output_tokens": 4_079},
            (
                "reflect_ratio=0.17 is impossible: a reflection of 4,080 tokens would exceed "
                "max_output_tokens=4,079 and be cut off: lower reflect_ratio or reflect_tokens"
            ),
        ),
    ],
)
def test_an_impossible_setting_is_named_with_its_value_and_a_remedy(
    settings: dict[str, object], refusal: str
) -> None:
    with pytest.raises(InvalidPolicy) as refused:
        Policy(**settings)  # type: ignore[arg-type] # the cases

    assert str(refused.value) == refusal


@pytest.mark.parametrize("preset", [Policy.zora, Policy.default])
@pytest.mark.parametrize("tail_tokens", [1, 2, 1_000])
def test_the_number_that_is_suggested_for_a_smaller_tail_is_allowed(
    preset: Callable[..., Policy], tail_tokens: int
) -> None:
    with pytest.raises(InvalidPolicy) as refused:
        preset(tail_tokens=tail_tokens)

    suggested = int(str(refused.value).rpartition(" ")[2])
    assert preset(tail_tokens=tail_tokens, tail_keep_tokens=suggested).tail_keep_tokens == suggested


@pytest.mark.parametrize(
    ("settings", "refusal"),
    [
        (
            {"retry_seconds": math.inf},
            "retry_seconds=inf is impossible: use at most 10,000,000,000",
        ),
        ({"tail_tokens": 10**11}, "tail_tokens=100000000000 is impossible: use at most"),
        ({"block_after": math.inf}, "block_after=inf is impossible: use at most"),
        ({"keep_last": "4"}, "keep_last='4' is impossible: use a whole number"),
        ({"note_language": " "}, "note_language=' ' is impossible: use the name of a language"),
        ({"note_language": "x" * 61}, f"note_language='{'x' * 61}' is impossible"),
        ({"note_language": "German.\nObey"}, "note_language='German.\\nObey' is impossible"),
        ({"note_format": "short"}, "note_format='short' is impossible: use 'compact' or"),
        ({"reflect_tokens": (5_000, "x")}, "reflect_tokens=(5000, 'x') is impossible: use a list"),
    ],
)
def test_a_value_of_another_type_is_refused(settings: dict[str, object], refusal: str) -> None:
    with pytest.raises(InvalidPolicy) as refused:
        Policy.default(**settings)

    assert str(refused.value).startswith(refusal)


@pytest.mark.parametrize(
    "settings",
    [
        {"observe_tokens": 1, "tail_tokens": 1, "tail_keep_tokens": 0},
        {"cache_ttl_seconds": 0},
        {"block_after": 1},
        {"disabled_messages": 1},
        {"keep_last_tool_results": 0},
        {"reflect_tokens": (5_000,), "reflect_scope": "all"},
        {"reflect_tokens": ()},
        {"reflect_tokens": (), "reflect_scope": "kind"},
        {"reflect_tokens": (5_000, 5_000), "reflect_scope": "kind"},
        {"reflect_tokens": (1, 1)},
        {"max_context_tokens": 37_000},
        {"tail_keep_tokens": 7_999},
        {"max_output_tokens": 1_600, "reflect_tokens": ()},
        {"max_output_tokens": 4_080},
        {"note_ratio": 1.0, "reflect_ratio": 1.0, "max_output_tokens": 24_000},
        {"precompute_at": 1.0},
        {"note_language": "x" * 60},
    ],
)
def test_the_last_value_that_makes_sense_is_taken(settings: dict[str, object]) -> None:
    made = Policy.default(**settings)

    assert {name: getattr(made, name) for name in settings} == settings


def test_a_copy_is_checked_like_a_new_policy() -> None:
    assert Policy.zora().replace(keep_last=7) == Policy.zora(keep_last=7)
    with pytest.raises(InvalidPolicy, match="keep_last=-1"):
        Policy.zora().replace(keep_last=-1)


@pytest.mark.parametrize(
    ("model", "seconds"),
    [("claude-sonnet-5-5", 300.0), ("gpt-5.4", 600.0), ("mistral-large", 300.0)],
)
def test_a_cache_lives_as_long_as_its_vendor_states_unless_a_time_is_given(
    model: str, seconds: float
) -> None:
    assert Policy(model=model).cache_lifetime_seconds == seconds
    assert Policy(model=model, cache_ttl_seconds=9.5).cache_lifetime_seconds == 9.5
    assert Policy(model=model, cache_ttl_seconds=0).cache_lifetime_seconds == 0


@pytest.mark.parametrize(
    ("model", "tokens"),
    [
        ("claude-sonnet-5-5", 200_000),
        ("anthropic:Claude-Haiku", 200_000),
        ("gemini-2.5-pro", 1_000_000),
        ("gpt-4.1-mini", 1_000_000),
        ("gpt-4o", 128_000),
        ("GPT-5.4", 272_000),
        ("llama3.2", 128_000),
    ],
)
def test_a_context_has_nine_tenths_of_the_models_window(model: str, tokens: int) -> None:
    assert look_up(model).window_tokens == tokens
    assert Policy(model=model).context_tokens == tokens * 9 // 10
    assert Policy(model=model, max_context_tokens=50_000).context_tokens == 50_000


def test_facts_take_a_tenth_of_a_context_at_most() -> None:
    assert Policy(facts_tokens=1_000).facts_budget == 1_000
    assert Policy(facts_tokens=9_000, max_context_tokens=50_000).facts_budget == 5_000


@pytest.mark.parametrize(
    ("model", "tokens"),
    [
        ("claude-sonnet-5-5", 75_000),
        ("gemini-2.5-pro", 375_000),
        ("gemini-2.5-pro > claude-sonnet-5-5 > gpt-5.4", 75_000),
        ("gpt-5.4 > llama3.2", 48_000),
    ],
)
def test_a_request_fills_three_eighths_of_the_smallest_window_of_a_chain(
    model: str, tokens: int
) -> None:
    assert request_tokens(model) == tokens


@pytest.mark.parametrize(
    ("changes", "tokens"),
    [
        ({"note_ratio": 0.5}, 32_000),
        ({"note_ratio": 0.2}, 75_000),
        ({"note_ratio": 0.2, "model": "gemini-2.5-pro"}, 80_000),
        ({"observe_max_tokens": 9_000}, 9_000),
    ],
)
def test_an_observation_reads_what_a_request_takes_and_its_notes_have_room_for(
    changes: dict[str, object], tokens: int
) -> None:
    settings = {"observe_max_tokens": None, "max_output_tokens": 16_000} | changes

    assert Policy.default(**settings).slice_tokens == tokens


@pytest.mark.parametrize("window", [1_000, 2_000, 9_000, 20_000])
def test_the_values_suggested_for_a_small_context_are_possible_ones(window: int) -> None:
    with pytest.raises(InvalidPolicy, match="such as to") as caught:
        Policy(max_context_tokens=window)
    suggested = dict(
        re.findall(r"(\w+)=(\d+|\([\d, ]+\))", str(caught.value).partition("such as to ")[2])
    )
    suggested = suggested or {"reflect_tokens": str(caught.value).partition("such as to ")[2]}
    values = {name: ast.literal_eval(value) for name, value in suggested.items()}

    assert Policy(max_context_tokens=window, **values).max_context_tokens == window


@pytest.mark.parametrize(
    ("make", "room"),
    [
        (Policy.default, 37_000),
        (Policy.lango, 12_000),
        (Policy.zora, 40_000),
        (Policy.brain, 70_000),
    ],
)
@given(window=st.integers(1_000, 80_000))
def test_any_window_alone_makes_a_preset_whose_budgets_fit_into_it(
    make: Callable[..., Policy], room: int, window: int
) -> None:
    policy, whole = make(max_context_tokens=window), make()

    taken = policy.tail_tokens + sum(policy.reflect_tokens)
    assert taken <= (window if window >= room else 0.75 * window)
    assert policy.observe_tokens <= policy.tail_tokens or window >= room
    assert window < room or policy == whole.replace(max_context_tokens=window)


@pytest.mark.parametrize("make", [Policy.default, Policy.lango, Policy.zora, Policy.brain])
@given(window=st.integers(1_000, 80_000), more=st.integers(0, 40_000))
def test_no_budget_is_larger_in_a_smaller_window(
    make: Callable[..., Policy], window: int, more: int
) -> None:
    small, large = make(max_context_tokens=window), make(max_context_tokens=window + more)

    assert small.observe_tokens <= large.observe_tokens
    assert (small.observe_max_tokens or 0) <= (large.observe_max_tokens or 0)
    assert small.tail_tokens <= large.tail_tokens
    assert small.tail_keep_tokens <= large.tail_keep_tokens
    pairs = zip(small.reflect_tokens, large.reflect_tokens, strict=True)
    assert all(fewer <= more for fewer, more in pairs)


def test_budgets_that_are_named_beside_a_small_window_stay() -> None:
    policy = Policy.default(max_context_tokens=8_000, tail_tokens=3_000)

    assert (policy.tail_tokens, policy.tail_keep_tokens) == (3_000, 1_120)
    assert Policy.default(max_context_tokens=37_000) == Policy(max_context_tokens=37_000)


@pytest.mark.parametrize("make", [Policy.default, Policy.zora, Policy])
@pytest.mark.parametrize("window", [50, 999])
def test_a_context_too_small_for_any_preset_names_the_smallest_that_is_possible(
    make: Callable[..., Policy], window: int
) -> None:
    with pytest.raises(InvalidPolicy) as caught:
        make(max_context_tokens=window)

    assert str(caught.value) == (
        f"max_context_tokens={window} is impossible: the budgets of a preset such as Policy.default "
        "fit in 1,000 tokens and more: raise it"
    )
    assert Policy.default(max_context_tokens=1_000).max_context_tokens == 1_000


def test_a_context_of_any_size_takes_budgets_that_are_named_and_fit() -> None:
    policy = Policy.default(
        max_context_tokens=800, tail_tokens=300, tail_keep_tokens=100, reflect_tokens=(100, 200)
    )

    assert policy.max_context_tokens == 800


@pytest.mark.parametrize("make", [Policy.default, Policy.zora, Policy().replace])
def test_a_misspelt_setting_is_refused_with_the_nearest_one(make: Any) -> None:
    with pytest.raises(InvalidArgument, match="no setting tail_token=1: use tail_tokens"):
        make(tail_token=1)
