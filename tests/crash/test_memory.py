"""A whole memory that is killed, or that several processes share."""

import os
import random
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, TypeAlias

import pytest
from tests.slow import slow_except

from remanence import Memory, Policy
from remanence.errors import StoreUnavailable
from remanence.testing import check_coverage, check_tiling

KILLS = int(os.environ.get("REMANENCE_TEST_KILLS", "20")) // 4
LIVES_OF_A_FILE = 10
MESSAGES = 60

Run: TypeAlias = Callable[..., Awaitable[list[list[Any]]]]


async def check_memory(path: Path, acknowledged: dict[int, str]) -> None:
    """What was acknowledged is there, the segments tile, and a context accounts for all."""
    async with Memory.open(f"sqlite:///{path}", policy=Policy(enabled=True)) as memory:
        chat = memory.conversation("a", user="ana")
        texts = {message.seq: message.text for message in await chat.messages()}
        assert list(texts) == list(range(1, len(texts) + 1))
        assert acknowledged.items() <= texts.items()
        context = await chat.context(system="You help.")
        snapshot = await chat.snapshot()
        check_tiling(snapshot.state, snapshot.segments)
        check_coverage(context, snapshot.state, snapshot.segments)
        problems = await memory.check()
        assert [problem for problem in problems if problem.level == "error"] == []


@pytest.mark.timeout(60 + 6 * KILLS)
async def test_a_memory_that_is_killed_loses_nothing_and_goes_on(
    tmp_path: Path, run_processes: Run
) -> None:
    acknowledged: dict[int, str] = {}
    for seed in range(KILLS):
        if seed % LIVES_OF_A_FILE == 0:
            acknowledged = {}
        path = tmp_path / f"memory-{seed // LIVES_OF_A_FILE}.db"
        chance = random.Random(seed)
        events = await run_processes(
            kill_after=(chance.randint(0, 60), 0.02 * chance.random()),
            path=str(path),
            task="remember",
            processes=1,
            seed=seed,
            lease_seconds=0.2,  # a lease that a kill leaves behind is soon over
        )
        for _, _, texts in events:
            acknowledged.update((int(seq), text) for seq, text in texts.items())
        if path.exists():
            await check_memory(path, acknowledged)


async def test_a_log_that_a_kill_left_without_its_file_is_refused_and_kept(
    tmp_path: Path, run_processes: Run
) -> None:
    path, aside, log = (tmp_path / name for name in ("memory.db", "aside.db", "memory.db-wal"))
    events = await run_processes(
        kill_after=(20, 0), path=str(path), task="remember", processes=1, seed=1, lease_seconds=0.2
    )
    acknowledged = {int(seq): text for _, _, texts in events for seq, text in texts.items()}
    before = log.read_bytes()
    path.rename(aside)

    for is_empty in (False, True):
        if is_empty:
            path.touch()
        for read_only in (False, True):
            with pytest.raises(StoreUnavailable) as refused:
                async with Memory.open(f"sqlite:///{path}", read_only=read_only):
                    pass
            assert repr(str(path)) in str(refused.value)
            assert repr(str(log)) in str(refused.value)
            assert path.exists() == is_empty
            assert log.read_bytes() == before

    assert before
    aside.replace(path)
    await check_memory(path, acknowledged)


@pytest.mark.timeout(120)
@pytest.mark.parametrize("processes", slow_except([2, 4], [2]))
async def test_memories_in_several_processes_share_a_conversation(
    tmp_path: Path, run_processes: Run, processes: int
) -> None:
    path = tmp_path / "memory.db"
    told = await run_processes(
        path=str(path),
        task="remember",
        processes=processes,
        messages=MESSAGES,
        lease_seconds=60,  # nobody dies here: no lease may end because a process had to wait
    )

    appended = {
        int(seq): text for name, _, d in told if name == "appended" for seq, text in d.items()
    }
    assert sorted(appended) == list(range(1, processes * MESSAGES + 1))
    await check_memory(path, appended)
    asked = [seq for name, _, seqs in told if name == "asked" for seq in seqs]
    assert len(asked) == len(set(asked)), "two processes paid for the same observation"
