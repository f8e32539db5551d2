import asyncio
import json
import os
import signal
import sys
from asyncio.subprocess import PIPE
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any, TypeAlias

import pytest

CHILD = Path(__file__).with_name("child.py")

Events: TypeAlias = list[list[Any]]  # what a process told: its name, then what belongs to it


class Server:
    """The server of `child.py`, which forks processes that do a task on a file."""

    def __init__(self, stdin: asyncio.StreamWriter, stdout: asyncio.StreamReader) -> None:
        self._stdin = stdin
        self._stdout = stdout

    async def run(self, *, kill_after_seconds: float | None = None, **order: object) -> Events:
        """What the processes told until they were done, or killed before that."""
        self._stdin.write(json.dumps(order).encode() + b"\n")
        processes = json.loads(await self._stdout.readline())
        told: Events = []
        try:
            async with asyncio.timeout(kill_after_seconds):
                await self._read(told)
        except TimeoutError:
            for process in processes:
                os.kill(process, signal.SIGKILL)
            await self._read(told)
        else:
            assert kill_after_seconds is None, f"nobody was left to be killed: {told[-3:]}"
        return told

    async def _read(self, told: Events) -> None:
        while (line := await self._stdout.readline()) != b"end\n":
            assert line, "the server of the processes died"
            told.append(json.loads(line))


@pytest.fixture
async def run_processes() -> AsyncIterator[Callable[..., Awaitable[Events]]]:
    """`Server.run` of a server that ends with the test."""
    path = os.pathsep.join(sys.path)
    process = await asyncio.create_subprocess_exec(
        sys.executable, CHILD, env={**os.environ, "PYTHONPATH": path}, stdin=PIPE, stdout=PIPE
    )
    assert process.stdin is not None
    assert process.stdout is not None
    yield Server(process.stdin, process.stdout).run
    process.stdin.close()
    await process.wait()
