"""What memory adds to a turn: append the user's message, build the context, append the reply."""

import argparse
import asyncio
import random
import statistics
import tempfile
import time
from collections.abc import Awaitable, Callable, Sequence
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import NamedTuple, TypeAlias

from benchmarks.raw import WriterThread, insert, newest
from benchmarks.rows import Row, percentile, show
from benchmarks.texts import prose
from remanence import Chat, Conversation, Memory, Message, Observer, Settings
from remanence.protocols import ObserveRequest
from remanence.testing import ScriptedModel, ScriptedObserver
from remanence.types import Draft

USER_CHARACTERS = 200
REPLY_CHARACTERS = 600
HISTORY_MESSAGES = 40
MESSAGES_TO_OBSERVE = 120
RECALLED_MESSAGES = 300
PAUSE_SECONDS = 0.01
OBSERVER_SECONDS = 4.0
BACKLOG_CHARACTERS = 81_000
MEDIAN_TARGET = 1.2
FLOOR_OF_TARGET = 0.7
"""Milliseconds of the bare floor on the machine for which the target was set."""
QUICK_CLOSE = Settings(shutdown_timeout_seconds=0.1)

TurnStep: TypeAlias = Callable[[str, str], Awaitable[object]]


class Taken(NamedTuple):
    """Milliseconds of a turn, and those for which the process kept a processor busy meanwhile."""

    wall: float
    processor: float


class Sample(NamedTuple):
    """What the turns of a situation took."""

    situation: str
    turns: list[Taken]

    def wall(self, share: float) -> float:
        """Milliseconds within which *share* of the turns ended."""
        return percentile([turn.wall for turn in self.turns], share)

    def detail(self) -> str:
        return f"{len(self.turns)} turns; {self.processor:.2f} ms of CPU in a turn, all threads"

    @property
    def processor(self) -> float:
        """The median of the milliseconds of CPU."""
        return statistics.median(turn.processor for turn in self.turns)


def measure(*, count: int = 300) -> list[Row]:
    """p50 and p99 of a turn: bare, in peace, and while an observer works."""
    return asyncio.run(_measure(count))


