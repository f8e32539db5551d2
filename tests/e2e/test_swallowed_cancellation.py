"""Closing goes on without host code that swallows its cancellation."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from pathlib import Path

import pytest

from remanence import Memory, Message, Policy, Settings
from remanence.protocols import ObserveRequest
from remanence.testing import ScriptedObserver
from remanence.types import Draft

POLICY = Policy(observe_tokens=100, tail_tokens=400, tail_keep_tokens=50, keep_last=1)
SETTINGS = Settings(shutdown_timeout_seconds=0.1)
WORDS = "the quick brown fox jumps over a lazy dog near the old river bank at dawn "


class Stubborn:
    """Host code that goes on until it is released, however often it is cancelled."""

    def __init__(self) -> None:
        self.called = asyncio.Event()
        self.release = asyncio.Event()

    async def go_on(self) -> None:
        self.called.set()
        while not self.release.is_set():
            try:
                await self.release.wait()
            except asyncio.CancelledError:
                continue


class StubbornObserver(ScriptedObserver):
    def __init__(self, stubborn: Stubborn) -> None:
        super().__init__()
        self._stubborn = stubborn

    async def observe(self, request: ObserveRequest) -> Draft:
        await self._stubborn.go_on()
        return await super().observe(request)


@pytest.fixture
async def stubborn() -> AsyncIterator[Stubborn]:
    """Host code that is released at the end, and then ends with the tasks that it kept."""
    code = Stubborn()
    yield code
    code.release.set()
    own = [task for task in asyncio.all_tasks() if task.get_name().startswith("remanence")]
    if own:
        _, alive = await asyncio.wait(own, timeout=10)
        assert not alive


async def append(memory: Memory) -> None:
    turns = (Message.user(f"Question {number}: {WORDS}") for number in range(12))
    await memory.conversation("a").append(*turns)


async def test_closing_leaves_a_step_behind_and_names_it(
    tmp_path: Path, stubborn: Stubborn, caplog: pytest.LogCaptureFixture
) -> None:
    url = f"sqlite:///{tmp_path / 'memory.db'}"
    async with asyncio.timeout(15):
        async with Memory.open(
            url, policy=POLICY, settings=SETTINGS, observer=StubbornObserver(stubborn)
        ) as memory:
            await append(memory)
            await stubborn.called.wait()
        async with Memory.open(url, policy=POLICY.replace(enabled=False)) as memory:
            state = await memory.conversation("a").state()

    (left,) = [record for record in caplog.records if record.levelname == "ERROR"]
    assert left.message.startswith("the observe step of conversation 'a' did not end")
    assert (state.last_seq, state.observed_seq) == (12, 0)


async def test_closing_leaves_an_embedder_behind(
    stubborn: Stubborn, caplog: pytest.LogCaptureFixture
) -> None:
    async def embed(texts: Sequence[str]) -> list[list[float]]:
        await stubborn.go_on()
        return [[1.0] for _ in texts]

    async with asyncio.timeout(15):
        async with Memory.open(
            "sqlite:///:memory:", policy=POLICY, settings=SETTINGS, embedder=embed
        ) as memory:
            await append(memory)
            await stubborn.called.wait()

    (left,) = [record for record in caplog.records if record.levelname == "ERROR"]
    assert left.message.startswith("remanence-embedding did not end")
