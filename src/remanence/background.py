"""Background tasks of an open memory, owned by one task group."""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from functools import partial
from typing import Any, NamedTuple, Self, TypeVar
from weakref import WeakSet

from remanence import telemetry
from remanence.errors import Closed, ModelError, RemanenceError, StoreUnavailable

T = TypeVar("T")

FIRST_PAUSE_SECONDS = 0.1
MAX_PAUSE_SECONDS = 60.0
CANCEL_AGAIN_SECONDS = 2.5
PATIENCE_SECONDS = 0.25
"""Seconds that a reader waits: enough for commits to a slow disk, too short to wait out a lock."""


class Background:
    """Owns all background tasks of an open memory, and restarts tasks that fail.

    The task group lives in its own task, so that the host's errors are not wrapped in an exception
    group, and any task may close the memory. If a task ends by an error, or is cancelled by others,
    all end: `failure` then says why, until then it is empty.
    """

    def __init__(self) -> None:
        self.failure = ""
        self._on_failure: list[Callable[[Exception], None]] = []
        self._tasks: set[asyncio.Task[None]] = set()
        self._steps: dict[asyncio.Task[Any], str] = {}
        self._ending: WeakSet[asyncio.Task[Any]] = WeakSet()
        self._left: WeakSet[asyncio.Task[Any]] = WeakSet()
        self._ends = False
        self._group = asyncio.TaskGroup()
        self._open = asyncio.Event()
        self._owner: asyncio.Task[None] | None = None

    async def __aenter__(self) -> Self:
        self._owner = asyncio.create_task(self._own(), name="remanence")
        try:
            await self._open.wait()
        except BaseException:  # this was cancelled
            await self._end()
            raise
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._end()

    async def _end(self) -> None:
        """Cancel the remaining tasks and wait until all have ended, apart from those left behind."""
        if self._owner is None:
            return
        self._ends = True
        try:
            await self.stop(*self._tasks)
        finally:
            self._owner.cancel()
        if all(task.done() for task in self._left):
            await wait_for_end(self._owner)

    def on_failure(self, fail: Callable[[Exception], None]) -> None:
        """Have *fail* called with the error for calls that wait, should the tasks end too early."""
        self._on_failure.append(fail)

    def require_running(self) -> None:
        """Raise `Closed` if the tasks have failed, as a call would wait for them for ever."""
        if self.failure:
            raise Closed(f"{self.failure}: close the memory and open it again")

    def require_loop(self) -> None:
        """Raise `Closed` in another event loop, where no caller that waits would be woken."""
        try:
            loop = asyncio.get_running_loop()
        except RuntimeError:  # a method that waits for nothing
            return
        if self._owner is not None and self._owner.get_loop() is not loop:
            raise Closed(
                "the memory was opened in another event loop: open it in this one, or use "
                "blocking.Memory, which any thread may call"
            )

    def spawn(self, name: str, work: Callable[[], Awaitable[None]]) -> asyncio.Task[None]:
        """Run *work* until it returns; after an error, log it, pause and restart."""
        return self.run(name, self._repeat(name, work))

    def run(self, name: str, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        """Run *work* once; it must not raise.

        Raises:
            Closed: the tasks have been ended, as a memory may be closed while a call begins.
        """
        if self._ends:  # though the group is still open
            work.close()
            raise closed_error()
        try:
            task = self._group.create_task(work, name=f"remanence-{name}")
        except RuntimeError as error:  # the group is finished or shutting down
            work.close()
            self.require_running()
            raise closed_error() from error
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        task.add_done_callback(partial(self._notice_end, name))
        return task

    @contextmanager
    def doing(self, step: str) -> Iterator[None]:
        """Name what the current task does in the block, for the log should it never end."""
        task = asyncio.current_task()
        assert task is not None
        self._steps[task] = step
        try:
            yield
        finally:
            self._steps.pop(task, None)

    def cancel(self, task: asyncio.Task[None]) -> None:
        """Cancel a task that is to end before the others."""
        self._ending.add(task)
        task.cancel()

    async def stop(self, *tasks: asyncio.Task[None]) -> None:
        """Cancel tasks, if need be twice, and wait for their end.

        In Python 3.11 a task may lose a cancellation. One that swallows both is logged, and left
        behind after twice `CANCEL_AGAIN_SECONDS`.
        """
        pending = {task for task in tasks if task not in self._left}
        for task in pending - set(self._ending):
            self.cancel(task)
        if pending:
            _, pending = await asyncio.wait(pending, timeout=CANCEL_AGAIN_SECONDS)
        for task in pending:
            task.cancel()
        if pending:
            _, pending = await asyncio.wait(pending, timeout=CANCEL_AGAIN_SECONDS)
        for task in pending:
            self._left.add(task)
            telemetry.task_left(self._steps.get(task, task.get_name()))

    async def _own(self) -> None:
        try:
            async with self._group:
                self._open.set()
                await asyncio.Event().wait()  # until this task is cancelled
        except asyncio.CancelledError:
            raise
        except BaseException:  # noqa: BLE001 - the error of a task, which `_notice_end` has logged
            return

    def _notice_end(self, name: str, task: asyncio.Task[None]) -> None:
        """End all tasks, and fail the calls that wait for them, if *task* was not to end."""
        error = asyncio.CancelledError() if task.cancelled() else task.exception()
        is_due = task.cancelled() and (self._ends or task in self._ending)
        if error is None or is_due or self.failure:
            return
        self.failure = f"background work has stopped after {type(error).__name__} in {name!r}"
        all_end = task.cancelled() and self._owner is not None and self._owner.cancelling() > 0
        if not all_end:  # as where the event loop ends, and the memory with it
            telemetry.background_stopped(self.failure, error)
        for fail in self._on_failure:
            fail(Closed(f"{self.failure}: close the memory and open it again"))
        if self._owner is not None:
            self._owner.cancel()

    async def _repeat(self, name: str, work: Callable[[], Awaitable[None]]) -> None:
        pauses, loop = Pauses(), asyncio.get_running_loop()
        while True:
            began = loop.time()
            try:
                with part_of(self), guard_host_code():
                    return await work()
            except Exception as error:  # noqa: BLE001 - what is due next time must be done all the same
                if loop.is_closed():  # and this is destroyed with it
                    return None
                worked_seconds = loop.time() - began
                await asyncio.sleep(pauses.after(name, error, worked_seconds=worked_seconds))


class _Works(NamedTuple):
    """The works that a task is part of; tasks that it starts are not, unless `part_of_parent`."""

    task: asyncio.Task[Any] | None = None
    works: tuple[object, ...] = ()


_NO_WORKS = _Works()
_works: ContextVar[_Works] = ContextVar("works", default=_NO_WORKS)


@contextmanager
def part_of(*works: object) -> Iterator[None]:
    """Mark the block as part of *works*, for `is_part_of`."""
    outer, task = _works.get(), asyncio.current_task()
    token = _works.set(_Works(task, (*(outer.works if outer.task is task else ()), *works)))
    try:
        yield
    finally:
        with suppress(ValueError):  # a task of a closed loop is destroyed in another context
            _works.reset(token)


@contextmanager
def part_of_parent() -> Iterator[None]:
    """Mark the block, in a new task, as part of the works of the task that awaits it."""
    with part_of(*_works.get().works):
        yield


def is_part_of(work: object) -> bool:
    """Return whether *work* waits for the caller, and would for ever if the caller waited for it."""
    task, works = _works.get()
    return task is asyncio.current_task() and work in works


@contextmanager
def guard_host_code() -> Iterator[None]:
    """Raise an `Exception` for any error of the host's code in the block that is none.

    It may await something that was cancelled elsewhere, such as a shared request, which raises
    `ModelError`, or raise an error of its own, such as a panic in Rust, which raises `RuntimeError`.
    Either would end a background task. A cancellation of this task passes, as do errors that end
    the program or close a generator.
    """
    try:
        yield
    except (Exception, KeyboardInterrupt, SystemExit, GeneratorExit):
        raise
    except asyncio.CancelledError as error:
        task = asyncio.current_task()
        if task is None or task.cancelling():
            raise
        raise ModelError("cancelled", "a task that the call waited for was cancelled") from error
    except BaseException as error:
        raise RuntimeError(f"{type(error).__name__}: {error}") from error


async def wait_for_end(task: asyncio.Task[None], *, seconds: float = CANCEL_AGAIN_SECONDS) -> None:
    """Wait for a cancelled task to end, cancelling it again at intervals of *seconds*.

    In Python 3.11, `asyncio.wait_for`, which connection pools use, may lose a cancellation.
    """
    while not task.done():
        _, unfinished = await asyncio.wait({task}, timeout=seconds)
        if unfinished:
            task.cancel()


class Pauses:
    """Exponential backoff: pauses that double with each failure in a row."""

    def __init__(self) -> None:
        self._failures = 0
        self._last_seconds = 0.0

    def after(self, name: str, error: Exception, *, worked_seconds: float = 0.0) -> float:
        """Log a failure, and return the seconds to wait before the next attempt.

        If the work succeeded for longer than the last pause, the pauses start short again.
        """
        if worked_seconds > self._last_seconds:
            self.reset()
        self._failures += 1
        exponent = min(self._failures - 1, 30)
        seconds = min(FIRST_PAUSE_SECONDS * 2.0**exponent, MAX_PAUSE_SECONDS)
        telemetry.background_failed(
            name, type(error).__name__, _reason(error), self._failures, retry_seconds=seconds
        )
        self._last_seconds = seconds
        return seconds

    def reset(self) -> None:
        """Reset to the shortest pause."""
        self._failures = 0


def _reason(error: Exception) -> str:
    """Return an error's text on one line, with its cause unless the error is one of ours."""
    text, cause = " ".join(str(error).split()), error.__cause__
    if cause is None or isinstance(error, RemanenceError):  # our texts include what may be told
        return text
    return f"{text} ({type(cause).__name__}: {' '.join(str(cause).split())})"


class Waiters:
    """Calls waiting for an event."""

    def __init__(self) -> None:
        self._futures: list[asyncio.Future[None]] = []

    def __bool__(self) -> bool:
        """Return whether any call is still waiting, apart from cancelled ones."""
        return not all(future.done() for future in self._futures)

    def add(self) -> asyncio.Future[None]:
        """Return a future for one waiting call."""
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._futures.append(future)
        return future

    def settle(self, error: Exception | None = None) -> None:
        """Resolve all waiting calls, or raise *error* in them."""
        futures, self._futures = self._futures, []
        for future in futures:
            if future.done():
                continue
            if error is None:
                future.set_result(None)
            else:
                future.set_exception(error)


def closed_error() -> Closed:
    """Return the error for a call that waited for background work when the memory was closed."""
    return Closed(
        "the memory was closed before this was done: open it again to do the remaining work"
    )


def start_beside(work: Coroutine[Any, Any, T], *, name: str) -> asyncio.Task[T]:
    """Start *work* as a task beside a call, which must cancel or await it."""
    return asyncio.create_task(work, name=name)


async def finish(task: asyncio.Task[T]) -> T:
    """Return the result of a task, which ends even if the caller is cancelled, however often.

    A cancellation is raised after the end, also of a failed task, as whoever handles its error would
    go on. A cancelled scope of anyio cancels at every await.
    """
    cancellation: asyncio.CancelledError | None = None
    while not task.done():
        try:
            await asyncio.wait({task})
        except asyncio.CancelledError as error:
            cancellation = error
    if cancellation is not None:
        raise cancellation from (None if task.cancelled() else task.exception())
    return task.result()


async def write_if_possible(write: Awaitable[T]) -> T | None:
    """Return the result of *write*; None if the store cannot be written now.

    A write that takes too long is abandoned, or completes later without the reader.
    """
    try:
        async with asyncio.timeout(PATIENCE_SECONDS):
            return await write
    except (StoreUnavailable, TimeoutError):
        return None
