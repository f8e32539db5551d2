"""A memory that is opened to be read changes no file."""

from collections.abc import Awaitable, Callable
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import apsw
import pytest

from remanence import Conversation, Event, Memory, Message, Settings
from remanence.errors import StoreUnavailable
from remanence.types import Usage

CALL = Usage(
    conversation=None,
    user=None,
    purpose="chat",
    model="speaker",
    input_tokens=1_000,
    output_tokens=10,
    cache_read_tokens=0,
    cache_write_tokens=0,
    cost_usd=0.1,
    duration_seconds=1.0,
    outcome="ok",
    at=datetime(2026, 5, 1, tzinfo=UTC),
)


async def take(event: Event) -> None:
    raise AssertionError(f"event {event.id} was sent, and nobody can keep that it was")


WRITES: dict[str, Callable[[Memory, Conversation], Awaitable[Any]]] = {
    "append": lambda memory, chat: chat.append(Message.user("Hello.")),
    "end": lambda memory, chat: chat.end(),
    "forget": lambda memory, chat: chat.forget("m1"),
    "delete": lambda memory, chat: chat.delete(),
    "record_call": lambda memory, chat: chat.record_call(CALL),
    "save": lambda memory, chat: memory.facts.save("Ana likes tea", user="ana"),
    "note": lambda memory, chat: memory.note("Ana called", user="ana"),
    "consolidate": lambda memory, chat: memory.consolidate(),
    "forget_user": lambda memory, chat: memory.forget_user("ana"),
    "deliver_events": lambda memory, chat: memory.deliver_events("me", take),
}


def files(folder: Path) -> dict[str, bytes]:
    return {str(file): file.read_bytes() for file in folder.rglob("*") if file.is_file()}


@pytest.mark.parametrize("write", WRITES)
async def test_what_would_write_is_refused_and_leaves_notes_blocks_and_tape(
    tmp_path: Path, write: str
) -> None:
    url = f"sqlite:///{tmp_path / 'memory.db'}"
    days, blocks = str(tmp_path / "days"), str(tmp_path / "blocks")
    settings = Settings(daily_directory=days, blocks_directory=blocks, daily_keep_days=0)
    async with Memory.open(url, settings=settings) as memory:
        chat = memory.conversation("a", user="ana")
        await chat.append(Message.user("I live in Lisbon.", id="m1"))
        await chat.end()
        await memory.note("Ana called", user="ana")
    before = files(tmp_path)

    async with Memory.open(url, settings=settings, read_only=True) as memory:
        chat = memory.conversation("a", user="ana")
        with pytest.raises(StoreUnavailable, match="read_only=True"):
            await WRITES[write](memory, chat)
        assert (await chat.context()).messages

    assert files(tmp_path) == before


async def test_a_memory_without_a_file_refuses_writes_too() -> None:
    async with Memory.open("sqlite:///:memory:", read_only=True) as memory:
        chat = memory.conversation("a", user="ana")
        with pytest.raises(StoreUnavailable, match="read_only=True"):
            await chat.append(Message.user("Hello."))

        assert await memory.conversations() == ()


def empty_index(path: Path) -> None:
    """Leave the file as after an import whose process ended before it could index."""
    with closing(apsw.Connection(str(path))) as connection:
        connection.execute("UPDATE states SET indexed_seq = 0")
        connection.execute("INSERT INTO text_index (text_index) VALUES ('delete-all')")


async def test_recall_finds_each_message_that_the_index_lacks(tmp_path: Path) -> None:
    path = tmp_path / "memory.db"
    async with Memory.open(f"sqlite:///{path}") as memory:
        await memory.conversation("a").append(*[Message.user(f"zed{n}") for n in range(1_500)])
    empty_index(path)

    async with Memory.open(f"sqlite:///{path}", read_only=True) as memory:
        chat = memory.conversation("a")
        found = [(await chat.recall(f"zed{n}", limit=3))[0].first_seq for n in (0, 300, 1_499)]

    assert found == [1, 301, 1_500]


async def test_recall_finds_nothing_that_another_process_has_forgotten(tmp_path: Path) -> None:
    path = tmp_path / "memory.db"
    async with Memory.open(f"sqlite:///{path}") as memory:
        for number in range(3):
            await memory.conversation("a").append(Message.user(f"zed {number}", id=f"m{number}"))

    async with Memory.open(f"sqlite:///{path}", read_only=True) as reader:
        chat = reader.conversation("a")
        before = await chat.recall("zed")
        async with Memory.open(f"sqlite:///{path}") as memory:
            await memory.conversation("a").forget("m1")
        after = await chat.recall("zed")

    assert {hit.first_seq for hit in before} == {1, 2, 3}
    assert {hit.first_seq for hit in after} == {1, 3}