async def _measure(count: int) -> list[Row]:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder)
        samples = [
            await bare(path, count),
            await in_peace(path, count),
            await during_a_slow_call(path, count),
            await during_embedded_work(path, count),
        ]
        chat = await of_a_chat(path, count // 2)
    floor, *others = samples
    rows = [*_floor_rows(floor), *(row for sample in others for row in _rows(sample, floor))]
    return [*rows, _chat_row(chat, others[0])]


def _floor_rows(floor: Sample) -> list[Row]:
    reference = "three hops to a thread"
    return [
        Row(
            what="turn p50, bare floor",
            measured=floor.wall(0.5),
            unit="ms",
            reference=reference,
            detail=floor.detail(),
        ),
        Row(what="turn p99, bare floor", measured=floor.wall(0.99), unit="ms", reference=reference),
    ]


def _rows(sample: Sample, floor: Sample) -> list[Row]:
    return [
        Row(
            what=f"turn p50, {sample.situation}",
            measured=sample.wall(0.5),
            unit="ms",
            target=MEDIAN_TARGET,
            reference="Mastra's OM: 27 ms",
            detail=sample.detail(),
        ),
        Row(
            what=f"turn p50 ÷ bare floor, {sample.situation}",
            measured=sample.wall(0.5) / floor.wall(0.5),
            target=round(MEDIAN_TARGET / FLOOR_OF_TARGET, 2),
            reference=f"{MEDIAN_TARGET} ms where the floor is {FLOOR_OF_TARGET} ms",
        ),
        Row(
            what=f"turn p99, {sample.situation}",
            measured=sample.wall(0.99),
            unit="ms",
            target=10.0,
            reference="Mastra's OM: 1,004 ms",
            detail=f"longest {sample.wall(1):.1f} ms",
        ),
    ]


def _chat_row(chat: Sample, plain: Sample) -> Row:
    return Row(
        what=f"processor time of a turn ÷ without recall, {chat.situation}",
        measured=chat.processor / plain.processor,
        detail=f"p50 {chat.wall(0.5):.2f} ms; {chat.detail()}",
    )


async def bare(folder: Path, count: int) -> Sample:
    """Three hops to a thread with a raw connection: insert, read, insert."""
    with WriterThread(folder / "bare.db") as thread:
        seq = 0

        async def turn(user: str, reply: str) -> None:
            nonlocal seq
            await thread.run(lambda connection: insert(connection, 1, seq + 1, user))
            await thread.run(lambda connection: newest(connection, 1, 20))
            await thread.run(lambda connection: insert(connection, 1, seq + 2, reply))
            seq += 2

        return Sample("bare floor", await _timed(turn, turn_texts(count)))


async def in_peace(folder: Path, count: int) -> Sample:
    """A few turns in each of many conversations that are observed up to their end."""
    url = f"sqlite:///{folder / 'peace.db'}"
    few = 6
    taken: list[Taken] = []
    async with Memory.open(url, observer=ScriptedObserver()) as memory:
        chats = [memory.conversation(f"chat-{number}") for number in range(-(-count // few))]
        for chat in chats:
            await chat.append(*history(HISTORY_MESSAGES))
            await chat.end()
        for chat in chats:
            taken += await _timed(turn_of(chat), turn_texts(few))
    return Sample("no observer at work", taken)


async def of_a_chat(folder: Path, count: int) -> Sample:
    """Turns of a `Chat` whose model answers at once, with recall for each."""
    url, reply = f"sqlite:///{folder / 'chat.db'}", turn_texts(1)[0][1]
    async with Memory.open(url, observer=ScriptedObserver()) as memory:
        conversation = memory.conversation("chat")
        await conversation.append(*history(RECALLED_MESSAGES))
        await conversation.end()
        chat = Chat(conversation, model=ScriptedModel(otherwise=reply))
        taken = await _timed(lambda user, _: chat.send(user), turn_texts(count))
    return Sample(f"a Chat with recall from {RECALLED_MESSAGES} messages", taken)


async def during_a_slow_call(folder: Path, count: int) -> Sample:
    """Turns of the conversation that an observer call of four seconds is about."""
    taken: list[Taken] = []
    for number in range(2):
        observer = SlowObserver()
        async with _open(folder / f"slow-{number}.db", observer) as memory:
            chat = memory.conversation("chat")
            await chat.append(*history(MESSAGES_TO_OBSERVE))
            async with asyncio.timeout(OBSERVER_SECONDS):
                await observer.called.wait()
            taken += await _timed(turn_of(chat), turn_texts(count // 2), until=observer.answered)
    return Sample("during an observer call of 4 s", taken)


async def during_embedded_work(folder: Path, count: int) -> Sample:
    """Turns of a conversation while the embedded observer works off what it is behind."""
    taken: list[Taken] = []
    number = 0
    while len(taken) < count:
        number += 1
        async with _open(folder / f"embedded-{number}.db", None) as memory:
            chat, done = memory.conversation("chat"), asyncio.Event()
            async with asyncio.TaskGroup() as group:
                await chat.append(*_backlog(number))
                group.create_task(_flush(chat, done))
                some = turn_texts(min(50, count - len(taken)))
                taken += await _timed(turn_of(chat), some, until=done)
    return Sample("while the embedded observer works on 30,000 tokens", taken)


def _open(path: Path, observer: Observer | None) -> AbstractAsyncContextManager[Memory]:
    return Memory.open(f"sqlite:///{path}", observer=observer, settings=QUICK_CLOSE)


class SlowObserver:
    """Answers after four seconds, as a model may."""

    def __init__(self) -> None:
        self.called = asyncio.Event()
        self.answered = asyncio.Event()
        self._notes = ScriptedObserver()

    async def observe(self, request: ObserveRequest) -> Draft:
        self.called.set()
        await asyncio.sleep(OBSERVER_SECONDS)
        self.answered.set()
        return await self._notes.observe(request)


async def _flush(chat: Conversation, done: asyncio.Event) -> None:
    await chat.flush()
    done.set()


def turn_of(chat: Conversation) -> TurnStep:
    async def turn(user: str, reply: str) -> None:
        await chat.append(Message.user(user))
        await chat.context(system="You are a helpful assistant.")
        await chat.append(Message.assistant(reply))

    return turn


async def _timed(
    turn: TurnStep, texts: Sequence[tuple[str, str]], *, until: asyncio.Event | None = None
) -> list[Taken]:
    """What each turn took, with a pause between two; ends when *until* is set."""
    taken: list[Taken] = []
    for user, reply in texts:
        if until is not None and until.is_set():
            break
        began, busy = time.perf_counter(), time.process_time()
        await turn(user, reply)
        wall, processor = time.perf_counter() - began, time.process_time() - busy
        taken.append(Taken(wall * 1_000, processor * 1_000))
        await asyncio.sleep(PAUSE_SECONDS)
    return taken


def turn_texts(count: int) -> list[tuple[str, str]]:
    source = random.Random(count)
    return [(prose(source, USER_CHARACTERS), prose(source, REPLY_CHARACTERS)) for _ in range(count)]


def history(count: int) -> list[Message]:
    pairs = turn_texts(count // 2)
    return [m for user, reply in pairs for m in (Message.user(user), Message.assistant(reply))]


def _backlog(seed: int) -> list[Message]:
    source = random.Random(seed)
    size = REPLY_CHARACTERS
    texts = [prose(source, size) for _ in range(BACKLOG_CHARACTERS // size)]
    return [
        Message.assistant(text) if place % 2 else Message.user(text)
        for place, text in enumerate(texts)
    ]


def main() -> None:
    """Print the figures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=300, help="turns in each situation")
    show(measure(count=parser.parse_args().count))


if __name__ == "__main__":
    main()
