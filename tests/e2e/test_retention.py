"""Retention: an open memory deletes what no setting keeps, and shows the rest of the past."""

import asyncio
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest

from remanence import Memory, Message, Policy, Settings
from remanence.errors import ConversationNotFound, InvalidPolicy
from remanence.testing import FixedClock, ScriptedObserver, ScriptedReflector
from remanence.testing.invariants import check_tiling
from remanence.types import Budget, DatabaseSize, Pruned

DAY = 86_400.0
WEEK = timedelta(days=7)
POLICY = Policy(
    observe_tokens=60, tail_tokens=100, tail_keep_tokens=20, keep_last=1, reflect_tokens=(40, 500)
)
KEEP_A_WEEK = Settings(superseded_keep_days=7, log_keep_days=7, usage_keep_days=7)


@pytest.fixture
def url(tmp_path: Path) -> str:
    return f"sqlite:///{tmp_path / 'memory.db'}"


async def talk_for(days: int, url: str, clock: FixedClock) -> None:
    """Say something each day, and have it observed and condensed."""
    async with Memory.open(
        url,
        policy=POLICY,
        clock=clock,
        observer=ScriptedObserver(),
        reflector=ScriptedReflector(),
        settings=Settings(workers=0),
    ) as memory:
        chat = memory.conversation("a")
        for day in range(days):
            await chat.append(
                *(Message.user(f"{day}.{turn}: {'some words ' * 20}") for turn in range(3))
            )
            await chat.flush()
            await chat.context()
            clock.advance(DAY)


async def size(memory: Memory, *, until_nothing_goes: bool = False) -> DatabaseSize:
    async with asyncio.timeout(30):
        while any((found := await memory.size()).prunable) and until_nothing_goes:  # noqa: ASYNC110 - a task in the background gives no event
            await asyncio.sleep(0.01)
    return found


async def test_an_open_memory_deletes_the_replaced_segments_that_no_setting_keeps(
    url: str,
) -> None:
    clock = FixedClock()
    await talk_for(20, url, clock)
    async with Memory.open(url, policy=POLICY, clock=clock, read_only=True) as memory:
        chat = memory.conversation("a")
        before = await chat.context()
        versions = [entry.version for entry in await chat.log()]
        kept = [entry.version for entry in await chat.log() if entry.at >= clock.now() - WEEK]
        contexts = [await chat.context_at(version) for version in kept[1:]]
    async with Memory.open(url, policy=POLICY, clock=clock, settings=KEEP_A_WEEK) as memory:
        chat = memory.conversation("a")
        await size(memory, until_nothing_goes=True)

        assert (await chat.context()).to_anthropic() == before.to_anthropic()
        assert [await chat.context_at(version) for version in kept[1:]] == contexts
        with pytest.raises(
            ConversationNotFound, match=f"use one from its log, {kept[0]} to {versions[-1]}"
        ):
            await chat.context_at(versions[2])
        check_tiling(await chat.state(), (await chat.snapshot()).segments)
        assert await memory.check() == ()


async def test_without_settings_nothing_would_be_deleted(url: str) -> None:
    clock = FixedClock()
    await talk_for(10, url, clock)
    clock.advance(900 * DAY)
    async with Memory.open(url, policy=POLICY, clock=clock) as memory:
        assert (await size(memory)).prunable == Pruned()


async def test_a_memory_for_reading_counts_what_would_be_deleted(url: str) -> None:
    clock = FixedClock()
    await talk_for(10, url, clock)
    clock.advance(900 * DAY)
    async with Memory.open(url, clock=clock, settings=KEEP_A_WEEK, read_only=True) as memory:
        counted = (await size(memory)).prunable

    assert counted.superseded
    assert counted.log


@pytest.mark.parametrize("rule", [Settings(usage_keep_days=7), Settings(usage_keep_last=7)])
async def test_a_lasting_budget_refuses_to_have_calls_deleted(rule: Settings) -> None:
    settings = replace(rule, budgets=(Budget(scope="conversation", hard_usd=1.0),))

    with pytest.raises(InvalidPolicy, match=r"budget of each conversation .* daily=True"):
        await Memory.open("sqlite:///:memory:", settings=settings)
    daily = replace(rule, budgets=(Budget(scope="user", daily=True, hard_usd=1.0),))
    await (await Memory.open("sqlite:///:memory:", settings=daily)).close()
