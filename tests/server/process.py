"""`remanence serve` as a process of its own."""

import asyncio
import os
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

import httpx2

KEY = "zz-test-0123456789abcdef"


@dataclass(kw_only=True)
class Service:
    """A running server: its process, a client of it, and the lines that it logged."""

    process: asyncio.subprocess.Process
    http: httpx2.AsyncClient
    log: list[str] = field(default_factory=list)

    async def end(self, number: int) -> int:
        """Send a signal and wait for the exit code."""
        self.process.send_signal(number)
        return await self.process.wait()

    async def read_log(self) -> None:
        """Take the lines of stderr until it is closed."""
        assert self.process.stderr is not None
        while line := await self.process.stderr.readline():
            self.log.append(line.decode().rstrip())


@asynccontextmanager
async def service(directory: Path, *options: str, **variables: str) -> AsyncIterator[Service]:
    """A server in *directory* on a free port; it is killed where it has not ended by itself."""
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "remanence", "serve", "--port", "0"),
        *("--db", "sqlite:///memory.db", *options),
        cwd=directory,
        env={**os.environ, "OPENAI_API_KEY": KEY, "ANTHROPIC_API_KEY": KEY, **variables},
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    assert process.stdout is not None
    try:
        async with asyncio.TaskGroup() as group:
            url = (await process.stdout.readline()).decode().split()[0]
            async with httpx2.AsyncClient(base_url=url, timeout=30, trust_env=False) as http:
                running = Service(process=process, http=http)
                group.create_task(running.read_log())
                try:
                    yield running
                finally:
                    if process.returncode is None:
                        process.kill()
                        await process.wait()
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
