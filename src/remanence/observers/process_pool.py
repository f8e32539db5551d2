"""Processes in which the embedded observer, reflector and extractor compute."""

import asyncio
import dataclasses
import multiprocessing
import os
import signal
import threading
from collections.abc import Callable, Generator
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from typing import Final

from remanence import telemetry
from remanence.observers.learned.score import scorer
from remanence.pacing import at_once, compute_in_slices
from remanence.protocols import ObserveRequest, ReflectRequest, Request, Result
from remanence.tokens import counter_for

_NICENESS: Final = 10
"""A user waits for turns, so these processes get the processor time that turns leave."""


class ProcessPool:
    """A `Compute` in processes of its own, which start with the first requests.

    Where they break down, as when one is killed, a request is computed in this process, and the
    next ones in new processes. They end with this process, however it ends.
    """

    def __init__(self, processes: int, *, counter: str) -> None:
        self._processes = processes
        self._counter = counter
        self._executor = self._start()

    async def __call__(
        self, steps: Callable[[Request], Generator[None, None, Result]], request: Request
    ) -> Result:
        executor = self._executor
        try:
            # Starting a process takes a while, and must not block the event loop.
            future = await asyncio.to_thread(
                executor.submit, _compute, steps, _portable(request), self._counter
            )
            return await asyncio.wrap_future(future)
        except BrokenProcessPool as error:
            if executor is self._executor:
                telemetry.processes_broken(str(error))
                self._executor = self._start()
            return await compute_in_slices(steps, request)

    def close(self) -> None:
        """End the processes; requests in progress are given up."""
        self._executor.shutdown(wait=False, cancel_futures=True)

    def _start(self) -> ProcessPoolExecutor:
        context = multiprocessing.get_context("spawn")  # this process has threads
        return ProcessPoolExecutor(self._processes, mp_context=context, initializer=_set_up)


def _portable(request: Request) -> Request:
    """Return a request without the parts that another process cannot be sent."""
    if isinstance(request, ObserveRequest):
        return dataclasses.replace(request, count_tokens=len, live=None)
    if isinstance(request, ReflectRequest):
        return dataclasses.replace(request, count_tokens=len)
    return request


def _compute(
    steps: Callable[[Request], Generator[None, None, Result]], request: Request, counter: str
) -> Result:
    if isinstance(request, ObserveRequest | ReflectRequest):
        request = dataclasses.replace(request, count_tokens=counter_for(counter).text)
    return at_once(steps(request))


def _set_up() -> None:
    """Load the weights, leave signals and the processor to the parent, and end when that is gone."""
    if hasattr(os, "nice"):  # on Unix
        os.nice(_NICENESS)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_end_with_parent, daemon=True).start()
    scorer()


def _end_with_parent() -> None:
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)
