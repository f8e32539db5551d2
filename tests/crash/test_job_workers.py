"""Processes that work on jobs in PostgreSQL are killed and stopped at random; nothing gets lost."""

import asyncio
import contextlib
import os
import random
import signal
import sys
from asyncio.subprocess import PIPE, Process
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path

import psycopg
import pytest
from tests.crash.job_worker import POLICY
from tests.postgres import empty, new_database, until

from remanence import Memory, Message, Settings
from remanence.conversation import Conversation
from remanence.testing import ScriptedObserver, check_coverage, check_tiling

pytestmark = pytest.mark.postgres

CHILD = Path(__file__).with_name("job_worker.py")
SEEDS = int(os.environ.get("REMANENCE_CHAOS_SEEDS", "2"))
WORKERS = 2
ROUNDS = 40
PAUSE_SECONDS = 0.1


@pytest.fixture
def database(postgres: str) -> Iterator[str]:
    with new_database(postgres) as url:
        yield url


class Workers:
    """Two working processes, some of which are stopped for a while."""

    def __init__(self, server: Process, chance: random.Random) -> None:
        self._server = server
        self._chance = chance
        self._alive: list[int] = []
        self._stopped: list[int] = []

    async def fill_up(self) -> None:
        assert self._server.stdin is not None
        assert self._server.stdout is not None
        while len(self._alive) < WORKERS:
            self._server.stdin.write(b"\n")
            self._alive.append(int(await self._server.stdout.readline()))

    async def disturb(self) -> None:
        """Kill a process, stop one, or let one that was stopped go on."""
        act = self._chance.choice((signal.SIGKILL, signal.SIGKILL, signal.SIGSTOP, signal.SIGCONT))
        if act == signal.SIGCONT:
            self.go_on()
            return
        process = self._alive.pop(self._chance.randrange(len(self._alive)))
        os.kill(process, act)
        if act == signal.SIGSTOP:
            self._stopped.append(process)
        if self._chance.random() < 0.7 or not self._alive:
            await self.fill_up()

    def go_on(self) -> None:
        for process in self._stopped:
            os.kill(process, signal.SIGCONT)
        self._alive += self._stopped
        self._stopped.clear()

    def kill(self) -> None:
        for process in self._alive + self._stopped:
            with contextlib.suppress(ProcessLookupError):
                os.kill(process, signal.SIGKILL)
        self._alive.clear()
        self._stopped.clear()


@asynccontextmanager
async def server_of_workers(database: str) -> AsyncIterator[Process]:
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, CHILD, database),
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        start_new_session=True,
        stdin=PIPE,
        stdout=PIPE,
    )
    try:
        yield process
    finally:
        os.killpg(process.pid, signal.SIGKILL)
        await process.wait()


async def check(chat: Conversation, said: list[str]) -> None:
    """What was acknowledged is there, and each message was observed once."""
    assert [message.text for message in await chat.messages()] == said
    context = await chat.context(system="You help.")
    snapshot = await chat.snapshot()
    check_tiling(snapshot.state, snapshot.segments)
    check_coverage(context, snapshot.state, snapshot.segments)
    ends = [entry.observed_seq for entry in await chat.log() if entry.kind == "observed"]
    assert ends == sorted(set(ends))


@pytest.mark.timeout(60 + 60 * SEEDS)
async def test_workers_that_are_killed_and_stopped_lose_nothing(database: str) -> None:
    async with server_of_workers(database) as server:
        for seed in range(SEEDS):
            empty(database)
            await survive(database, server, random.Random(seed))


async def survive(database: str, server: Process, chance: random.Random) -> None:
    workers = Workers(server, chance)
    said: dict[str, list[str]] = {name: [] for name in "abcde"}
    observer = ScriptedObserver()
    async with Memory.open(
        database, policy=POLICY, observer=observer, settings=Settings(workers=0)
    ) as memory:
        await workers.fill_up()
        for number in range(ROUNDS):
            name = chance.choice(list(said))
            texts = [f"{number} {'and so on ' * chance.randint(0, 60)}", f"{number} noted"]
            await memory.conversation(name).append(
                Message.user(texts[0]), Message.assistant(texts[1])
            )
            said[name] += texts
            if chance.random() < 0.3:
                await memory.conversation(name).context(system="You help.")
            if chance.random() < 0.25:
                await workers.disturb()
            await asyncio.sleep(PAUSE_SECONDS * chance.random())
        workers.go_on()
        await workers.fill_up()
        with psycopg.connect(database, autocommit=True) as connection:
            left = "SELECT 1 FROM procrastinate_jobs UNION ALL SELECT 1 FROM states WHERE look_at IS NOT NULL"
            await until(lambda: not connection.execute(left).fetchall())
        workers.kill()
        for name, texts in said.items():
            await check(memory.conversation(name), texts)
            await memory.conversation(name).flush()
        assert observer.requests == [], "work was due that no worker had done"
        assert [problem for problem in await memory.check() if problem.level == "error"] == []
