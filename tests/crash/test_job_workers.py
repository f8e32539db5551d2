"""Processes that work on jobs in PostgreSQL are killed and stopped at random; nothing gets lost."""

import asyncio
import contextlib
import os
import random
import signal
import sys
from collections.abc import Iterator
from pathlib import Path
from subprocess import PIPE, Popen
from typing import LiteralString

import psycopg
import pytest
from tests.crash.job_worker import POLICY
from tests.postgres import empty, new_database, until

from remanence import Memory, Message, Settings
from remanence.conversation import Conversation
from remanence.testing import ScriptedObserver, check_coverage, check_tiling

pytestmark = pytest.mark.postgres

CHILD = Path(__file__).with_name("job_worker.py")
SEEDS = int(os.environ.get("REMANENCE_CHAOS_SEEDS", "1"))
WORKERS = 2
ROUNDS = 40
PAUSE_SECONDS = 0.1
LEFT: LiteralString = (
    "SELECT 1 FROM procrastinate_jobs UNION ALL SELECT 1 FROM states WHERE look_at IS NOT NULL"
)


@pytest.fixture(scope="module")
def database(postgres: str) -> Iterator[str]:
    with new_database(postgres) as url:
        yield url


@pytest.fixture(scope="module")
def server(database: str) -> Iterator[Popen[str]]:
    """Yield the process that forks workers; they end with it."""
    command = (sys.executable, CHILD, database)
    variables = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    with Popen(
        command, env=variables, start_new_session=True, stdin=PIPE, stdout=PIPE, text=True
    ) as server:
        yield server
        os.killpg(server.pid, signal.SIGKILL)


class Workers:
    """Two working processes, some of which are stopped for a while."""

    def __init__(self, server: Popen[str], chance: random.Random) -> None:
        self._server = server
        self._chance = chance
        self._alive: list[int] = []
        self._stopped: list[int] = []

    def fill_up(self) -> None:
        assert self._server.stdin is not None
        assert self._server.stdout is not None
        while len(self._alive) < WORKERS:
            self._server.stdin.write("\n")
            self._server.stdin.flush()
            self._alive.append(int(self._server.stdout.readline()))

    def disturb(self) -> None:
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
            self.fill_up()

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


async def check(chat: Conversation, said: list[str]) -> None:
    """What was acknowledged is there, and each message was observed once."""
    assert [message.text for message in await chat.messages()] == said
    context = await chat.context(system="You help.")
    snapshot = await chat.snapshot()
    check_tiling(snapshot.state, snapshot.segments)
    check_coverage(context, snapshot.state, snapshot.segments)
    ends = [entry.observed_seq for entry in await chat.log() if entry.kind == "observed"]
    assert ends == sorted(set(ends))


@pytest.mark.parametrize("seed", range(SEEDS))
async def test_workers_that_are_killed_and_stopped_lose_nothing(
    database: str, server: Popen[str], seed: int
) -> None:
    empty(database)
    chance = random.Random(seed)
    workers = Workers(server, chance)
    observer = ScriptedObserver()
    said: dict[str, list[str]] = {name: [] for name in "abcde"}
    async with Memory.open(
        database, policy=POLICY, observer=observer, settings=Settings(workers=0)
    ) as memory:
        workers.fill_up()
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
                workers.disturb()
            await asyncio.sleep(PAUSE_SECONDS * chance.random())
        workers.go_on()
        workers.fill_up()
        with psycopg.connect(database, autocommit=True) as connection:
            await until(lambda: not connection.execute(LEFT).fetchall())
        workers.kill()
        for name, texts in said.items():
            await check(memory.conversation(name), texts)
            await memory.conversation(name).flush()
        assert observer.requests == [], "work was due that no worker had done"
        assert [problem for problem in await memory.check() if problem.level == "error"] == []
