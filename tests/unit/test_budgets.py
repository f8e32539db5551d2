"""What may be spent: which calls count, from when on, and what happens at a limit."""

import inspect
import logging
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given, strategies as st
from tests.builders import observe_request, reflect_request

from remanence import Budget
from remanence.costs.budgets import Budgeted, Budgets
from remanence.costs.calibration import Calibrator
from remanence.costs.ledger import Ledger
from remanence.costs.prices import cache_prices
from remanence.errors import InvalidPolicy, ObservationSkipped
from remanence.facts import ExtractiveFacts
from remanence.protocols import ExtractRequest
from remanence.stores import open_store
from remanence.testing import FixedClock, ScriptedObserver, ScriptedReflector
from remanence.testing.store_contract.samples import observation, usage
from remanence.types import ConversationRef, Message, Usage

CHAT = ConversationRef("default", "trip")
NOW = FixedClock().now()


def call(**changes: Any) -> Usage:  # fields by name
    return usage(conversation=CHAT, at=NOW, **changes)


@asynccontextmanager
async def spent(
    *budgets: Budget, calls: tuple[Usage, ...] = (), clock: FixedClock | None = None
) -> AsyncIterator[Budgets]:
    """Budgets after these calls."""
    store = await open_store("sqlite:///:memory:")
    ledger = Ledger(store)
    try:
        for ref in {call.conversation for call in calls if call.conversation}:
            await store.append(ref, [Message.user("Hello")], user="ana")
        await store.record_usage(calls)
        yield Budgets(budgets, ledger=ledger, events=store, clock=clock or FixedClock())
    finally:
        await store.close()


@pytest.mark.req("X-19")
@pytest.mark.parametrize(
    ("usd", "level"), [(0.49, "ok"), (0.5, "soft"), (0.99, "soft"), (1.0, "hard"), (5.0, "hard")]
)
def test_dollars_reach_a_limit_from_it_on(usd: float, level: str) -> None:
    budget = Budget(scope="day", soft_usd=0.5, hard_usd=1.0)

    assert budget.level(usd=usd, tokens=10**9) == level


@pytest.mark.req("X-19")
@pytest.mark.parametrize(
    ("tokens", "level"), [(49, "ok"), (50, "soft"), (99, "soft"), (100, "hard")]
)
def test_tokens_reach_a_limit_from_it_on(tokens: int, level: str) -> None:
    budget = Budget(scope="day", soft_tokens=50, hard_tokens=100)

    assert budget.level(usd=1e9, tokens=tokens) == level


def test_the_first_limit_that_is_reached_counts_of_dollars_and_tokens() -> None:
    budget = Budget(scope="day", soft_usd=0.5, hard_usd=1.0, soft_tokens=50, hard_tokens=100)

    assert budget.level(usd=0.6, tokens=0) == "soft"
    assert budget.level(usd=0.6, tokens=100) == "hard"
    assert budget.level(usd=1.0, tokens=0) == "hard"
    assert budget.level(usd=0.0, tokens=50) == "soft"


@pytest.mark.parametrize(
    ("limits", "refusal"),
    [
        ({}, "a budget of each day has no limit: set 'hard_usd'"),
        ({"soft_usd": -0.5}, "soft_usd=-0.5 is impossible: use 0 or more, or None"),
        ({"hard_tokens": -1}, "hard_tokens=-1 is impossible: use 0 or more, or None"),
        (
            {"soft_usd": 2.0, "hard_usd": 1.0},
            "budget soft_usd=2.0 is above hard_usd=1.0, so that it would never warn",
        ),
        (
            {"soft_tokens": 2, "hard_tokens": 1},
            "budget soft_tokens=2 is above hard_tokens=1, so that it would never warn",
        ),
        ({"hard_tokens": "many"}, "hard_tokens='many' is impossible"),
    ],
)
def test_a_budget_that_makes_no_sense_is_refused(limits: Mapping[str, Any], refusal: str) -> None:
    with pytest.raises(InvalidPolicy) as refused:
        Budget(scope="day", **limits)

    assert str(refused.value).startswith(refusal)


def test_a_limit_of_0_and_equal_limits_make_sense() -> None:
    assert Budget(scope="day", hard_usd=0).level(usd=0.0, tokens=0) == "hard"
    assert Budget(scope="day", soft_usd=1.0, hard_usd=1.0).soft_usd == 1.0
    assert Budget(scope="user", soft_tokens=5).hard_tokens is None


