"""Processes in which the embedded observer, reflector and extractor compute."""

import asyncio
import dataclasses
import multiprocessing
import os
import signal
import threading
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from typing import Final

from remanence import telemetry
from remanence.errors import ObservationRejected
from remanence.observers.learned.preload import load_files
from remanence.pacing import at_once
from remanence.protocols import ObserveRequest, ReflectRequest, Request, Result, Steps
from remanence.tokens import counter_for

_NICENESS: Final = 10
"""Without `SCHED_IDLE`."""


class ProcessPool:
    """A `Compute` in processes of its own, which start with the first requests.

    Where they break down, as when one is killed, each of their requests is tried once more, in a
    process of its own, and the next ones go to new processes. A request that ends that one, too,
    is rejected: this process never computes it. They end with this process, however it ends.

    The processes yield to all others. Once a request is cancelled, as by its time limit, the next
    ones go to processes that get a small share of a busy processor.
    """

    def __init__(self, processes: int, *, counter: str) -> None:
        self._processes = processes
        self._counter = counter
        self._yields = True
        self._executor = _start(processes, yields=True)
        # Where memory ran out, more processes than before would end each other.
        self._retries = asyncio.Semaphore(processes)

    async def __call__(self, steps: Steps[Request, Result], request: Request) -> Result:
        executor = self._executor
        try:
            return await self._run(executor, steps, request)
        except BrokenProcessPool as error:
            if executor is self._executor:
                telemetry.processes_broken(str(error))
                self._executor = _start(self._processes, yields=self._yields)
        except asyncio.CancelledError:
            if executor is self._executor and self._yields:
                self._yields = False
                # The other one ends with its last request, which may yet have to be submitted.
                self._executor = _start(self._processes, yields=False)
            raise
        async with self._retries:
            alone = _start(1, yields=self._yields)
            try:
                return await self._run(alone, steps, request)
            except BrokenProcessPool as error:
                raise ObservationRejected(
                    "process_ended",
                    "the process that computed the notes ended before it had them, twice: see if "
                    "the machine has enough memory, open the memory under `if __name__ == "
                    "'__main__'`, or set observer_processes to 0",
                ) from error
            finally:
                alone.shutdown(wait=False, cancel_futures=True)

    async def _run(
        self, executor: ProcessPoolExecutor, steps: Steps[Request, Result], request: Request
    ) -> Result:
        # Starting a process takes a while, and must not block the event loop.
        future = await asyncio.to_thread(
            _submit, executor, steps, _portable(request), self._counter
        )
        return await asyncio.wrap_future(future)

    def close(self) -> None:
        """End the processes; requests in progress are given up."""
        self._executor.shutdown(wait=False, cancel_futures=True)


def _start(processes: int, *, yields: bool) -> ProcessPoolExecutor:
    context = multiprocessing.get_context("spawn")  # this process has threads
    return ProcessPoolExecutor(
        processes, mp_context=context, initializer=_set_up, initargs=(yields,)
    )


def _submit(
    executor: ProcessPoolExecutor, steps: Steps[Request, Result], request: Request, counter: str
) -> Future[Result]:
    """Submit a request; a process that starts for it inherits that this thread blocks Ctrl-C."""
    if not hasattr(signal, "pthread_sigmask"):  # on Windows
        return executor.submit(_compute, steps, request, counter)
    previous = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        return executor.submit(_compute, steps, request, counter)
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, previous)


def _portable(request: Request) -> Request:
    """Return a request without the parts that another process cannot be sent."""
    if isinstance(request, ObserveRequest):
        request = dataclasses.replace(request, live=None)
    if isinstance(request, ObserveRequest | ReflectRequest):
        return dataclasses.replace(request, count_tokens=len)
    return request


def _compute(steps: Steps[Request, Result], request: Request, counter: str) -> Result:
    if isinstance(request, ObserveRequest | ReflectRequest):
        request = dataclasses.replace(request, count_tokens=counter_for(counter).text)
    return at_once(steps(request))


def _set_up(yields: bool) -> None:  # noqa: FBT001 - passed by position
    """Load all files, leave signals and the processor to the parent, and end when that is gone."""
    _leave_processors(yields=yields)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_end_with_parent, daemon=True).start()
    load_files()


def _leave_processors(*, yields: bool) -> None:
    """Let turns go first, since a user waits for them.

    With *yields*, a thread that wakes replaces this process, which gets hardly any time while other
    programs keep all its processors busy, and has no right to change that later.
    """
    try:
        if yields:
            os.sched_setscheduler(0, os.SCHED_IDLE, os.sched_param(0))
            return
    except (AttributeError, OSError):  # not on Linux, or a sandbox forbids it
        pass
    if hasattr(os, "nice"):
        os.nice(_NICENESS)


def _end_with_parent() -> None:
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)
