import json
from datetime import UTC, datetime, timedelta

import pytest

from remanence import Memory, Message, Policy
from remanence.catalog import look_up
from remanence.cli import main
from remanence.costs.prices import cache_prices
from remanence.policy.cache_economics import (
    break_even,
    is_cold,
)
from remanence.testing import FixedClock, ScriptedObserver
from remanence.types.usage import CachePrices

NOW = datetime(2027, 1, 4, tzinfo=UTC)
PRICES = CachePrices(model="x", plain=2.0, read=0.1, write=2.5, output=10.0)
POLICY = Policy.default(
    observe_tokens=60,
    observe_max_tokens=150,
    note_ratio=1.0,
    tail_tokens=4_000,
    tail_keep_tokens=20,
    keep_last=2,
)


@pytest.mark.req("B-75")
def test_read_input_costs_a_tenth_or_less_and_written_input_a_quarter_more() -> None:
    for model in ("anthropic:claude-sonnet-4-5", "claude-sonnet-5-5", "claude-haiku-4-5"):
        prices = cache_prices(model, at=NOW)
        assert prices is not None
        assert prices.read / prices.plain <= 0.1
        assert prices.write / prices.plain == pytest.approx(1.25)
    assert look_up("claude-sonnet-5-5").cache_lifetime_seconds == 300


def test_an_hour_in_the_cache_costs_double() -> None:
    prices = cache_prices("claude-sonnet-5-5", at=NOW, lifetime_seconds=3_600)

    assert prices is not None
    assert prices.write / prices.plain == pytest.approx(2.0)


def test_a_model_without_a_price_has_none() -> None:
    assert cache_prices("nobody:nothing-1", at=NOW) is None


def test_the_shortest_cached_prompt_is_that_of_the_model() -> None:
    assert look_up("anthropic:claude-haiku-4-5-20251001").min_cached_tokens == 4_096
    assert look_up("gpt-5.4").min_cached_tokens == 1_024
    assert look_up("claude-sonnet-5-5").min_cached_tokens == 1_024
    for model in ("claude-opus-4-5", "anthropic/Claude-Opus-4-6"):
        assert look_up(model).min_cached_tokens == 4_096
    for model in ("claude-sonnet-4-6", "claude-haiku-3", "claude-3-5-haiku-20241022"):
        assert look_up(model).min_cached_tokens == 2_048


def test_a_cache_lives_as_long_as_the_vendor_of_the_model_states() -> None:
    assert look_up("anthropic/Claude-Sonnet-5-5").cache_lifetime_seconds == 300
    assert look_up("openai:gpt-5.4").cache_lifetime_seconds == 600
    assert look_up("mistral-large").cache_lifetime_seconds == 300


def test_a_warm_activation_is_paid_back_by_later_calls() -> None:
    even = break_even(PRICES, tail_tokens=8_000, kept_tokens=1_500, note_tokens=650)

    assert even.cost == pytest.approx((2_150 * 2.5 - 8_000 * 0.1) / 1e6)
    assert even.saved_per_call == pytest.approx(5_850 * 0.1 / 1e6)
    assert even.calls == pytest.approx(even.cost / even.saved_per_call)


def test_a_cold_activation_is_free() -> None:
    even = break_even(PRICES, tail_tokens=8_000, kept_tokens=1_500, note_tokens=650, warm=False)

    assert even.calls == 0
    assert even.cost < 0


def test_notes_as_long_as_their_source_are_never_paid_back() -> None:
    even = break_even(PRICES, tail_tokens=8_000, kept_tokens=1_500, note_tokens=6_500)

    assert even.calls is None


def test_an_activation_that_costs_nothing_needs_no_call_to_be_even() -> None:
    even = break_even(PRICES, tail_tokens=8_000, kept_tokens=1_500, note_tokens=6_500, warm=False)

    assert (even.cost, even.saved_per_call, even.calls) == (0.0, 0.0, 0.0)


def test_the_amounts_are_dollars_for_prices_of_a_million_tokens() -> None:
    prices = CachePrices(model="x", plain=1.0, read=1.0, write=3.0, output=1.0)

    even = break_even(prices, tail_tokens=2_000_000, kept_tokens=0, note_tokens=1_000_000)

    assert (even.cost, even.saved_per_call, even.calls) == (1.0, 1.0, 1.0)


