"""`remanence import` that is killed at any time, and run again until it is done."""

import asyncio
import json
import os
import random
import signal
import sys
from asyncio.subprocess import DEVNULL, PIPE, Process
from collections.abc import Callable
from pathlib import Path

import pytest

from remanence import Memory
from remanence.errors import StoreError
from remanence.testing import check_tiling
from remanence.types import MemoryState

CONVERSATIONS = ("a", "b", "c")
WORDS = "the quick brown fox"
POLICY = {
    "REMANENCE_LEASE_SECONDS": "1",
    "REMANENCE_POLICY__OBSERVE_TOKENS": "600",
    "REMANENCE_POLICY__TAIL_TOKENS": "1800",
}


def history(messages: int) -> list[str]:
    """Return lines of messages, some of which have no id of their own."""
    chance = random.Random(messages)
    return [
        json.dumps(
            {
                "conversation": chance.choice(CONVERSATIONS),
                "role": "user",
                "content": f"{number}: {WORDS}",
                **({"id": f"m{number}"} if chance.random() < 0.5 else {}),
            }
        )
        for number in range(messages)
    ]


async def begin(url: str, lines: list[str], *, ends: bool) -> Process:
    """Start the command on *lines*; without an end of them it waits for more."""
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "remanence", "import", "-", "--db", url),
        stdin=PIPE,
        stdout=DEVNULL,
        stderr=DEVNULL,
        env={**os.environ, **POLICY},
    )
    assert process.stdin is not None
    process.stdin.write("".join(f"{line}\n" for line in lines).encode())
    if ends:
        process.stdin.close()
    return process


async def kill_when(process: Process, url: str, holds: Callable[[MemoryState], bool]) -> None:
    """Kill the process as soon as a conversation is as asked for, or when it is done."""
    async with asyncio.timeout(30):
        while process.returncode is None:
            if any(holds(state) for state in await states(url)):
                process.send_signal(signal.SIGKILL)
                break
            await asyncio.sleep(0.01)
        await process.wait()


async def states(url: str) -> tuple[MemoryState, ...]:
    try:
        async with Memory.open(url, read_only=True) as memory:
            return await memory.conversations()
    except StoreError:  # it has no tables yet
        return ()


async def tapes(url: str) -> dict[str, list[object]]:
    """Return the messages of each conversation, and the ranges of its notes."""
    found: dict[str, list[object]] = {}
    async with Memory.open(url, read_only=True) as memory:
        for name in CONVERSATIONS:
            chat = memory.conversation(name)
            snapshot = await chat.snapshot()
            check_tiling(snapshot.state, snapshot.segments)
            messages = [(m.seq, m.id, m.text) for m in await chat.messages()]
            ranges = [(s.generation, s.first_seq, s.last_seq) for s in snapshot.segments]
            found[name] = [messages, ranges]
        assert await memory.check() == ()
    return found


@pytest.mark.slow
@pytest.mark.timeout(180)
async def test_an_import_that_was_killed_and_run_again_is_as_if_it_ran_once(
    tmp_path: Path,
) -> None:
    urls = [f"sqlite:///{tmp_path / name}.db" for name in ("once", "killed")]
    lines = history(1_300)
    assert await (await begin(urls[0], lines, ends=True)).wait() == 0

    reading = await begin(urls[1], lines[:1_200], ends=False)
    await kill_when(reading, urls[1], lambda state: state.last_seq > 0)
    observing = await begin(urls[1], lines, ends=True)
    await kill_when(observing, urls[1], lambda state: state.observed_seq > 0)
    assert reading.returncode == -signal.SIGKILL
    assert await (await begin(urls[1], lines, ends=True)).wait() == 0

    assert await tapes(urls[1]) == await tapes(urls[0])
