"""Processes that work on a database, and may be killed or stopped at any time.

`python chaos_worker.py URL FILE` warms up, forks a process for each line of its standard input, and
answers with its id. A line has the seconds by which the process's clock is ahead. Calls of models, and
what comes of them, are lines of FILE: the event, the process and the conversation.
"""

import asyncio
import importlib
import logging
import os
import random
import signal
import sys
from datetime import datetime, timedelta

from remanence import Memory, Policy, Settings
from remanence.clock import SystemClock
from remanence.errors import ModelError
from remanence.protocols import ObserveRequest, ReflectRequest
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
)


class ShiftedClock(SystemClock):
    """A machine's clock that is ahead by so many seconds."""

    def __init__(self, seconds: float) -> None:
        self._shift = timedelta(seconds=seconds)

    def machine_time(self) -> datetime:
        return super().machine_time() + self._shift


class Events(logging.Handler):
    """Writes events to a file; those of discarded results are taken from the log."""

    def __init__(self, file: int) -> None:
        super().__init__()
        self._file = file

    def write(self, event: str, conversation: str) -> None:
        os.write(self._file, f"{event} {os.getpid()} {conversation}\n".encode())

    def emit(self, record: logging.LogRecord) -> None:
        if "was discarded" in record.msg and isinstance(record.args, tuple):
            self.write("discard", str(record.args[1]))


class TiredObserver(ScriptedObserver):
    """Takes its time, and fails now and then."""

    def __init__(self, events: Events) -> None:
        super().__init__()
        self._events = events

    async def observe(self, request: ObserveRequest) -> Draft:
        self._events.write("call", request.conversation.id)
        await asyncio.sleep(0.1 * random.random())
        if random.random() < 0.1:
            self._events.write("failure", request.conversation.id)
            raise ModelError("overloaded", "busy")
        draft = await super().observe(request)
        self._events.write("answer", request.conversation.id)
        return draft


class CountedReflector(ScriptedReflector):
    def __init__(self, events: Events) -> None:
        super().__init__()
        self._events = events

    async def reflect(self, request: ReflectRequest) -> Draft:
        self._events.write("call", request.conversation.id)
        draft = await super().reflect(request)
        self._events.write("answer", request.conversation.id)
        return draft


async def work(url: str, file: int, ahead_seconds: float) -> None:
    shared = url.startswith("postgresql:")
    events = Events(file)
    log = logging.getLogger("remanence")
    log.setLevel(logging.INFO)
    log.addHandler(events)
    async with Memory.open(
        url,
        policy=POLICY,
        observer=TiredObserver(events),
        reflector=CountedReflector(events),
        clock=ShiftedClock(ahead_seconds),
        settings=Settings(
            engine="procrastinate" if shared else "local", workers=3, lease_seconds=LEASE_SECONDS
        ),
    ):
        await asyncio.Event().wait()


def fork(url: str, file: int, ahead_seconds: float) -> int:
    process = os.fork()
    if not process:
        random.seed()
        try:
            asyncio.run(work(url, file, ahead_seconds))
        finally:
            os._exit(1)
    return process


def main(url: str, path: str) -> None:
    if url.startswith("postgresql:"):
        importlib.import_module("remanence.engine.procrastinate")  # once, not in each process
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # the killed need no one who waits for them
    file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    for line in sys.stdin:
        os.write(1, b"%d\n" % fork(url, file, float(line)))


if __name__ == "__main__":
    main(*sys.argv[1:])
