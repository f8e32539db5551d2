"""Where the time of a turn goes on SQLite: each step of its appends and its context, by itself.

The steps are the functions that a memory calls, in the same order, on the same threads. Beside them
is the floor of `benchmarks.turns`: three hops to a thread. Reads internals of remanence, as no other
benchmark does.
"""

import argparse
import asyncio
import tempfile
import time
from collections import defaultdict
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any, cast

import apsw

from benchmarks.raw import WriterThread, insert, newest
from benchmarks.rows import percentile
from benchmarks.turns import HISTORY_MESSAGES, PAUSE_SECONDS, TurnStep, history, turn_of, turn_texts
from remanence import Memory, Message, Policy
from remanence.clock import SystemClock
from remanence.context.layout import ContextRequest, Layout
from remanence.policy.schedule import activation, observation_due
from remanence.stores.rows import state_from_row
from remanence.stores.sql import tape
from remanence.stores.sql.snapshots import Snapshots
from remanence.stores.sqlite.connection import Database
from remanence.stores.sqlite.fts import Connection
from remanence.stores.sqlite.worker import Worker
from remanence.testing import ScriptedObserver
from remanence.tokens.choice import counter_for
from remanence.types import ConversationRef, check_message

SYSTEM = "You are a helpful assistant."
SHARE = 0.25
"""Of the turns were faster than the time that is shown: the rest waited for other programs."""
TURNS_IN_A_CONVERSATION = 6
TAIL_TOKENS = 200_000
REST = "coroutines, checks of arguments, counters: the rest"
ALL = "**the whole turn**"
CPU = "processor time of it, all threads"
WRITING = "Python between these statements: append"
READING = "Python between these statements: context"
OWN = (
    "check the messages",
    "count their tokens",
    "ids, times, JSON",
    WRITING,
    "the messages and the state after them",
    "is background work due?",
)
"""The steps of an append that are neither a hop nor a statement."""


class Laps:
    """Microseconds of each step of a turn, summed over the turn."""

    def __init__(self) -> None:
        self._turns: list[dict[str, float]] = []
        self._last = 0.0

    @contextmanager
    def turn(self) -> Iterator[None]:
        """Begin a turn; its whole time is a step as well."""
        self._turns.append(defaultdict(float))
        busy, began = time.process_time(), time.perf_counter()
        self._last = began
        yield
        self.add(ALL, time.perf_counter() - began)
        self.add(CPU, time.process_time() - busy)

    def lap(self, step: str) -> None:
        """End a step, which began with the end of the one before."""
        now = time.perf_counter()
        self.add(step, now - self._last)
        self._last = time.perf_counter()

    def add(self, step: str, seconds: float) -> None:
        self._turns[-1][step] += seconds * 1e6

    def shift(self, seconds: float) -> None:
        """Leave a time that was added already out of the step that is being measured."""
        self._last += seconds

    def figures(self) -> dict[str, float]:
        """The time of each step in a turn."""
        steps = {step: None for turn in self._turns for step in turn}
        return {step: percentile([turn[step] for turn in self._turns], SHARE) for step in steps}


class TimedConnection:
    """A connection whose statements are steps of their own, named by their first word."""

    def __init__(self, connection: apsw.Connection, laps: Laps) -> None:
        self._connection = connection
        self._laps = laps

    def execute(self, statement: str, values: Sequence[Any] = ()) -> apsw.Cursor:
        began = time.perf_counter()
        cursor = self._connection.execute(statement, values)
        taken = time.perf_counter() - began
        name = "COMMIT, with a sync" if statement == "COMMIT" else statement.split(" ", 1)[0]
        self._laps.add(name.replace("ROLLBACK", "BEGIN"), taken)
        self._laps.shift(time.perf_counter() - began)
        return cursor

    def __getattr__(self, name: str) -> Any:  # what the connection has
        return getattr(self._connection, name)


async def floor(folder: Path, count: int, pause: float) -> Laps:
    """Three hops to a thread: insert, read 20 rows, insert."""
    laps, seq = Laps(), 0
    with WriterThread(folder / "floor.db") as thread:

        async def hop(work: Any, name: str) -> None:  # a function of a connection and more
            def timed(connection: apsw.Connection) -> None:
                laps.lap("wake the thread")
                work(cast(apsw.Connection, TimedConnection(connection, laps)))
                laps.lap(name)

            await thread.run(timed)
            laps.lap("wake the loop")

        for user, reply in turn_texts(count):
            await asyncio.sleep(pause)
            with laps.turn():
                await hop(partial(insert, conversation=1, seq=seq + 1, text=user), WRITING)
                await hop(partial(newest, conversation=1, limit=20), READING)
                await hop(partial(insert, conversation=1, seq=seq + 2, text=reply), WRITING)
            seq += 2
    return laps


