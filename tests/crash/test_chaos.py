"""Workers are killed and stopped, connections cut and the server crashed, at random; nothing is lost."""

import asyncio
import contextlib
import os
import random
import signal
import sys
from collections import Counter, defaultdict
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from subprocess import PIPE, Popen
from typing import TypeVar

import psycopg
import pytest
from tests.crash.chaos_calls import outcomes
from tests.crash.chaos_worker import POLICY
from tests.postgres import crash, empty, new_database, restart, running_server

from remanence import Memory, Message, Settings
from remanence.conversation import Conversation
from remanence.errors import StoreUnavailable
from remanence.stores import open_store
from remanence.testing import ScriptedObserver, check_coverage, check_tiling

T = TypeVar("T")

CHILD = Path(__file__).with_name("chaos_worker.py")
SEEDS = int(os.environ.get("REMANENCE_CHAOS_SEEDS", "1"))
FIRST_SEED = int(os.environ.get("REMANENCE_CHAOS_FIRST_SEED", "0"))
WORKERS = 4
WRITERS = 4
ROUNDS = 10
PAUSE_SECONDS = 0.2
SETTLE_SECONDS = 90
AHEAD_SECONDS = (-1_800, 0, 1_800)
CALLS_PER_SEGMENT = 1.1
SEEDS_FOR_A_SHARE = 20
"""With fewer seeds, one answer that was discarded may be more than a tenth."""


class Workers:
    """Working processes, some of which are stopped for a while; all are killed at the end."""

    def __init__(
        self, server: Popen[str], events: Path, chance: random.Random, ahead: tuple[int, ...]
    ) -> None:
        self._server = server
        self._events = events
        self._chance = chance
        self._ahead = ahead
        self._alive: list[int] = []
        self._stopped: list[int] = []

    def fill_up(self) -> None:
        assert self._server.stdin is not None
        assert self._server.stdout is not None
        self._alive = [process for process in self._alive if _exists(process)]
        while len(self._alive) < WORKERS:
            self._server.stdin.write(f"{self._chance.choice(self._ahead)}\n")
            self._server.stdin.flush()
            self._alive.append(int(self._server.stdout.readline()))

    def disturb(self) -> str:
        """Kill a process, stop one, or let those that were stopped go on."""
        act = self._chance.choice((signal.SIGKILL, signal.SIGSTOP, signal.SIGCONT))
        if act == signal.SIGCONT or not self._alive:
            self.go_on()
        else:
            process = self._alive.pop(self._chance.randrange(len(self._alive)))
            self._signal(act, [process])
            if act == signal.SIGSTOP:
                self._stopped.append(process)
        if self._chance.random() < 0.7 or not self._alive:
            self.fill_up()
        return act.name

    def go_on(self) -> None:
        self._signal(signal.SIGCONT, self._stopped)
        self._alive += self._stopped
        self._stopped.clear()

    def __enter__(self) -> None:
        self.fill_up()

    def __exit__(self, *_: object) -> None:
        self._signal(signal.SIGKILL, self._alive + self._stopped)

    def _signal(self, number: signal.Signals, processes: list[int]) -> None:
        for process in processes:
            with contextlib.suppress(ProcessLookupError):
                os.kill(process, number)
                with self._events.open("a") as events:
                    events.write(f"{number.name} {process}\n")


