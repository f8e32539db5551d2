"""Many conversations that are due at once, observed in this process and in processes of its own."""

import argparse
import asyncio
import multiprocessing
import os
import random
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

from benchmarks.rows import Row, percentile, show
from benchmarks.texts import prose
from remanence import Conversation, Memory, Message, Settings

CONVERSATIONS = 40
ALL_CONVERSATIONS = 2_000
MESSAGES = 80
CHARACTERS = 450
PROCESSES = 2
PAUSE_SECONDS = 0.01
WORKERS = 4


class Run(NamedTuple):
    """Observed tokens, seconds by the wall clock and of all processors, and turns in milliseconds."""

    tokens: int
    seconds: float
    own_processor_seconds: float
    processor_seconds: float
    turns: list[float]

    @property
    def rate(self) -> float:
        return self.tokens / self.seconds


def measure(*, conversations: int = CONVERSATIONS) -> list[Row]:
    """Tokens a second without and with processes, and p99 of turns meanwhile."""
    with tempfile.TemporaryDirectory() as folder:
        alone = asyncio.run(_run(Path(folder) / "alone.db", conversations, processes=0))
        pooled = asyncio.run(_run(Path(folder) / "pooled.db", conversations, processes=PROCESSES))
    about = f"{conversations:,} conversations due at once"
    return [
        Row(
            what=f"{about}: observed tokens a second in one process",
            measured=alone.rate,
            detail=f"turns p99 {percentile(alone.turns, 0.99):.1f} ms",
        ),
        Row(
            what=f"{about}: {PROCESSES} processes ÷ {PROCESSES} times one",
            measured=pooled.rate / alone.rate / PROCESSES,
            target=0.9,
            at_least=True,
            detail=f"{pooled.rate:,.0f} a second, with their start",
        ),
        Row(
            what="processor time of one process ÷ that of all with processes",
            measured=alone.processor_seconds / pooled.processor_seconds,
            target=0.9,
            at_least=True,
            detail=f"of it in the program itself {pooled.own_processor_seconds:.1f} s, "
            f"without processes {alone.own_processor_seconds:.1f} s",
        ),
        Row(
            what=f"turn p99 while {PROCESSES} processes observe",
            measured=percentile(pooled.turns, 0.99),
            unit="ms",
            target=10.0,
            detail=f"{len(pooled.turns)} turns, longest {max(pooled.turns):.1f} ms",
        ),
    ]


async def _run(path: Path, conversations: int, *, processes: int) -> Run:
    url = f"sqlite:///{path}"
    await _fill(url, conversations)
    settings = Settings(workers=WORKERS, observer_processes=processes)
    async with Memory.open(url, settings=settings) as memory:
        chats = [memory.conversation(f"c{number}") for number in range(conversations)]
        began, busy = time.perf_counter(), time.process_time()
        async with asyncio.TaskGroup() as group:
            done = asyncio.Event()
            turns = group.create_task(_talk(memory.conversation("talk"), done))
            async with asyncio.TaskGroup() as observing:
                for chat in chats:
                    observing.create_task(chat.flush())
            seconds, own = time.perf_counter() - began, time.process_time() - busy
            done.set()
        states = [await chat.state() for chat in chats]
        others = _processor_seconds_of_children() if processes else 0.0
        tokens = sum(state.observed_sum_tokens for state in states)
        return Run(tokens, seconds, own, own + others, turns.result())


async def _fill(url: str, conversations: int) -> None:
    source = random.Random(conversations)
    async with Memory.open(url, settings=Settings(workers=0, durability="normal")) as memory:
        for number in range(conversations):
            said = [prose(source, CHARACTERS) for _ in range(MESSAGES)]
            pairs = zip(said[::2], said[1::2], strict=True)
            await memory.conversation(f"c{number}").append(
                *(m for one, two in pairs for m in (Message.user(one), Message.assistant(two)))
            )


async def _talk(chat: Conversation, done: asyncio.Event) -> list[float]:
    """Take turns until *done*, and return their milliseconds."""
    source = random.Random(0)
    taken: list[float] = []
    while not done.is_set():
        began = time.perf_counter()
        await chat.append(Message.user(prose(source, 200)))
        await chat.context(system="You are a helpful assistant.")
        await chat.append(Message.assistant(prose(source, 600)))
        taken.append((time.perf_counter() - began) * 1_000)
        await asyncio.sleep(PAUSE_SECONDS)
    return taken


def _processor_seconds_of_children() -> float:
    """Return the processor time of the processes that this one started, from /proc."""
    ticks = 0
    for child in multiprocessing.active_children():
        fields = Path(f"/proc/{child.pid}/stat").read_text().rpartition(")")[2].split()
        ticks += int(fields[11]) + int(fields[12])
    return ticks / os.sysconf("SC_CLK_TCK")


def main() -> None:
    """Print the figures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--conversations", type=int, default=CONVERSATIONS)
    show(measure(conversations=parser.parse_args().conversations))


if __name__ == "__main__":
    main()
