"""A process that works on a store until it is killed, and tells what was acknowledged.

A warmed-up server forks one child per life: `python child.py` reads a line of JSON with the
file's path and a seed from its standard input, forks, answers with the child's process id, and
then passes on what the child tells, one event a line. `end` stands for the child's death.
"""

import asyncio
import json
import os
import random
import sys
from collections.abc import Awaitable, Callable
from typing import TypeAlias

from remanence.clock import SystemClock
from remanence.protocols import Store
from remanence.stores import open_store
from remanence.types import ConversationRef, MemoryState, Message, Note, Segment

Tell: TypeAlias = Callable[..., None]
Task: TypeAlias = Callable[[Store, random.Random, Tell], Awaitable[None]]

REFS = tuple(ConversationRef("default", name) for name in ("a", "b", "c"))


async def append_messages(store: Store, chance: random.Random, tell: Tell) -> None:
    """Append numbered messages, one or several at a time."""
    while True:
        ref = chance.choice(REFS)
        texts = [f"text {chance.random()}" for _ in range(chance.randint(1, 4))]
        messages = [Message.user(text).replace(tokens=len(text)) for text in texts]
        appended = await store.append(ref, messages, user=None)
        tell("appended", ref.id, [(m.seq, m.text) for m in appended.messages])


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


TASKS: tuple[Task, ...] = (append_messages, append_messages, make_segments, delete_now_and_then)


async def live(path: str, seed: int, tell: Tell) -> None:
    """Do every task at once, for ever."""
    store = await open_store(f"sqlite:///{path}")
    tell("opened")
    async with asyncio.TaskGroup() as group:
        for number, task in enumerate(TASKS):
            group.create_task(task(store, random.Random(seed * 100 + number), tell))


def fork(path: str, seed: int) -> tuple[int, int]:
    """A child that lives, as its process id and the pipe on which it tells."""
    reading, writing = os.pipe()
    process = os.fork()
    if process:
        os.close(writing)
        return process, reading

    def tell(*event: object) -> None:
        os.write(writing, json.dumps(event).encode() + b"\n")

    try:
        asyncio.run(live(path, seed, tell))
    finally:
        os._exit(1)


def serve() -> None:
    """Fork a child for each line of standard input."""
    for line in sys.stdin:
        order = json.loads(line)
        process, reading = fork(order["path"], order["seed"])
        print(process, flush=True)
        with os.fdopen(reading) as told:
            for event in told:
                print(event, end="", flush=True)
        os.waitpid(process, 0)
        print("end", flush=True)


async def warm_up() -> None:
    """Have everything imported that a child needs."""
    store = await open_store("sqlite:///:memory:")
    await store.close()


if __name__ == "__main__":
    asyncio.run(warm_up())
    serve()
