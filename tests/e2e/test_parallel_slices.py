"""Slices of one long backlog are observed at once, and committed in the order of the tape."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
from tests.builders import call

from remanence import Memory, Message, Policy, Settings
from remanence.conversation import Conversation
from remanence.protocols import ObserveRequest
from remanence.testing import ScriptedObserver, check_tiling
from remanence.testing.observers import brief_notes
from remanence.types import Draft

POLICY = Policy(
    observe_tokens=100, tail_tokens=400, tail_keep_tokens=50, keep_last=1, reflect_tokens=()
)
WORDS = "the quick brown fox jumps over a lazy dog near the old river bank at dawn "


@asynccontextmanager
async def backlog(observer: ScriptedObserver, *, parallel: int) -> AsyncIterator[Conversation]:
    """Yield a conversation with many slices to observe, whose memory is at work."""
    settings = Settings(parallel_slices=parallel, workers=1)
    async with Memory.open(
        "sqlite:///:memory:", policy=POLICY, observer=observer, settings=settings
    ) as memory:
        chat = memory.conversation("a")
        await chat.append(*(Message.user(f"{number}: {WORDS}") for number in range(60)))
        yield chat


async def calls(observer: ScriptedObserver, number: int) -> list[tuple[int, int]]:
    """Return the ranges of the calls when there are *number* of them."""
    async with asyncio.timeout(30):
        while len(observer.requests) < number:  # noqa: ASYNC110 - calls give no event
            await asyncio.sleep(0.01)
    return [(call.messages[0].seq, call.messages[-1].seq) for call in observer.requests]


async def test_as_many_slices_are_observed_at_once_as_the_setting_says() -> None:
    gate = asyncio.Event()
    observer = ScriptedObserver(gate=gate)
    async with backlog(observer, parallel=4) as chat:
        ranges = await calls(observer, 4)
        assert (await chat.state()).observed_seq == 0
        gate.set()
        await chat.flush()

        made = await chat.observations()
        assert [(each.first_seq, each.last_seq) for each in made][:4] == sorted(ranges)
        check_tiling(await chat.state(), made)
        versions = [each.version for each in made]
        assert versions == sorted(versions)


async def test_by_default_one_slice_is_observed_at_a_time() -> None:
    gate = asyncio.Event()
    observer = ScriptedObserver(gate=gate)
    async with backlog(observer, parallel=Settings().parallel_slices):
        await calls(observer, 1)

        assert len(observer.requests) == 1
        gate.set()


async def test_what_comes_after_a_slice_that_fails_is_observed_again_later() -> None:
    def notes_but_of_the_second(request: ObserveRequest) -> Draft:
        if request.messages[0].seq == 3:
            raise ValueError("nested")
        return brief_notes(request)

    observer = ScriptedObserver([notes_but_of_the_second] * 4)
    async with backlog(observer, parallel=3) as chat:
        first, second, third = sorted(await calls(observer, 3))[:3]
        await chat.flush()
        state = await chat.state()
        assert state.observed_seq == first[1]
        assert state.observe_failure is not None

        await chat.flush(retry=True)

        made = [(each.first_seq, each.last_seq) for each in await chat.observations()]
        assert made[0] == first
        assert made[1][0] == second[0]
        assert third[0] < (await chat.state()).observed_seq
        check_tiling(await chat.state(), await chat.observations())


async def test_slices_of_a_tape_that_was_forgotten_meanwhile_are_discarded() -> None:
    gate = asyncio.Event()
    observer = ScriptedObserver(gate=gate)
    async with backlog(observer, parallel=3) as chat:
        await calls(observer, 3)
        secret = (await chat.messages(limit=1))[0]
        await chat.forget(secret.id or "")
        gate.set()
        await chat.flush()

        texts = [each.text for each in (await chat.snapshot()).segments]
        assert texts
        assert not any("#1 " in text for text in texts)
        check_tiling(await chat.state(), await chat.observations())


@pytest.mark.parametrize("parallel", [1, 3])
async def test_slices_of_an_open_turn_are_observed_at_once_as_the_setting_says(
    parallel: int,
) -> None:
    gate = asyncio.Event()
    observer = ScriptedObserver(gate=gate)
    settings = Settings(parallel_slices=parallel, workers=1)
    async with Memory.open(
        "sqlite:///:memory:", policy=POLICY, observer=observer, settings=settings
    ) as memory:
        chat = memory.conversation("a")
        results = [(call(f"{n}"), Message.tool(f"{n}", WORDS * 2)) for n in range(40)]
        await chat.append(Message.user("Read."), *(each for pair in results for each in pair))
        await calls(observer, parallel)

        assert len(observer.requests) == parallel
        gate.set()
        await calls(observer, parallel + 1)
        assert observer.requests[parallel].known, "of the slices before"