def test_a_day_begins_at_midnight_utc_and_other_budgets_only_where_they_are_daily() -> None:
    evening = datetime(2026, 3, 2, 23, 30, 5, 7, tzinfo=UTC)
    elsewhere = datetime.fromisoformat("2026-03-03T01:30:05+02:00")
    midnight = datetime(2026, 3, 2, tzinfo=UTC)

    assert Budget(scope="day", hard_usd=1).since(evening) == midnight
    assert Budget(scope="day", hard_usd=1).since(elsewhere) == midnight
    assert Budget(scope="user", hard_usd=1, daily=True).since(evening) == midnight
    assert Budget(scope="user", hard_usd=1).since(evening) is None
    assert Budget(scope="conversation", hard_usd=1).since(evening) is None


@pytest.mark.req("X-19")
async def test_dollars_and_tokens_of_all_calls_but_those_of_a_chat_are_spent() -> None:
    calls = (
        call(cost_usd=0.25, input_tokens=100, output_tokens=20),
        call(cost_usd=0.5, input_tokens=10, output_tokens=2, purpose="reflect"),
        call(cost_usd=None, input_tokens=1_000, output_tokens=200, model="unpriced"),
        call(cost_usd=9.0, input_tokens=9_000, output_tokens=900, purpose="chat"),
    )
    budget = Budget(scope="conversation", hard_usd=0.75)
    async with spent(budget, calls=calls) as budgets:
        (state,) = await budgets.states(CHAT, "ana")
        exhausted = await budgets.find_exhausted(CHAT, "ana")

    assert (state.spent_usd, state.spent_tokens, state.level) == (0.75, 1_332, "hard")
    assert state.budget == budget
    assert exhausted == state


@pytest.mark.req("X-19")
@pytest.mark.parametrize(("scope", "usd"), [("conversation", 1.0), ("user", 3.0), ("day", 23.0)])
async def test_a_budget_counts_the_calls_of_its_scope(scope: Any, usd: float) -> None:
    other = ConversationRef("default", "other")
    foreign = ConversationRef("acme", "trip")
    calls = (
        call(cost_usd=1.0),
        replace(call(cost_usd=2.0), conversation=other),
        replace(call(cost_usd=4.0, user="bo"), conversation=other),
        replace(call(cost_usd=16.0), conversation=foreign),
        replace(call(cost_usd=64.0), at=NOW - timedelta(days=1), conversation=foreign),
    )
    async with spent(Budget(scope=scope, hard_usd=1.0), calls=calls) as budgets:
        (state,) = await budgets.states(CHAT, "ana")

    assert state.spent_usd == usd


async def test_a_budget_of_users_is_no_matter_of_a_conversation_without_one() -> None:
    limits = (Budget(scope="user", hard_usd=0.01), Budget(scope="day", hard_usd=9.0))
    async with spent(*limits, calls=(call(cost_usd=1.0),)) as budgets:
        of_nobody = await budgets.states(CHAT, None)
        exhausted = await budgets.find_exhausted(CHAT, None)
        of_ana = await budgets.states(CHAT, "ana")

    assert [state.budget.scope for state in of_nobody] == ["day"]
    assert exhausted is None
    assert [(state.budget.scope, state.level) for state in of_ana] == [
        ("user", "hard"),
        ("day", "ok"),
    ]


async def test_of_several_budgets_the_one_at_its_hard_limit_is_named() -> None:
    limits = (
        Budget(scope="day", soft_usd=0.1),
        Budget(scope="user", hard_usd=9.0),
        Budget(scope="conversation", hard_usd=0.5),
    )
    async with spent(*limits, calls=(call(cost_usd=1.0),)) as budgets:
        exhausted = await budgets.find_exhausted(CHAT, "ana")

    assert exhausted is not None
    assert exhausted.budget == limits[2]


@pytest.mark.parametrize(
    ("budget", "subject"),
    [
        (Budget(scope="day", hard_usd=0.5), "all conversations"),
        (Budget(scope="user", hard_usd=0.5), "user 'ana' of tenant 'default'"),
        (Budget(scope="conversation", soft_usd=0.5), "conversation 'trip' of tenant 'default'"),
    ],
)
async def test_a_limit_is_told_once_in_the_log_with_whose_it_is(
    budget: Budget, subject: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.WARNING)
    async with spent(budget, calls=(call(cost_usd=1.0),)) as budgets:
        for _ in range(3):
            await budgets.find_exhausted(CHAT, "ana")

    assert caplog.text.count(f"budget of {subject} is at its") == 1


