from collections import Counter
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, TypeAlias

import pytest

from remanence.stores import open_store
from remanence.types import ConversationRef

MESSAGES = 40
SHARED = ConversationRef("default", "a")

Run: TypeAlias = Callable[..., Awaitable[list[list[Any]]]]


@pytest.mark.req("X-15")
@pytest.mark.timeout(120)
async def test_processes_may_open_a_new_file_at_once(tmp_path: Path, run_processes: Run) -> None:
    for number in range(20):
        path = tmp_path / f"memory-{number}.db"

        assert await run_processes(path=str(path), task="greet", processes=4) == []

        store = await open_store(f"sqlite:///{path}")
        greetings = await store.messages(SHARED, after=0, limit=None)
        assert sorted(greeting.text for greeting in greetings) == [
            f"hello from {process}" for process in range(4)
        ]
        await store.close()


@pytest.mark.req("L-30", "X-15")
@pytest.mark.timeout(120)
@pytest.mark.parametrize("processes", [2, 4])
async def test_processes_share_a_file_without_gap_or_double_work(
    tmp_path: Path, run_processes: Run, processes: int
) -> None:
    path = tmp_path / "memory.db"

    told = await run_processes(path=str(path), task="share", processes=processes, messages=MESSAGES)

    store = await open_store(f"sqlite:///{path}")
    assert await store.check() == ()
    shared = await store.messages(SHARED, after=0, limit=None)
    assert [message.seq for message in shared] == list(range(1, processes * MESSAGES + 1))
    texts = Counter(message.text for message in shared)
    assert texts == {f"text {number}": processes for number in range(MESSAGES)}
    for number in range(processes):
        own = await store.messages(ConversationRef("default", f"own-{number}"), after=0, limit=None)
        assert [message.text for message in own] == [f"text {number}" for number in range(MESSAGES)]

    segments = await store.segments(SHARED, live=True)
    observing = [first_seq for name, _, first_seq in (e for e in told if e[0] == "observing")]
    assert sorted(observing) == [segment.first_seq for segment in segments]
    assert segments[-1].last_seq == processes * MESSAGES
    await store.close()