def _exists(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    return True


@contextmanager
def worker_server(database: str, events: Path) -> Iterator[Popen[str]]:
    """Yield the process that forks workers; they end with it."""
    command = (sys.executable, CHILD, database, events)
    variables = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    with (
        events.with_name("workers.log").open("w") as log,
        Popen(
            command,
            env=variables,
            start_new_session=True,
            stdin=PIPE,
            stdout=PIPE,
            stderr=log,
            text=True,
        ) as server,
    ):
        try:
            yield server
        finally:
            os.killpg(server.pid, signal.SIGKILL)


async def until_done(work: Callable[[], Awaitable[T]]) -> T:
    """Do it again while the database is down, or locked by a process that was stopped."""
    async with asyncio.timeout(SETTLE_SECONDS):
        while True:
            with contextlib.suppress(StoreUnavailable):
                return await work()
            await asyncio.sleep(0.05)


async def write(
    memory: Memory, writer: int, chance: random.Random, said: list[str], reading: asyncio.Lock
) -> None:
    """Append pairs to any conversation until each is acknowledged, and read a context now and then.

    Contexts are read one at a time, so that the prefix of each can be compared with the one before.
    """
    for number in range(ROUNDS):
        chat = memory.conversation(chance.choice("abcde"))
        text = f"{chat.id} {writer} {number}"
        pair = (
            Message.user(f"{text} {'and so on ' * chance.randint(0, 60)}".strip(), id=text),
            Message.assistant(f"{text} noted", id=f"{text} noted"),
        )
        await until_done(partial(chat.append, *pair))
        said += [message.text for message in pair]
        if chance.random() < 0.3:
            async with reading:
                await until_done(partial(chat.context, system="You help."))
        await asyncio.sleep(PAUSE_SECONDS * chance.random())


async def live(
    memory: Memory, chance: random.Random, disturb: Callable[[], Awaitable[None]]
) -> list[list[str]]:
    """Let writers write while everything is disturbed; return the texts of each."""
    said: list[list[str]] = [[] for _ in range(WRITERS)]
    reading = asyncio.Lock()
    async with asyncio.TaskGroup() as group:
        writers = [
            group.create_task(write(memory, number, random.Random(chance.random()), texts, reading))
            for number, texts in enumerate(said)
        ]
        while not all(task.done() for task in writers):
            await asyncio.sleep(PAUSE_SECONDS * chance.random())
            await disturb()
    return said


async def check(memory: Memory, chat: Conversation, said: list[list[str]]) -> int:
    """Require all that was acknowledged, in each writer's order; return the committed segments."""
    texts = [message.text for message in await chat.messages()]
    assert len(texts) == len(set(texts))
    for own in said:
        mine = [text for text in own if text.startswith(f"{chat.id} ")]
        assert [text for text in texts if text in set(mine)] == mine
    assert len(texts) == sum(text.startswith(f"{chat.id} ") for own in said for text in own)
    context = await chat.context(system="You help.")
    snapshot = await chat.snapshot()
    check_tiling(snapshot.state, snapshot.segments)
    check_coverage(context, snapshot.state, snapshot.segments)
    log = await chat.log()
    ends = [entry.observed_seq for entry in log if entry.kind == "observed"]
    assert ends == sorted(set(ends))
    return sum(entry.kind in ("observed", "reflected") for entry in log)


async def work_left(database: str) -> list[object]:
    """Return the looks that are planned, and the jobs."""
    store = await open_store(database)
    try:
        looks = await store.looks(after=None, limit=100)
    finally:
        await store.close()
    shared = database.startswith("postgresql:")
    return [*looks, *(await asyncio.to_thread(jobs, database) if shared else ())]


def jobs(database: str) -> list[object]:
    columns = "id, lock, status, scheduled_at, worker_id"
    with psycopg.connect(database) as connection:
        return [*connection.execute(f"SELECT {columns} FROM procrastinate_jobs")]


async def settle(database: str) -> None:
    """Return when no work is left for the processes that run."""
    left: list[object] = []
    try:
        async with asyncio.timeout(SETTLE_SECONDS):
            while left := await work_left(database):  # noqa: ASYNC110 - others do it
                await asyncio.sleep(0.05)
    except TimeoutError:
        pytest.fail(f"left after {SETTLE_SECONDS} s: {left}")


async def run_seed(
    database: str,
    seed: int,
    workers: Workers,
    disturb: Callable[[], Awaitable[None]],
    events: Path,
) -> Counter[str]:
    """Return the numbers of one seed, after all checks."""
    observer = ScriptedObserver()
    await asyncio.to_thread(events.write_text, "")
    async with Memory.open(
        database, policy=POLICY, observer=observer, settings=Settings(workers=0)
    ) as memory:
        with workers:
            said = await live(memory, random.Random(seed), disturb)
            workers.go_on()
            workers.fill_up()
            await settle(database)
        chats = [memory.conversation(name) for name in "abcde"]
        segments = sum([await check(memory, chat, said) for chat in chats])
        made = outcomes((await asyncio.to_thread(events.read_text)).splitlines())
        for chat in chats:
            await chat.flush()
        assert observer.requests == [], "work was due that no worker had done"
        assert [problem for problem in await memory.check() if problem.level == "error"] == []
    return made + Counter(seeds=1, messages=sum(map(len, said)), segments=segments)


class Tally:
    """Numbers of the seeds of each store."""

    def __init__(self) -> None:
        self.totals: defaultdict[str, Counter[str]] = defaultdict(Counter)

    def add(self, store: str, seed: int, counts: Counter[str]) -> None:
        self.totals[store] += counts
        print(f"{store} seed {seed}: {dict(counts)}")  # noqa: T201 - for `make chaos`


@pytest.fixture(scope="module")
def tally() -> Iterator[Tally]:
    tally = Tally()
    yield tally
    for store, counts in tally.totals.items():
        print(f"{store} in all: {dict(counts)}")  # noqa: T201 - for `make chaos`
        if counts["seeds"] >= SEEDS_FOR_A_SHARE:
            assert counts["answers"] <= CALLS_PER_SEGMENT * counts["segments"]


@pytest.fixture(scope="module")
def own_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, Path, Popen[str]]]:
    """A database on a server that may be crashed, the file of events, and the forks of workers."""
    events = tmp_path_factory.mktemp("chaos") / "events"
    with (
        running_server(own=True) as server,
        new_database(server) as database,
        worker_server(database, events) as workers,
    ):
        yield database, events, workers


