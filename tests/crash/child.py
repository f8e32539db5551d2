"""Processes that work on a store, may be killed at any time, and tell what was acknowledged.

`python child.py` warms up and then obeys each line of JSON on its standard input: it forks as many
processes as asked for, which do the named task on the file. It answers with their ids, passes on
what they tell, one JSON list a line, and says `end` when all are dead.
"""

import asyncio
import contextlib
import itertools
import json
import os
import random
import sys
from collections.abc import Awaitable, Callable, Coroutine
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Any, TypeAlias, TypeVar

from remanence import Memory, Policy, Settings
from remanence.cli.transcripts import open_transcript
from remanence.clock import SystemClock
from remanence.errors import StoreUnavailable
from remanence.protocols import Store
from remanence.stores import open_store
from remanence.testing import ScriptedObserver, ScriptedReflector
from remanence.types import ConversationRef, MemoryState, Message, Note, Segment

T = TypeVar("T")
Tell: TypeAlias = Callable[..., None]
Order: TypeAlias = dict[str, Any]  # path, task, processes, and what the task needs
Task: TypeAlias = Callable[[Store, Order, Tell], Coroutine[Any, Any, None]]

REFS = tuple(ConversationRef("default", name) for name in ("a", "b", "c"))


async def append_messages(store: Store, chance: random.Random, tell: Tell) -> None:
    """Append messages, one or several at a time; each names its append and its place in it."""
    while True:
        ref, count = chance.choice(REFS), chance.randint(1, 4)
        name = f"{chance.getrandbits(64):x}"
        texts = [f"{name} {place} {count}" for place in range(count)]
        messages = [Message.user(text).replace(tokens=len(text)) for text in texts]
        appended = await store.append(ref, messages, user=None)
        tell("appended", ref.id, {m.seq: m.text for m in appended.messages})


async def make_segments(store: Store, chance: random.Random, tell: Tell) -> None:
    """Observe, activate and reflect whatever there is."""
    clock = SystemClock()
    while True:
        ref = chance.choice(REFS)
        state = await store.state(ref)
        if state is None or state.observed_seq == state.last_seq:
            await asyncio.sleep(0)
            continue
        last = chance.randint(state.observed_seq + 1, state.last_seq)
        observation = _segment(clock, 0, state.observed_seq + 1, last)
        after = await store.commit_observation(state, observation)
        if after is not None:
            tell("observed", ref.id, observation.id, last)
            await _activate_and_reflect(store, after, clock, tell)


async def _activate_and_reflect(
    store: Store, state: MemoryState, clock: SystemClock, tell: Tell
) -> None:
    moved = await store.activate(
        state, active_seq=state.observed_seq, tail_seq=state.observed_seq + 1, at=clock.now()
    )
    if moved is None:
        return
    tell("activated", state.ref.id, moved.active_seq)
    live = [s for s in await store.segments(state.ref, live=True) if s.last_seq <= moved.active_seq]
    if len(live) < 4:
        return
    generation = max(segment.generation for segment in live) + 1
    reflection = _segment(clock, generation, live[0].first_seq, live[-1].last_seq)
    if await store.commit_reflection(moved, reflection, [segment.id for segment in live]):
        tell("reflected", state.ref.id, reflection.id, reflection.last_seq)


def _segment(clock: SystemClock, generation: int, first_seq: int, last_seq: int) -> Segment:
    text = f"what was said in {first_seq} to {last_seq}"
    return Segment(
        id=clock.new_id("seg"),
        generation=generation,
        first_seq=first_seq,
        last_seq=last_seq,
        text=text,
        notes=(Note(text=text, first_seq=first_seq, last_seq=last_seq),),
        tokens=len(text),
        source_tokens=0,
        sum_tokens=0,
        lost=(),
        made_by="crash/1",
        created_at=clock.now(),
    )


async def delete_now_and_then(store: Store, chance: random.Random, tell: Tell) -> None:
    """Erase conversation `c`, again and again."""
    while True:
        for _ in range(chance.randint(5, 30)):
            await store.state(REFS[2])
        tell("deleting", REFS[2].id)
        await store.delete(REFS[2])
        tell("deleted", REFS[2].id)


async def live(store: Store, order: Order, tell: Tell) -> None:
    """Do everything at once, for ever."""
    works = (append_messages, append_messages, make_segments, delete_now_and_then)
    async with asyncio.TaskGroup() as group:
        for number, work in enumerate(works):
            chance = random.Random(order["seed"] * 100 + number)
            group.create_task(work(store, chance, tell))


async def share(store: Store, order: Order, tell: Tell) -> None:
    """Append beside other processes, and observe what all of them appended."""
    own = ConversationRef("default", f"own-{order['process']}")
    async with asyncio.timeout(90), asyncio.TaskGroup() as group:
        for ref in (REFS[0], own):
            group.create_task(_append_some(store, ref, order))
        group.create_task(_observe_all(store, order, tell))


async def _append_some(store: Store, ref: ConversationRef, order: Order) -> None:
    for number in range(order["messages"]):
        id_ = f"{order['process']}-{number}"
        message = Message.user(f"text {number}", id=id_).replace(tokens=3)
        await _until_unlocked(partial(store.append, ref, [message], user=None))