@pytest.mark.parametrize(
    ("ages", "warmed_seconds", "cold"),
    [
        ({}, None, False),
        ({"user": 9_000}, None, False),
        ({"assistant": 300}, None, False),
        ({"assistant": 301}, None, True),
        ({"assistant": 301, "user": 5}, None, True),
        ({"assistant": 301}, 5, False),
        ({"assistant": 5}, 301, False),
        ({"assistant": 400}, 301, True),
    ],
)
def test_a_cache_is_cold_when_the_last_answer_and_the_last_context_are_older_than_it_lives(
    ages: dict[str, int], warmed_seconds: int | None, cold: bool
) -> None:
    tail = [
        (Message.user if role == "user" else Message.assistant)(
            "Hello.", created_at=NOW - timedelta(seconds=age)
        )
        for role, age in ages.items()
    ]
    warmed_at = None if warmed_seconds is None else NOW - timedelta(seconds=warmed_seconds)

    assert is_cold(tail, lifetime=300, now=NOW, warmed_at=warmed_at) is cold


def test_an_answer_without_a_time_does_not_show_that_a_cache_is_cold() -> None:
    old = Message.assistant("Hi.", created_at=NOW - timedelta(hours=1))

    assert not is_cold([Message.assistant("Hi.")], lifetime=300, now=NOW)
    assert is_cold([old, Message.assistant("Hi.")], lifetime=300, now=NOW)


@pytest.mark.parametrize(
    ("policy", "idle_seconds", "models", "activated"),
    [
        (POLICY, 299, (None, None), False),
        (POLICY, 301, (None, None), True),
        (POLICY.replace(model="gpt-5.4"), 301, (None, None), False),
        (POLICY.replace(model="gpt-5.4"), 601, (None, None), True),
        (POLICY.replace(cache_ttl_seconds=3_600.0), 3_599, (None, None), False),
        (POLICY, 10, ("anthropic:a", "anthropic:a"), False),
        (POLICY, 10, ("anthropic:a", "openai:b"), True),
        (POLICY, 10, (None, "openai:b"), False),
    ],
)
async def test_ready_notes_are_used_when_the_cache_is_cold_or_the_model_changed(
    policy: Policy, idle_seconds: float, models: tuple[str | None, str | None], activated: bool
) -> None:
    clock = FixedClock()
    async with Memory.open(
        "sqlite:///:memory:", policy=policy, observer=ScriptedObserver(), clock=clock
    ) as memory:
        chat = memory.conversation("chat")
        for number in range(8):
            await chat.append(Message.user(f"In town {number} I stay at the Hotel Linde."))
            await chat.context(model=models[0])
            await chat.append(Message.assistant(f"Noted: the Hotel Linde in town {number}."))
            await chat.flush()
        assert (await chat.state()).active_seq == 0

        clock.advance(idle_seconds)
        context = await chat.context(model=models[1])

    assert any(block.kind == "observation" for block in context.system) == activated


def test_the_command_line_shows_the_break_even(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("REMANENCE_POLICY__CACHE_TTL_SECONDS", "3600")
    assert main(["config", "cache", "--model", "claude-sonnet-5-5", "--json"]) == 0
    for_an_hour = json.loads(capsys.readouterr().out)
    monkeypatch.delenv("REMANENCE_POLICY__CACHE_TTL_SECONDS")
    assert main(["config", "cache", "--model", "claude-sonnet-5-5", "--json"]) == 0
    shown = json.loads(capsys.readouterr().out)
    assert main(["config", "cache", "--model", "claude-sonnet-5-5"]) == 0
    told = capsys.readouterr().out
    assert main(["config", "cache", "--model", "nobody-1"]) == 1

    assert for_an_hour["lifetime_seconds"] == 3_600
    assert for_an_hour["prices"]["write"] > shown["prices"]["write"]
    assert shown["break_even"]["warm"]["calls"] > 1
    assert shown["break_even"]["cold"]["calls"] == 0
    assert "even after" in told
    assert "the price list has no 'nobody-1'" in capsys.readouterr().err