@pytest.mark.postgres
@pytest.mark.timeout(4 * SETTLE_SECONDS)
@pytest.mark.parametrize("seed", range(FIRST_SEED, FIRST_SEED + SEEDS))
async def test_workers_and_a_server_that_crash_lose_nothing(
    own_server: tuple[str, Path, Popen[str]], tally: Tally, seed: int
) -> None:
    database, events, forks = own_server
    empty(database)
    chance = random.Random(seed)
    workers = Workers(forks, events, chance, AHEAD_SECONDS)
    counts: Counter[str] = Counter()
    crash_at = chance.randrange(2, 10)

    async def disturb() -> None:
        nonlocal crash_at
        crash_at -= 1
        if crash_at == 0:
            await asyncio.to_thread(crash, database, kill=chance.random() < 0.5)
            await asyncio.sleep(chance.random())
            await asyncio.to_thread(restart, database)
            counts["crashes of the server"] += 1
        elif chance.random() < 0.3:
            counts["cut connections"] += await asyncio.to_thread(cut, database, chance)
        else:
            counts[workers.disturb()] += 1

    counts += await run_seed(database, seed, workers, disturb, events)
    tally.add("PostgreSQL", seed, counts)


def cut(database: str, chance: random.Random) -> int:
    """Cut half of the connections."""
    with psycopg.connect(database, autocommit=True) as connection:
        rows = connection.execute(
            "SELECT pid FROM pg_stat_activity WHERE backend_type = 'client backend' "
            "AND datname = current_database() AND pid != pg_backend_pid()"
        ).fetchall()
        some = [pid for (pid,) in rows if chance.random() < 0.5]
        connection.execute(
            "SELECT pg_terminate_backend(pid) FROM unnest(%s::int[]) AS pid", (some,)
        )
    return len(some)


@pytest.mark.timeout(4 * SETTLE_SECONDS)
@pytest.mark.parametrize("seed", range(FIRST_SEED, FIRST_SEED + SEEDS))
async def test_processes_that_share_a_file_and_are_killed_lose_nothing(
    tmp_path: Path, tally: Tally, seed: int
) -> None:
    database, events = f"sqlite:///{tmp_path / 'memory.db'}", tmp_path / "events"
    chance = random.Random(seed)
    counts: Counter[str] = Counter()
    with worker_server(database, events) as forks:
        workers = Workers(forks, events, chance, (0,))

        async def disturb() -> None:
            counts[workers.disturb()] += 1

        counts += await run_seed(database, seed, workers, disturb, events)
    tally.add("SQLite", seed, counts)