async def test_a_daily_limit_is_told_again_on_another_day(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.WARNING)
    clock = FixedClock()
    tomorrow = replace(call(cost_usd=1.0), at=NOW + timedelta(days=1))
    budget = Budget(scope="day", hard_usd=0.5)
    async with spent(budget, calls=(call(cost_usd=1.0), tomorrow), clock=clock) as budgets:
        await budgets.find_exhausted(CHAT, "ana")
        clock.advance(86_400)
        await budgets.find_exhausted(CHAT, "ana")

    assert caplog.text.count("all conversations") == 2


async def test_nothing_is_told_before_a_limit(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.WARNING)
    async with spent(Budget(scope="day", hard_usd=2.0), calls=(call(cost_usd=1.0),)) as budgets:
        assert await budgets.find_exhausted(CHAT, "ana") is None

    assert caplog.records == []


async def test_a_daily_budget_is_renewed_at_the_next_midnight_and_a_total_one_never() -> None:
    daily, total = Budget(scope="day", hard_usd=1), Budget(scope="conversation", hard_usd=1)
    async with spent(daily, total) as budgets:
        assert budgets.renewal(daily) == datetime(2026, 3, 3, tzinfo=UTC)
        assert budgets.renewal(total) is None
        assert budgets


async def test_no_budgets_are_none() -> None:
    async with spent() as budgets:
        assert not budgets
        assert await budgets.states(CHAT, "ana") == ()


OBSERVING = observe_request(Message.user("Hello there"), user="ana", now=NOW)
REFLECTING = reflect_request(observation(1, 2), user="ana", now=NOW)


@pytest.mark.parametrize(("usd", "asked"), [(0.4, (1, 0)), (0.6, (0, 1))])
async def test_within_the_budget_the_model_works_and_beyond_it_its_stand_in(
    usd: float, asked: tuple[int, int]
) -> None:
    observer, instead = ScriptedObserver(), ScriptedObserver()
    reflector, condenser = ScriptedReflector(), ScriptedReflector()
    budget = Budget(scope="user", hard_usd=0.5)
    async with spent(budget, calls=(call(cost_usd=usd),)) as budgets:
        await Budgeted(observer, instead=instead, budgets=budgets).observe(OBSERVING)
        await Budgeted(reflector, instead=condenser, budgets=budgets).reflect(REFLECTING)

    assert (len(observer.requests), len(instead.requests)) == asked
    assert (len(reflector.requests), len(condenser.requests)) == asked


async def test_without_a_stand_in_the_step_is_left_out_until_the_budget_is_renewed() -> None:
    budget = Budget(scope="day", hard_tokens=1_000)
    async with spent(budget, calls=(call(cost_usd=0.25),)) as budgets:
        observer = Budgeted(ScriptedObserver(), instead=None, budgets=budgets)
        reflector = Budgeted(ScriptedReflector(), instead=None, budgets=budgets)
        with pytest.raises(ObservationSkipped) as skipped:
            await observer.observe(OBSERVING)
        with pytest.raises(ObservationSkipped) as skipped_too:
            await reflector.reflect(REFLECTING)

    assert str(skipped.value) == "the day budget is spent: 0.2500 USD, 1,100 tokens"
    assert skipped.value.reason == skipped_too.value.reason == "over_budget"
    assert skipped.value.until == skipped_too.value.until == datetime(2026, 3, 3, tzinfo=UTC)


async def test_facts_wait_too_until_the_budget_is_renewed() -> None:
    request = ExtractRequest(
        conversation=CHAT,
        user="ana",
        messages=(Message.user("I live in Porto."),),
        notes=(),
        known=(),
        now=NOW,
    )
    async with spent(Budget(scope="day", hard_tokens=1_000), calls=(call(),)) as budgets:
        facts = Budgeted(ExtractiveFacts(), instead=None, budgets=budgets)
        with pytest.raises(ObservationSkipped, match="the day budget is spent"):
            await facts.extract(request)
    async with spent(Budget(scope="day", hard_tokens=1_000)) as budgets:
        facts = Budgeted(ExtractiveFacts(), instead=None, budgets=budgets)
        assert [fact.summary for fact in await facts.extract(request)] == ["I live in Porto."]


# Counts that a provider corrects


def compared(*reports: tuple[int, int], estimated: bool = False) -> Calibrator:
    calibrator = Calibrator()
    for estimate, reported in reports:
        calibrator.compare(call(model="m", input_tokens=reported, estimated=estimated), estimate)
    return calibrator