async def whole(folder: Path, count: int, pause: float) -> Laps:
    """Turns of a memory, without a look inside."""
    laps = Laps()
    async with Memory.open(f"sqlite:///{folder / 'whole.db'}", observer=ScriptedObserver()) as m:
        for number in range(count // TURNS_IN_A_CONVERSATION):
            chat = m.conversation(f"chat-{number}")
            await chat.append(*history(HISTORY_MESSAGES))
            await chat.end()
            take: TurnStep = turn_of(chat)
            for user, reply in turn_texts(TURNS_IN_A_CONVERSATION):
                await asyncio.sleep(pause)
                with laps.turn():
                    await take(user, reply)
    return laps


class Replay:
    """The steps of a turn, called one by one."""

    def __init__(self, folder: Path) -> None:
        self.laps = Laps()
        self._clock = SystemClock()
        self._policy = Policy()
        self._counter = counter_for(self._policy.model)
        self._snapshots = Snapshots()
        database = Database(path=str(folder / "steps.db"))
        writer = partial(self._timed, partial(database.open_writer, self._clock))
        reader = partial(self._timed, database.open_reader)
        self._writer = Worker("writer", path=database.path, connect=writer, writes=True)
        self._reader = Worker("reader", path=database.path, connect=reader, writes=False)

    def _timed(self, connect: Any) -> Connection:  # a function without arguments
        return cast(Connection, TimedConnection(connect(), self.laps))

    async def run(self, count: int, pause: float) -> Laps:
        with self.laps.turn():
            await self._writer.start()
            await self._reader.start()
        for number in range(count // TURNS_IN_A_CONVERSATION):
            ref = ConversationRef("default", f"chat-{number}")
            with self.laps.turn():
                await self._append(ref, *history(HISTORY_MESSAGES))
            for user, reply in turn_texts(TURNS_IN_A_CONVERSATION):
                await asyncio.sleep(pause)
                with self.laps.turn():
                    await self._append(ref, Message.user(user))
                    await self._context(ref)
                    await self._append(ref, Message.assistant(reply))
        await self._reader.close()
        await self._writer.close()
        return self.laps

    async def _append(self, ref: ConversationRef, *messages: Message) -> None:
        lap, policy, now = self.laps.lap, self._policy, self._clock.now()
        for message in messages:
            check_message(message, max_bytes=policy.max_message_bytes)
        lap(OWN[0])
        counted = [m.replace(tokens=self._counter.message(m)) for m in messages]
        lap(OWN[1])
        entries = [tape.entry(message, self._clock, now) for message in counted]
        lap(OWN[2])

        def write(connection: Connection) -> tape.TapeWrite:
            lap("wake the thread")
            written = tape.append(connection, ref, entries, now, user=None)
            lap(WRITING)
            return written

        written = await self._writer.submit(write)
        lap("wake the loop")
        state = state_from_row(written.state)
        for item, seq in zip(entries, written.places, strict=True):
            item.message.replace(id=item.id, created_at=item.created_at, seq=seq)
        lap(OWN[4])
        observation_due(policy, state)
        lap(OWN[5])

    async def _context(self, ref: ConversationRef) -> None:
        lap, policy, count = self.laps.lap, self._policy, self._counter
        request = ContextRequest(now=self._clock.now(), system=SYSTEM)

        def read(connection: Connection) -> Any:
            lap("wake the thread")
            snapshot = self._snapshots.read(connection, ref, tail_tokens=TAIL_TOKENS)
            lap(READING)
            return snapshot

        snapshot = await self._reader.submit(read)
        lap("wake the loop")
        activation(policy, snapshot, now=request.now)
        lap("is an activation due?")
        Layout(snapshot, request, policy, count.text, count.message).context()
        lap("lay out the context")


async def figures(
    directory: Path | None, count: int, pause: float
) -> tuple[dict[str, float], dict[str, float]]:
    """Microseconds of each step: of the floor, and of a turn."""
    with tempfile.TemporaryDirectory(dir=directory) as folder:
        path = Path(folder)
        bare = (await floor(path, count, pause)).figures()
        steps = (await Replay(path).run(count, pause)).figures()
        taken = (await whole(path, count, pause)).figures()
    parts = {step: time for step, time in steps.items() if step not in (ALL, CPU)}
    rest = taken[ALL] - sum(parts.values())
    own = sum(parts[step] for step in OWN) / 2
    return bare, {**parts, REST: rest, **taken, "own Python of one append, of these": own}


def profile(directory: Path | None, count: int) -> Iterator[str]:
    """The lines of a Markdown table."""
    hot = asyncio.run(figures(directory, count, 0.0))
    cold = asyncio.run(figures(directory, count, PAUSE_SECONDS))
    columns = [*hot, *cold]
    yield "| µs in a turn | floor | turn | floor, after 10 ms | turn, after 10 ms |"
    yield "|---|---|---|---|---|"
    for step in hot[1]:
        shown = (f"{column[step]:,.0f}" if step in column else "" for column in columns)
        yield f"| {step} | {' | '.join(shown)} |"


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=300, help="turns of each kind")
    parser.add_argument("--directory", type=Path, help="where the databases are written")
    arguments = parser.parse_args()
    for line in profile(arguments.directory, arguments.count):
        print(line)


if __name__ == "__main__":
    main()
