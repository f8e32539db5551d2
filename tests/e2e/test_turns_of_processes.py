"""Turns of one conversation never mix between processes of the operating system."""

import json
import sys
from asyncio import create_subprocess_exec, timeout
from asyncio.subprocess import PIPE, Process
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from remanence import Memory

CHILD = Path(__file__).with_name("turn_child.py")


class Talker:
    """A process with one turn; its model answers when it may."""

    def __init__(self, process: Process) -> None:
        self.process = process

    async def says(self) -> list[Any]:
        assert self.process.stdout is not None
        line = await self.process.stdout.readline()
        told: list[Any] = json.loads(line)
        return told

    def let_answer(self) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(b"\n")


@asynccontextmanager
async def talker(
    file: Path, text: str, *, wait_seconds: float = 60, lease_seconds: float = 60
) -> AsyncIterator[Talker]:
    command = (sys.executable, CHILD, file, text, str(wait_seconds), str(lease_seconds))
    process = await create_subprocess_exec(*command, stdin=PIPE, stdout=PIPE)
    try:
        yield Talker(process)
    finally:
        if process.returncode is None:
            process.kill()
        await process.wait()


async def texts(file: Path) -> list[str]:
    async with Memory.open(f"sqlite:///{file}", read_only=True) as memory:
        return [message.text for message in await memory.conversation("trip").messages()]


async def test_a_turn_waits_for_that_of_another_process(tmp_path: Path) -> None:
    file = tmp_path / "memory.db"
    async with timeout(60), talker(file, "Which gate?") as first:
        assert await first.says() == ["begins"]
        assert (await first.says())[0] == "asked"
        async with talker(file, "Impatient.", wait_seconds=0) as impatient:
            assert [await impatient.says(), await impatient.says()] == [["begins"], ["taken"]]
        async with talker(file, "And when?") as second:
            assert await second.says() == ["begins"]
            first.let_answer()
            asked, prompt = await second.says()
            second.let_answer()
            assert await first.says() == ["answered"]
            assert await second.says() == ["answered"]

    assert asked == "asked"
    assert "Gate B42." in prompt
    assert await texts(file) == ["Which gate?", "Gate B42.", "And when?", "Gate B42."]


async def test_a_turn_of_a_killed_process_ends_with_its_lease(tmp_path: Path) -> None:
    file = tmp_path / "memory.db"
    async with timeout(60), talker(file, "Which gate?", lease_seconds=1) as first:
        assert await first.says() == ["begins"]
        assert (await first.says())[0] == "asked"
        async with talker(file, "Which gate?", lease_seconds=1) as second:
            assert await second.says() == ["begins"]
            first.process.kill()
            assert (await second.says())[0] == "asked"
            second.let_answer()
            assert await second.says() == ["answered"]

    assert await texts(file) == ["Which gate?", "Gate B42."]
