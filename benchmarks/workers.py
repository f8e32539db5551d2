"""Conversations that workers on one PostgreSQL server observe in a second, and appends a second."""

import argparse
import asyncio
import sys
import time
from contextlib import ExitStack
from subprocess import PIPE, Popen

import psycopg
from tests.postgres import new_database, running_server

from benchmarks.appends import appends
from benchmarks.observing_worker import POLICY
from benchmarks.rows import Row, show
from remanence import Memory, Message, Settings

MODEL_SECONDS = 0.05
WORKERS = (1, 2, 4)
CONVERSATIONS = 150
"""Conversations for each worker."""
WRITERS = 64
WORDS = "the quick brown fox jumps over a lazy dog near the old river bank at dawn " * 12
QUIET = Settings(workers=0)


def measure(*, model_seconds: float = MODEL_SECONDS, seconds: float = 3.0) -> list[Row]:
    """Rates on a server of its own; a worker observes one conversation at a time."""
    with running_server(own=True) as server:
        rates = {workers: observed(server, workers, model_seconds) for workers in WORKERS}
        with new_database(server) as database:
            alone = asyncio.run(_appends_to(database, seconds, writers=1))
            together = asyncio.run(_appends_to(database, seconds, writers=WRITERS))
    one = rates[WORKERS[0]]
    return [
        *(
            Row(
                what=f"conversations observed a second, PostgreSQL, {workers} workers ÷ {workers} × 1",
                measured=rate / (workers * one),
                target=0.9,
                at_least=True,
                detail=f"{rate:.1f} a second, a model of {1_000 * model_seconds:.0f} ms, which alone "
                f"allows {workers / model_seconds:.0f}",
            )
            for workers, rate in rates.items()
        ),
        Row(what="appends, PostgreSQL, 1 writer", measured=alone, unit="/s"),
        Row(what=f"appends, PostgreSQL, {WRITERS} writers", measured=together, unit="/s"),
    ]


def observed(server: str, workers: int, model_seconds: float) -> float:
    """Return the conversations observed a second, from the last worker's first call on."""
    command = (sys.executable, "-m", "benchmarks.observing_worker")
    with ExitStack() as stack:
        database = stack.enter_context(new_database(server))
        asyncio.run(_make_due(database, workers * CONVERSATIONS))
        connection = stack.enter_context(psycopg.connect(database, autocommit=True))
        processes = [
            stack.enter_context(Popen((*command, database, str(model_seconds)), stdout=PIPE))
            for _ in range(workers)
        ]
        for process in processes:
            stack.callback(process.kill)
            assert process.stdout is not None
            process.stdout.readline()
        before, began = _due(connection), time.perf_counter()
        while (left := _due(connection)) > workers:
            time.sleep(0.05)
        return (before - left) / (time.perf_counter() - began)


def _due(connection: psycopg.Connection) -> int:
    row = connection.execute("SELECT count(*) FROM states WHERE observed_seq = 0").fetchone()
    assert row is not None
    return int(row[0])


async def _make_due(database: str, count: int) -> None:
    async with Memory.open(database, policy=POLICY, settings=QUIET) as memory:
        for number in range(count):
            chat = memory.conversation(f"chat-{number}")
            await chat.append(*(Message.user(f"{part} {WORDS}") for part in range(3)))


async def _appends_to(database: str, seconds: float, *, writers: int) -> float:
    async with Memory.open(database, settings=QUIET) as memory:
        return await appends(memory, WORDS[:100], seconds, writers=writers)


def main() -> None:
    """Print the figures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--model-seconds", type=float, default=MODEL_SECONDS)
    show(measure(model_seconds=parser.parse_args().model_seconds))


if __name__ == "__main__":
    main()