def test_an_estimate_moves_a_fifth_of_the_way_to_what_was_reported() -> None:
    report = (1_000, 1_500)

    assert compared(report).factors == {"m": pytest.approx(1.1)}
    assert compared(report, report).factors == {"m": pytest.approx(1.18)}
    assert compared(*[(1_000, 1_300)] * 40).factors["m"] == pytest.approx(1.3, abs=0.01)


@pytest.mark.parametrize(("reported", "factor"), [(50_000, 1.2), (2_000, 1.2), (500, 0.9)])
def test_one_report_is_taken_for_twice_or_half_the_estimate_at_most(
    reported: int, factor: float
) -> None:
    assert compared((1_000, reported)).factors["m"] == pytest.approx(factor)


@given(st.lists(st.tuples(st.integers(0, 10**6), st.integers(0, 10**6)), max_size=30))
def test_a_factor_stays_between_a_half_and_two(reports: list[tuple[int, int]]) -> None:
    assert 0.5 <= compared(*reports).factors.get("m", 1.0) <= 2.0


@pytest.mark.parametrize(("reported", "counts"), [(49, False), (50, True)])
def test_a_report_of_a_few_tokens_corrects_nothing(reported: int, *, counts: bool) -> None:
    assert bool(compared((500, reported)).factors) is counts


def test_a_window_is_filled_less_once_a_model_counts_clearly_more() -> None:
    # 0.2 of an error of a quarter is the least that moves the factor in use.
    assert compared((1_000, 1_260)).window_factor(["m"]) == pytest.approx(1.052)
    assert compared((1_000, 1_250)).window_factor(["m"]) == pytest.approx(1.05)
    assert compared((1_000, 1_240)).window_factor(["m"]) == 1.0
    assert compared((1_000, 1_240)).factors == {"m": pytest.approx(1.048)}


def test_a_window_is_never_filled_more_and_that_of_no_model_as_it_is() -> None:
    assert compared((1_000, 500)).window_factor(["m"]) == 1.0
    assert compared((1_000, 500)).factors["m"] == pytest.approx(0.9)
    assert compared((1_000, 2_000)).window_factor([]) == 1.0
    assert compared((1_000, 2_000)).window_factor(["other"]) == 1.0


def test_the_largest_factor_of_a_chain_of_models_counts() -> None:
    calibrator = compared((1_000, 1_500))

    assert calibrator.window_factor(["other", "m"]) == calibrator.window_factor(["m"]) > 1.0


@pytest.mark.parametrize(("estimate", "counts"), [(499, False), (500, True)])
def test_a_request_that_is_mostly_frame_is_not_compared(estimate: int, *, counts: bool) -> None:
    assert bool(compared((estimate, 2_000)).factors) is counts


def test_a_count_of_our_own_is_not_compared() -> None:
    assert compared((1_000, 2_000), estimated=True).factors == {}


# Prices of cached input


def test_prices_of_a_model_are_for_a_million_tokens_with_or_without_its_provider() -> None:
    named = cache_prices("anthropic:claude-sonnet-4-5", at=NOW)
    bare = cache_prices("claude-sonnet-4-5", at=NOW)

    assert named is not None
    assert bare is not None
    found = [named.plain, named.read, named.write, named.output]
    assert found == pytest.approx([3.0, 0.3, 3.75, 15.0])
    assert replace(named, model="claude-sonnet-4-5") == bare
    assert named.model == "anthropic:claude-sonnet-4-5"


@pytest.mark.parametrize(("seconds", "write"), [(300.0, 3.75), (3_599.0, 3.75), (3_600.0, 6.0)])
def test_what_is_written_for_an_hour_costs_double(seconds: float, write: float) -> None:
    prices = cache_prices("claude-sonnet-4-5", at=NOW, lifetime_seconds=seconds)

    assert prices is not None
    assert prices.write == pytest.approx(write)


def test_where_writing_has_no_price_it_costs_what_input_costs() -> None:
    prices = cache_prices("openai:gpt-4o", at=NOW)

    assert prices is not None
    assert prices.write == prices.plain > prices.read > 0
    assert cache_prices("openai:gpt-4o", at=NOW, lifetime_seconds=3_600) == prices


@pytest.mark.parametrize("model", ["nobody-1", "nobody:claude-sonnet-4-5", ""])
def test_a_model_that_is_not_listed_has_no_cache_prices(model: str) -> None:
    assert cache_prices(model, at=NOW) is None


def test_the_help_of_a_budget_says_what_its_numbers_may_be() -> None:
    shown = str(inspect.signature(Budget))

    assert "Range('use 0 or more')" in shown
    assert "lambda" not in shown
