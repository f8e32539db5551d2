"""What `Memory.open` refuses, and what it says to do instead."""

import asyncio
import subprocess
import sys
import threading
from dataclasses import replace
from pathlib import Path
from typing import Any

import anyio
import pytest
from tests.postgres import new_database

from remanence import Memory, Message, Policy
from remanence.errors import (
    InvalidArgument,
    InvalidMessage,
    InvalidPolicy,
    ModelError,
    RemanenceError,
    StoreUnavailable,
)
from remanence.settings import Settings
from remanence.stores import open_store
from remanence.testing import FaultyStore

IN_MEMORY = "sqlite:///:memory:"


@pytest.mark.parametrize(
    ("arguments", "kind", "told"),
    [
        ({"url": Path("x.db")}, StoreUnavailable, "write 'sqlite:///x.db'"),
        ({"url": object()}, InvalidArgument, "is neither a URL nor an open Store"),
        ({"url": "sqlite:///x.db?mode=ro"}, StoreUnavailable, "read_only=True opens"),
        ({"url": "sqlite:///x.db?immutable"}, StoreUnavailable, "leave them out"),
        ({"url": "sqlite:///:memory:?cache=shared"}, StoreUnavailable, "leave them out"),
        ({"url": "sqlite:/x.db"}, StoreUnavailable, "write 'sqlite:///x.db'"),
        ({"url": "/var/x.db"}, StoreUnavailable, "write 'sqlite:////var/x.db'"),
        ({"url": ""}, StoreUnavailable, "write 'sqlite:///memory.db'"),
        (
            {"url": "postgresql:///x", "settings": Settings(durability="normal")},
            InvalidArgument,
            "settings of SQLite",
        ),
        ({"settings": Settings(engine="procrastinate")}, InvalidPolicy, "needs a PostgreSQL"),
        ({"policy": "lango"}, InvalidPolicy, "policy='lango' is not a Policy"),
        ({"policy": {}}, InvalidPolicy, "policy={} is not a Policy"),
        ({"settings": {"workers": 1}}, InvalidPolicy, "use Settings"),
    ],
)
async def test_what_a_memory_cannot_be_opened_with_is_told_with_what_to_write(
    arguments: dict[str, Any], kind: type[RemanenceError], told: str
) -> None:
    with pytest.raises(kind, match=told):
        async with Memory.open(**{"url": IN_MEMORY, **arguments}):
            pass


async def test_a_memory_that_is_off_opens_no_model(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("ANTHROPIC_API_KEY", raising=False)
    off = Settings(url=IN_MEMORY, preset="lango", model="anthropic:claude-haiku-4-5")
    with_days = replace(off, daily_directory=str(tmp_path))

    async with Memory.open(settings=off) as memory:
        await memory.conversation("a").append(Message.user("Hello."))
        messages = await memory.conversation("a").messages()

    assert [message.text for message in messages] == ["Hello."]
    with pytest.raises(ModelError, match="ANTHROPIC_API_KEY"):  # it condenses the daily notes
        async with Memory.open(settings=with_days):
            pass


async def test_a_memory_reads_the_environment_only_with_a_settings_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "mine.toml"
    file.write_text(f"url = '{IN_MEMORY}'\n[policy]\nkeep_last = 7\ntail_tokens = 9_000\n")
    monkeypatch.setenv("REMANENCE_POLICY__TAIL_TOKENS", "7000")

    async with Memory.open(IN_MEMORY) as memory:
        assert memory.policy == Policy.default()
    async with Memory.open(settings=file) as memory:
        assert memory.policy == Policy.default(keep_last=7, tail_tokens=7_000)


@pytest.mark.parametrize("message", ["hi", {"role": "user", "content": "hi"}, None])
async def test_what_is_no_message_is_refused(message: Any) -> None:
    async with Memory.open(IN_MEMORY) as memory:
        with pytest.raises(InvalidMessage, match=r"not a message: use Message.user"):
            await memory.conversation("a").append(message)


async def test_a_type_of_fact_that_there_is_not_is_refused() -> None:
    async with Memory.open(IN_MEMORY) as memory:
        with pytest.raises(InvalidMessage, match="fact type 'foo' is unknown"):
            await memory.facts.save("Ana keeps bees", user="ana", type="foo")  # type: ignore[arg-type]


def test_a_memory_opened_before_a_fork_says_in_the_child_to_be_opened_there(
    tmp_path: Path,
) -> None:
    child = Path(__file__).with_name("fork_child.py")
    command = [sys.executable, "-W", "ignore", str(child), f"sqlite:///{tmp_path / 'memory.db'}"]

    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True)

    awaited, blocked, own, parent = done.stdout.splitlines()
    for line in (awaited, blocked):
        assert "close it before the fork, and open it in the child" in line
    assert (own, parent) == ("own 1", "parent went on")


