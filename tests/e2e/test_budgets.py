"""Budgets through the public API: soft ones warn, hard ones stop the calls."""

import json
import logging
from collections.abc import Callable
from pathlib import Path
from subprocess import CompletedProcess

import pytest

from remanence import Budget, Chat, Memory, Message, Policy, Settings, blocking
from remanence.conversation import Conversation
from remanence.errors import InvalidPolicy
from remanence.protocols import ModelRequest
from remanence.testing import FixedClock
from remanence.testing.models import ScriptedModel
from remanence.types import Usage

IN_MEMORY = "sqlite:///:memory:"
POLICY = Policy(observe_tokens=10, keep_last=0, note_ratio=0.9)
DAY = 86_400


def noted(request: ModelRequest) -> str:
    seq = request.prompt.partition("#")[2].split()[0]
    return f"{{#{seq}}} IMPORTANT (Fact) user: told something number {seq}"


def model_of(count: int = 20) -> ScriptedModel:
    return ScriptedModel([noted] * count, otherwise="SKIP")


async def turn(chat: Conversation, number: int) -> None:
    await chat.append(Message.user(f"This is what I wanted to tell you about topic {number} today"))
    await chat.flush()


@pytest.mark.req("X-19")
async def test_beyond_a_hard_budget_notes_are_extractive_and_the_model_is_not_asked() -> None:
    model = model_of()
    budget = Budget(scope="conversation", hard_tokens=1)
    async with Memory.open(IN_MEMORY, policy=POLICY, model=model, budgets=[budget]) as memory:
        chat = memory.conversation("trip", user="ana")
        await turn(chat, 1)
        asked = len(model.requests)
        await turn(chat, 2)
        first, second = await chat.observations()
        (state,) = await chat.budget()

    assert len(model.requests) == asked > 0
    assert first.made_by.startswith("scripted-model")
    assert second.made_by.startswith("extractive")
    assert (state.budget, state.level) == (budget, "hard")
    assert state.spent_tokens > 1


@pytest.mark.req("X-19")
async def test_beyond_a_hard_budget_messages_may_stay_raw_until_the_next_day() -> None:
    model, clock = model_of(), FixedClock()
    settings = Settings(
        url=IN_MEMORY, budgets=(Budget(scope="day", hard_tokens=1),), over_budget="raw"
    )
    async with Memory.open(settings=settings, policy=POLICY, model=model, clock=clock) as memory:
        chat = memory.conversation("trip")
        await turn(memory.conversation("other"), 1)
        await turn(chat, 2)
        asked = len(model.requests)
        await turn(chat, 3)
        skipped = await chat.state()
        context = await chat.context()
        log = await chat.log()
        problems = await memory.check()
        clock.advance(DAY)
        await chat.flush()
        after = await chat.state()

    assert skipped.observed_seq == 0
    assert [message.seq for message in context.messages] == [1, 2]
    assert skipped.failures == 0
    assert skipped.observe_failure is not None
    assert (skipped.observe_failure.reason, skipped.observe_failure.skips) == ("over_budget", 1)
    assert skipped.observe_failure.next_attempt_at.isoformat() == "2026-03-03T00:00:00+00:00"
    assert [entry.kind for entry in log] == ["skipped"]
    assert {p.level for p in problems if "step was skipped once" in p.what} == {"info"}
    assert len(model.requests) > asked
    assert after.observed_seq > 0


async def test_a_soft_budget_warns_once_and_goes_on(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.WARNING)
    model = model_of()
    budget = Budget(scope="user", soft_tokens=1)
    async with Memory.open(IN_MEMORY, policy=POLICY, model=model, budgets=[budget]) as memory:
        chat = memory.conversation("trip", user="ana")
        for number in range(4):
            await turn(chat, number)
        (state,) = await chat.budget()
        problems = await memory.check()
        made_by = {segment.made_by.split()[0] for segment in await chat.observations()}

    assert caplog.text.count("user budget of user 'ana'") == 1
    assert made_by == {"scripted-model"}
    assert state.level == "soft"
    assert [p.level for p in problems if "soft limit" in p.what] == ["warning"]


async def test_a_budget_in_dollars_alone_that_misses_unpriced_calls_is_a_problem() -> None:
    budgets = [Budget(scope="user", hard_usd=0.01), Budget(scope="day", hard_usd=1, hard_tokens=10)]
    async with Memory.open(IN_MEMORY, policy=POLICY, model=model_of(), budgets=budgets) as memory:
        before = await memory.check()
        await turn(memory.conversation("trip", user="ana"), 1)
        problems = await memory.check()

    assert before == ()
    (blind,) = (problem for problem in problems if "price is unknown" in problem.what)
    assert blind.level == "warning"
    assert "the user budget of 0.01 USD does not count calls of scripted-model" in blind.what
    assert "hard_tokens" in blind.remedy
    assert "'prices'" in blind.remedy


