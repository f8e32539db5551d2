"""Durable appends a second with one writer and with many, beside raw single-row transactions."""

import argparse
import asyncio
import random
import tempfile
import time
from pathlib import Path

from benchmarks.raw import connect, insert
from benchmarks.rows import Row, show
from benchmarks.texts import prose
from remanence import Memory, Message, Policy

CHARACTERS = 100
NEVER_OBSERVED = Policy(enabled=False)


def measure(*, writers: int = 64, seconds: float = 2.0) -> list[Row]:
    """Appends a second; each is durable (`synchronous=FULL`, WAL) when it returns."""
    text = prose(random.Random(1), CHARACTERS)
    with tempfile.TemporaryDirectory() as folder:
        raw = raw_appends(Path(folder) / "raw.db", text, seconds)
        alone = asyncio.run(_appends_to_file(Path(folder) / "one.db", text, seconds, writers=1))
        together = asyncio.run(
            _appends_to_file(Path(folder) / "many.db", text, seconds, writers=writers)
        )
    return [
        Row(what="raw single-row transactions in one loop", measured=raw, unit="/s"),
        Row(what="appends, 1 writer", measured=alone, unit="/s"),
        Row(what=f"appends, {writers} writers", measured=together, unit="/s"),
        Row(
            what=f"appends of {writers} writers ÷ raw transactions",
            measured=together / raw,
            target=5.0,
            at_least=True,
            reference="1",
            detail=f"{together:,.0f} and {raw:,.0f} a second; 1 writer {alone:,.0f}; "
            f"the disk commits a raw transaction in {1_000 / raw:.2f} ms",
        ),
    ]


def raw_appends(path: Path, text: str, seconds: float) -> float:
    """Single-row transactions a second of a plain loop, without a thread between."""
    connection = connect(path)
    count = 0
    began = time.perf_counter()
    while (taken := time.perf_counter() - began) < seconds:
        count += 1
        insert(connection, 1, count, text)
    connection.close()
    return count / taken


async def appends(memory: Memory, text: str, seconds: float, *, writers: int) -> float:
    """Appends a second of *writers* tasks, each to its own conversation, one at a time."""
    began = time.perf_counter()
    counts = [0] * writers

    async def write(number: int) -> None:
        chat = memory.conversation(f"chat-{number}")
        while time.perf_counter() - began < seconds:
            await chat.append(Message.user(text))
            counts[number] += 1

    async with asyncio.TaskGroup() as group:
        for number in range(writers):
            group.create_task(write(number))
    return sum(counts) / (time.perf_counter() - began)


async def _appends_to_file(path: Path, text: str, seconds: float, *, writers: int) -> float:
    async with Memory.open(f"sqlite:///{path}", policy=NEVER_OBSERVED) as memory:
        return await appends(memory, text, seconds, writers=writers)


def main() -> None:
    """Print the figures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--writers", type=int, default=64)
    parser.add_argument("--seconds", type=float, default=2.0, help="of each kind")
    arguments = parser.parse_args()
    show(measure(writers=arguments.writers, seconds=arguments.seconds))


if __name__ == "__main__":
    main()
