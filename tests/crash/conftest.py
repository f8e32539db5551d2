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

    async def run(self, *, kill_after: tuple[int, float] | None = None, **order: object) -> Events:
        """What the processes told until they were done.

        *kill_after* is a number of events, and the seconds after the last one of them: that is
        when they are killed, and they must not be done by then.
        """
        self._stdin.write(json.dumps(order).encode() + b"\n")
        processes = json.loads(await self._stdout.readline())
        told: Events = []
        if kill_after is not None:
            events, seconds = kill_after
            assert await self._read(told, events=events), f"they were done too soon: {told[-3:]}"
            await self._read(told, seconds=seconds)
            for process in processes:
                os.kill(process, signal.SIGKILL)
        await self._read(told)
        return told

    async def _read(
        self, told: Events, *, events: int | None = None, seconds: float | None = None
    ) -> bool:
        """Take so many events, or those of so many seconds; false after the last one of all."""
        try:
            async with asyncio.timeout(seconds):
                while events is None or len(told) < events:
                    line = await self._stdout.readline()
                    assert line, "the server of the processes died"
                    if line == b"end\n":
                        return False
                    told.append(json.loads(line))
                    assert told[-1][0] != "failed", told[-1]
        except TimeoutError:
            pass
        return True


@pytest.fixture
async def run_processes() -> AsyncIterator[Callable[..., Awaitable[Events]]]:
    """`Server.run` of a server that ends with the test."""
    path = os.pathsep.join(sys.path)
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        CHILD,
        env={**os.environ, "PYTHONPATH": path},
        start_new_session=True,
        stdin=PIPE,
        stdout=PIPE,
    )
    assert process.stdin is not None
    assert process.stdout is not None
    yield Server(process.stdin, process.stdout).run
    os.killpg(process.pid, signal.SIGKILL)
    await process.wait()
