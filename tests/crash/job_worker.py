"""Processes that work on jobs in PostgreSQL, and may be killed or stopped at any time.

`python job_worker.py URL` warms up, forks a process for each line of its standard input, and answers
with its id.
"""

import asyncio
import importlib
import os
import random
import signal
import sys

from remanence import Memory, Policy, Settings
from remanence.errors import ModelError
from remanence.protocols import ObserveRequest
from remanence.testing import ScriptedObserver, ScriptedReflector
from remanence.types import Draft

LEASE_SECONDS = 1.0

POLICY = Policy(
    observe_tokens=150,
    observe_max_tokens=400,
    note_ratio=1.0,
    tail_tokens=300,
    tail_keep_tokens=50,
    keep_last=2,
    reflect_tokens=(150, 200),
    retry_seconds=0.05,
    retry_max_seconds=0.5,
)


class TiredObserver(ScriptedObserver):
    """Takes its time, and fails now and then."""

    async def observe(self, request: ObserveRequest) -> Draft:
        await asyncio.sleep(0.1 * random.random())
        if random.random() < 0.1:
            raise ModelError("overloaded", "busy")
        return await super().observe(request)


async def work(url: str) -> None:
    async with Memory.open(
        url,
        policy=POLICY,
        observer=TiredObserver(),
        reflector=ScriptedReflector(),
        settings=Settings(engine="procrastinate", workers=3, lease_seconds=LEASE_SECONDS),
    ):
        await asyncio.Event().wait()


def fork(url: str) -> int:
    process = os.fork()
    if not process:
        try:
            asyncio.run(work(url))
        finally:
            os._exit(1)
    return process


if __name__ == "__main__":
    importlib.import_module("remanence.engine.procrastinate")  # once, not in each process
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # the killed need no one who waits for them
    for _ in sys.stdin:
        os.write(1, b"%d\n" % fork(sys.argv[1]))