async def _until_unlocked(work: Callable[[], Awaitable[T]]) -> T:
    """Do it again while others hold the file for longer than a process waits for it."""
    while True:
        with contextlib.suppress(StoreUnavailable):
            return await work()


async def _observe_all(store: Store, order: Order, tell: Tell) -> None:
    """Observe conversation `a` under a lease until every process has appended its messages."""
    clock, owner = SystemClock(), f"process {order['process']}"
    total = order["messages"] * order["processes"]
    while True:
        state = await store.state(REFS[0])
        if state is not None and state.observed_seq == total:
            return
        now = clock.now()
        until = now + timedelta(minutes=5)
        if state is None or not await _until_unlocked(
            partial(store.lease, state, owner=owner, now=now, until=until)
        ):
            await asyncio.sleep(0.002)
            continue
        state = await store.state(REFS[0])
        if state is not None and state.observed_seq < state.last_seq:
            tell("observing", REFS[0].id, state.observed_seq + 1)
            segment = _segment(clock, 0, state.observed_seq + 1, state.last_seq)
            if await _until_unlocked(partial(store.commit_observation, state, segment)):
                tell("observed", REFS[0].id, segment.id, segment.last_seq)
            await _until_unlocked(partial(store.release, state, owner=owner))


async def greet(store: Store, order: Order, tell: Tell) -> None:
    """Append one message to a conversation that others make at the same time."""
    await store.append(REFS[0], [Message.user(f"hello from {order['process']}")], user=None)


POLICY = Policy(
    observe_tokens=150,
    observe_max_tokens=400,
    note_ratio=1.0,
    tail_tokens=300,
    tail_keep_tokens=50,
    keep_last=2,
    reflect_tokens=(150, 200),
)


async def remember(order: Order, tell: Tell) -> None:
    """Hold a conversation with a memory; for ever, or for so many messages and then until all."""
    chance = random.Random(f"{order.get('seed')} {order['process']}")
    observer, reflector = ScriptedObserver(), ScriptedReflector()
    async with Memory.open(
        f"sqlite:///{order['path']}",
        policy=POLICY,
        observer=observer,
        reflector=reflector,
        settings=Settings(lease_seconds=order["lease_seconds"]),
    ) as memory:
        chat = memory.conversation("a", user="ana")
        numbers = range(order["messages"]) if "messages" in order else itertools.count()
        for number in numbers:
            text = f"{order['process']} {number} " + "and so on " * chance.randint(0, 8)
            stored = await chat.append(Message.user(text))
            tell("appended", "a", {stored[0].seq: text})
            if chance.random() < 0.3:
                await chat.context(system="You help.")
            if chance.random() < 0.1:
                await chat.flush()
        await chat.flush()
        tell("asked", "a", [request.messages[0].seq for request in observer.requests])


async def replay(order: Order, tell: Tell) -> None:
    """Append what the tape lacks of a transcript, look at the context after each, and end."""
    policy = getattr(Policy, order["preset"])(enabled=True)
    async with Memory.open(f"sqlite:///{order['path']}", policy=policy) as memory:
        chat = memory.conversation("a", user=order["user"], tenant=order["tenant"])
        done = (await chat.state()).last_seq
        for number, entry in enumerate(open_transcript(Path(order["transcript"])).entries(), 1):
            if number > done:
                (stored,) = await chat.append(entry.message)
                stats = (await chat.context(system="You help.")).stats
                tell("appended", stored.seq, stats.cross_session_tokens, stats.context_tokens)
        state = await chat.end()
        tell("ended", state.observed_seq, state.facts_seq)


TASKS: dict[str, Task] = {"live": live, "share": share, "greet": greet}


WITH_MEMORY = {"remember": remember, "replay": replay}


async def work(order: Order, tell: Tell) -> None:
    """Do the task that was ordered, with a memory or with its store alone."""
    if order["task"] in WITH_MEMORY:
        return await WITH_MEMORY[order["task"]](order, tell)
    store = await open_store(f"sqlite:///{order['path']}")
    await TASKS[order["task"]](store, order, tell)
    await store.close()
    return None


def fork(order: Order, reading: int, writing: int) -> int:
    """The id of a new process that obeys the order and tells about it on a pipe."""
    process = os.fork()
    if process:
        return process
    os.close(reading)  # so that it dies with the server instead of waiting for it

    def tell(*event: object) -> None:
        os.write(writing, json.dumps(event).encode() + b"\n")

    try:
        asyncio.run(work(order, tell))
    except Exception as error:  # noqa: BLE001 - the test says what is wrong with it
        tell("failed", repr(error))
    finally:
        os._exit(0)


def obey(order: Order) -> None:
    """Fork the processes and pass on what they tell until all are dead."""
    reading, writing = os.pipe()
    numbers = range(order["processes"])
    processes = [fork({**order, "process": number}, reading, writing) for number in numbers]
    os.close(writing)
    say(json.dumps(processes))
    with os.fdopen(reading) as told:
        for event in told:
            say(event.rstrip())
    for process in processes:
        os.waitpid(process, 0)
    say("end")


def say(line: str) -> None:
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


async def warm_up() -> None:
    """Have everything imported that a process needs."""
    async with Memory.open("sqlite:///:memory:") as memory:
        await memory.conversation("a").append(Message.user("Hello."))


if __name__ == "__main__":
    asyncio.run(warm_up())
    for line in sys.stdin:
        obey(json.loads(line))
