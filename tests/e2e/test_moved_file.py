"""A database file that is removed or replaced while it is open is noticed by every call."""

import contextlib
import shutil
import sqlite3
from pathlib import Path

import pytest

from remanence import Memory, Message, Settings
from remanence.errors import StoreUnavailable

TOLD = "was removed or replaced while it was open"


@pytest.mark.parametrize("is_replaced", [False, True])
async def test_calls_on_a_moved_file_are_refused_until_it_is_back(
    tmp_path: Path, is_replaced: bool
) -> None:
    path, aside = tmp_path / "memory.db", tmp_path / "aside.db"
    async with Memory.open(f"sqlite:///{path}", settings=Settings(workers=0)) as memory:
        chat = memory.conversation("a")
        await chat.append(Message.user("before"))
        path.rename(aside)
        if is_replaced:
            shutil.copyfile(aside, path)

        for call in (chat.append(Message.user("into nothing")), chat.messages()):
            with pytest.raises(StoreUnavailable, match=TOLD):
                await call
        with pytest.raises(StoreUnavailable, match=TOLD):
            await memory.backup(tmp_path / "copy.db")
        (problem,) = await memory.check()
        (unready,) = await memory.unready()
        assert path.exists() == is_replaced
        aside.replace(path)
        await chat.append(Message.user("after"))

        texts = [message.text for message in await chat.messages()]

    assert TOLD in problem.what
    assert problem.remedy
    assert "restore a backup" not in problem.remedy
    assert TOLD in unready.detail
    assert str(path) not in unready.detail
    assert texts == ["before", "after"]


async def test_calls_are_refused_when_another_library_removes_the_log(tmp_path: Path) -> None:
    path = tmp_path / "memory.db"
    async with Memory.open(f"sqlite:///{path}", settings=Settings(workers=0)) as memory:
        chat = memory.conversation("a")
        (message,) = await chat.append(Message.user("before"))
        with contextlib.closing(sqlite3.connect(path)) as other:
            other.execute("SELECT count(*) FROM messages").fetchone()

        forgotten = chat.forget(str(message.id))
        for call in (chat.append(Message.user("unsafe")), chat.messages(), forgotten):
            with pytest.raises(StoreUnavailable, match=f"write-ahead log .*{TOLD}"):
                await call
        (problem,) = await memory.check()

    assert TOLD in problem.what
    assert problem.remedy.startswith("close all memories that use it")
    async with Memory.open(f"sqlite:///{path}") as memory:
        texts = [message.text for message in await memory.conversation("a").messages()]
    assert texts == ["before"]


async def test_a_read_only_memory_goes_on_with_what_it_opened(tmp_path: Path) -> None:
    path = tmp_path / "memory.db"
    async with Memory.open(f"sqlite:///{path}") as memory:
        await memory.conversation("a").append(Message.user("before"))

    async with Memory.open(f"sqlite:///{path}", read_only=True) as memory:
        path.unlink()
        (message,) = await memory.conversation("a").messages()
        with pytest.raises(StoreUnavailable, match="there is no database"):
            await memory.backup(tmp_path / "copy.db")

    assert message.text == "before"
