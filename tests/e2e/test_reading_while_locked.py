"""Contexts and searches need no lock: a file that cannot be written can be read all the same."""

from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path

import apsw
import pytest

from remanence import Conversation, Memory, Message, Policy, Settings
from remanence.background import Background
from remanence.errors import StoreUnavailable
from remanence.runtime import Runtime
from remanence.stores import open_store
from remanence.testing import FixedClock

POLICY = Policy(
    observe_tokens=400,
    observe_max_tokens=800,
    tail_tokens=8_000,
    tail_keep_tokens=100,
    keep_last=2,
)
WORDS = "seven brave sailors crossed a quiet bay before the morning bell rang twice"


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """While another process would be writing to the file."""
    rival = apsw.Connection(str(path))
    rival.set_busy_timeout(5_000)
    rival.execute("BEGIN IMMEDIATE")
    try:
        yield
    finally:
        rival.close()


@asynccontextmanager
async def observed_chat(path: Path, clock: FixedClock) -> AsyncIterator[Conversation]:
    """A conversation with notes that are ready, and activated by the next context after a pause."""
    async with Memory.open(f"sqlite:///{path}", policy=POLICY, clock=clock) as memory:
        chat = memory.conversation("a", user="ana")
        await memory.facts.save("Ana lives in Lisbon", user="ana")
        for number in range(40):
            await chat.append(Message.user(f"{number} {WORDS}"), Message.assistant("ok"))
        await chat.flush()
        clock.advance(7_200)
        yield chat


@asynccontextmanager
async def full(path: Path, clock: FixedClock) -> AsyncIterator[Memory]:
    """The memory of a file that cannot grow."""
    store = await open_store(f"sqlite:///{path}", clock=clock, pragmas={"max_page_count": 1})
    async with Background() as background:
        runtime = Runtime(
            store,
            settings=Settings(workers=0),
            policy=POLICY,
            clock=clock,
            background=background,
        )
        runtime.start()
        yield Memory(runtime)
        await runtime.stop()
    await store.close()


async def test_a_context_is_made_of_a_file_that_another_process_has_locked(tmp_path: Path) -> None:
    clock, path = FixedClock(), tmp_path / "memory.db"
    async with observed_chat(path, clock) as chat:
        before = await chat.state()
        with locked(path):
            context = await chat.context(recall="brave sailors")
            again = await chat.context()
        # What was asked for under the lock may be written only now, beside the next context.
        while not (await chat.state()).active_seq:
            await chat.context()
        after = await chat.context()

    assert before.observed_seq > before.active_seq == 0
    assert [message.seq for message in context.messages] == list(range(1, 81))
    assert "Ana lives in Lisbon" in context.to_text()
    assert again.system[: len(context.system)] == context.system
    assert after.stats.first_raw_seq > 1


async def test_a_search_of_a_locked_file_finds_what_the_index_has_not(tmp_path: Path) -> None:
    path = tmp_path / "memory.db"
    async with Memory.open(f"sqlite:///{path}", policy=POLICY) as memory:
        chat = memory.conversation("a")
        await chat.append(Message.user("The locker code is 4471."))
        await chat.append(Message.user("Lockers are in the basement."), Message.user("code, code"))
        await chat.append(Message.user("Locker code: never say it.", kind="control"))
        with locked(path):
            hits = await chat.recall("locker code", limit=3)
            none = await chat.recall("aardvark")
        indexed = await chat.recall("locker code", limit=3)

    assert hits[0].first_seq == 1
    assert {hit.first_seq for hit in hits} == {hit.first_seq for hit in indexed} == {1, 2, 3}
    assert none == ()


async def test_a_file_without_room_is_read_and_what_cannot_be_written_is_refused(
    tmp_path: Path,
) -> None:
    clock, path = FixedClock(), tmp_path / "memory.db"
    async with observed_chat(path, clock) as chat:
        await chat.append(Message.user("The locker code is 4471."))
    async with full(path, clock) as memory:
        chat = memory.conversation("a", user="ana")
        with pytest.raises(StoreUnavailable, match="no space is left"):
            await chat.append(Message.user(WORDS * 1_000))
        context = await chat.context(recall="locker")
        hits = await chat.recall("locker")

    assert context.messages[-1].text == "The locker code is 4471."
    assert "4471" in hits[0].snippet