def threads() -> set[threading.Thread]:
    return {t for t in threading.enumerate() if t.name.startswith("remanence")}


@pytest.mark.parametrize("steps", [1, 2, 3, 5, 8, 13, 50, 500])
async def test_an_opening_that_is_cancelled_half_way_leaves_no_thread_and_no_task(
    tmp_path: Path, steps: int
) -> None:
    of_others = threads()  # a test before may have left one behind that hangs
    opening = asyncio.ensure_future(opened(f"sqlite:///{tmp_path / 'memory.db'}"))
    for _ in range(steps):
        await asyncio.sleep(0)
    if opening.cancel():
        with pytest.raises(asyncio.CancelledError):
            await opening
    else:
        await (await opening).close()

    assert threads() <= of_others
    assert asyncio.all_tasks() == {asyncio.current_task()}


async def test_a_memory_leaves_no_thread_in_a_scope_that_cancels_at_every_await(
    tmp_path: Path,
) -> None:
    of_others = threads()
    with anyio.CancelScope() as scope:
        async with Memory.open(f"sqlite:///{tmp_path / 'memory.db'}"):
            scope.cancel()

    assert threads() <= of_others


@pytest.mark.postgres
async def test_an_opening_that_is_cancelled_leaves_no_connection(postgres: str) -> None:
    with new_database(postgres) as url:
        opening = asyncio.ensure_future(opened(url))
        await asyncio.sleep(0)
        opening.cancel()
        with pytest.raises(asyncio.CancelledError):
            await opening
        await asyncio.get_running_loop().shutdown_default_executor()  # it has opened all it opens

    assert [t.name for t in threading.enumerate() if t.name.startswith("pool-")] == []


async def opened(url: str) -> Memory:
    return await Memory.open(url)


async def test_the_repr_of_a_memory_and_a_conversation_names_them() -> None:
    async with Memory.open("sqlite:///:memory:") as memory:
        of_ana = memory.conversation("chat-7", user="ana")
        of_acme = memory.conversation("chat-7", tenant="acme")

    assert repr(memory) == "<Memory at 'sqlite:///:memory:'>"
    assert repr(of_ana) == "<Conversation 'chat-7' of user 'ana'>"
    assert repr(of_acme) == "<Conversation 'chat-7' of no user in tenant 'acme'>"


async def test_a_store_of_ones_own_is_opened_for_reading_by_itself() -> None:
    store = await open_store(IN_MEMORY)
    with pytest.raises(InvalidArgument, match=r"open_store\(url, read_only=True\)"):
        await Memory.open(store, read_only=True)
    await store.close()


async def test_a_memory_on_a_store_of_ones_own_leaves_it_open() -> None:
    store = FaultyStore(await open_store(IN_MEMORY))
    store.fail("append", StoreUnavailable("the disk is full"))
    async with Memory.open(store) as memory:
        chat = memory.conversation("a")
        with pytest.raises(StoreUnavailable, match="the disk is full"):
            await chat.append(Message.user("Hello."))
        await chat.append(Message.user("Hello."))
        problems = await memory.check()

    tape = await store.messages(chat.ref, after=0, limit=None)
    assert repr(memory) == "<Memory at 'FaultyStore'>"
    assert problems == ()
    assert [message.text for message in tape] == ["Hello."]
    await store.close()