async def test_the_price_of_a_model_of_ones_own_counts_for_a_budget_in_dollars() -> None:
    settings = Settings(url=IN_MEMORY, prices=("scripted-model 1000 2_000.0",))
    budget = Budget(scope="user", hard_usd=0.01)
    async with Memory.open(
        settings=settings, policy=POLICY, model=model_of(), budgets=[budget]
    ) as memory:
        await turn(memory.conversation("trip", user="ana"), 1)
        (total,) = await memory.usage()
        problems = await memory.check()

    dollars = (total.input_tokens * 1_000 + total.output_tokens * 2_000) / 1e6
    assert total.cost_usd == pytest.approx(dollars)
    assert not [problem for problem in problems if "price is unknown" in problem.what]


async def test_a_reply_has_the_price_of_a_model_of_ones_own_as_the_ledger_has() -> None:
    settings = Settings(url=IN_MEMORY, prices=("scripted-model 1000 2_000.0",))
    async with Memory.open(settings=settings) as memory:
        trip = memory.conversation("trip", user="ana")
        reply = await Chat(trip, model=ScriptedModel(["Gate B42."])).send("Which gate?")
        (total,) = await trip.usage()

    (call,) = reply.calls
    assert (
        total.cost_usd
        == call.cost_usd
        == reply.usage.cost_usd
        == pytest.approx((call.input_tokens * 1_000 + call.output_tokens * 2_000) / 1e6)
    )


async def test_a_call_without_tokens_has_no_price_of_ones_own_either() -> None:
    settings = Settings(url=IN_MEMORY, prices=("a 1 2",))
    async with Memory.open(settings=settings) as memory:
        of_nothing = Usage(model="a", input_tokens=0, output_tokens=0, at=memory.clock.now())
        await memory.conversation("trip").record_call(of_nothing)
        (total,) = await memory.usage()

    assert (total.cost_usd, total.unpriced_calls) == (None, 1)


async def test_a_users_budget_is_shared_by_their_conversations_and_no_others() -> None:
    budget = Budget(scope="user", hard_tokens=1)
    async with Memory.open(IN_MEMORY, policy=POLICY, model=model_of(), budgets=[budget]) as memory:
        made_by = {}
        for name, user in (("a", "ana"), ("b", "ana"), ("c", "bo"), ("d", None)):
            chat = memory.conversation(name, user=user)
            await turn(chat, 1)
            made_by[name] = (await chat.observations())[0].made_by.split()[0]

    assert made_by["a"] == made_by["c"] == made_by["d"] == "scripted-model"
    assert made_by["b"].startswith("extractive")


def test_a_budget_without_a_limit_is_refused() -> None:
    with pytest.raises(InvalidPolicy, match="no limit"):
        Budget(scope="day")
    with pytest.raises(InvalidPolicy, match="hard_usd=-1"):
        Budget(scope="day", hard_usd=-1)


@pytest.mark.req("X-19")
def test_budgets_come_from_the_settings_and_what_they_measure_is_shown(
    cli: Callable[..., CompletedProcess[str]], tmp_path: Path
) -> None:
    tmp_path.joinpath("remanence.toml").write_text(
        'over_budget = "raw"\n[[budgets]]\nscope = "conversation"\nhard_tokens = 5_000\n'
    )
    with blocking.Memory.open("sqlite:///memory.db", policy=POLICY, model=model_of()) as memory:
        chat = memory.conversation("trip", user="ana")
        chat.append(Message.user("This is what I wanted to tell you about the first topic today"))
        chat.flush()

    shown = json.loads(cli("config", "show", "--json").stdout)
    inspected = json.loads(cli("inspect", "trip", "--json").stdout)
    usage = json.loads(cli("usage", "trip", "--json").stdout)["usage"]
    table = cli("usage", "--user", "ana", "--since", "2020-01-01").stdout
    later = cli("usage", "--since", "2999-01-01T00:00:00+02:00").stdout
    earlier = cli("usage", "--until", "2020-01").stdout
    bounded = cli("usage", "--since", "2020-01", "--until", "2999-01").stdout
    refused = cli("usage", "--since", "yesterday").stderr

    assert shown["budgets"]["value"] == [{"scope": "conversation", "hard_tokens": 5_000}]
    assert shown["over_budget"]["value"] == "raw"
    assert [state["level"] for state in inspected["budgets"]] == ["ok"]
    assert inspected["budgets"][0]["spent_tokens"] > 0
    assert usage[0]["purpose"] == "observe"
    assert "USD in all" in table
    assert "no model calls to show" in later
    assert "no model calls to show" in earlier
    assert "USD in all" in bounded
    assert "'yesterday' is not a time: write a month, a day or a time" in " ".join(refused.split())
    assert "conversation budget" in cli("inspect", "trip").stdout
    assert "scope" in cli("config", "show").stdout
    assert "no model calls to show" in cli("usage", "--user", "bo").stdout

    unknown = cli("usage", "trap")
    assert unknown.returncode != 0
    assert "no conversation 'trap'" in unknown.stderr
