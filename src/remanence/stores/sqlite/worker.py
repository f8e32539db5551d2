"""A thread that owns a connection and serves a queue of jobs."""

import asyncio
import contextlib
import queue
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any, TypeAlias, TypeVar

from remanence.errors import Closed
from remanence.process import OwnProcess
from remanence.stores.sqlite.errors import translate_error
from remanence.stores.sqlite.fts import Connection

T = TypeVar("T")
Work: TypeAlias = Callable[[Connection], T]

_MAX_JOBS = 512  # per transaction; limits how long the first job waits
_QUIET_SECONDS = 0.01  # without a job before an idle step, which would delay the next one


@dataclass(slots=True, eq=False)
class _Job:
    """A function, which may run again after a rollback, and the future of its result."""

    work: Work[Any]  # of any type, as is the future
    future: asyncio.Future[Any]
    alone: bool
    result: object = None
    error: Exception | None = None


class Worker:
    """Runs queued jobs in order.

    With *writes*, all waiting jobs share one transaction, and so one sync to disk; otherwise each
    job gets its own snapshot of the database. *require_file* is called before each. While no job
    waits, *idle* is called until it returns false.
    """

    def __init__(
        self,
        name: str,
        *,
        path: str,
        connect: Callable[[], Connection],
        writes: bool,
        require_file: Callable[[], None] = lambda: None,
        idle: Work[bool] | None = None,
    ) -> None:
        self._path = path
        self._connect = connect
        self._writes = writes
        self._require_file = require_file
        self._idle = idle
        self._jobs: queue.SimpleQueue[_Job | None] = queue.SimpleQueue()
        self._closed = False
        self._process = OwnProcess()
        self._thread = threading.Thread(target=self._run, name=f"remanence-{name}", daemon=True)

    async def start(self) -> None:
        """Start the thread and open the connection.

        An error of opening is raised here; after it, or a cancellation, the thread ends.
        """
        opened = self.submit(lambda _: None, alone=True)
        self._thread.start()
        try:
            await opened
        except BaseException:
            await self.close()
            raise

    def require_open(self) -> None:
        """Raise `Closed` after `close`, and in a forked child process."""
        self._process.require_this()
        if self._closed:
            raise self._closed_error()

    def submit(self, work: Work[T], *, alone: bool = False) -> asyncio.Future[T]:
        """Queue *work*, which runs completely or not at all if its future is cancelled.

        With *alone*, it runs once and outside of a transaction.
        """
        self.require_open()
        future: asyncio.Future[T] = asyncio.get_running_loop().create_future()
        self._jobs.put(_Job(work, future, alone))
        return future

    async def close(self) -> None:
        """Finish the queued jobs and close the connection. Closing twice does nothing."""
        if not self._closed and self._process.is_this:
            self._closed = True
            self._jobs.put(None)
            await asyncio.to_thread(self._thread.join)

    def _closed_error(self) -> Closed:
        return Closed("the store was closed: open it again")

    def _run(self) -> None:
        try:
            self._require_file()
            connection = self._connect()
        except Exception as error:  # noqa: BLE001 - handed to the task that waits for it
            self._refuse(error)
            return
        try:
            closing = False
            while not closing:
                jobs, closing = self._take(connection)
                connection = self._renew(connection, jobs)
                for alone, together in groupby(jobs, key=lambda job: job.alone):
                    batch = list(together)
                    serve = self._commit if self._writes and not alone else self._serve_each
                    serve(connection, batch)
                    _resolve(batch)
        finally:
            self._refuse(self._closed_error())
            connection.close()

    def _take(self, connection: Connection) -> tuple[list[_Job], bool]:
        """Return the waiting jobs, and whether to close the connection after them."""
        taken = [self._next(connection)]
        while taken[-1] is not None and len(taken) < _MAX_JOBS and not self._jobs.empty():
            taken.append(self._jobs.get())
        jobs = [job for job in taken if job is not None and not job.future.cancelled()]
        return jobs, taken[-1] is None

    def _renew(self, connection: Connection, jobs: list[_Job]) -> Connection:
        """Return another connection if this one is stale; without one or its file, fail the jobs."""
        try:
            self._require_file()
            if not jobs or not connection.is_stale():
                return connection
            renewed = self._connect()
        except Exception as error:  # noqa: BLE001 - handed to the tasks that wait
            self._fail(jobs, error)
            jobs.clear()
            return connection
        connection.close()
        return renewed

    def _next(self, connection: Connection) -> _Job | None:
        """Return the next job; run idle steps while none arrives."""
        while self._idle:
            with contextlib.suppress(queue.Empty):
                return self._jobs.get(timeout=_QUIET_SECONDS)
            if not self._idle(connection):
                break
        return self._jobs.get()

    def _refuse(self, error: Exception) -> None:
        """Fail all queued jobs, which no thread will run any more."""
        self._closed = True
        while not self._jobs.empty():
            job = self._jobs.get()
            self._fail([job] if job else [], error)

    def _fail(self, jobs: Sequence[_Job], error: Exception) -> None:
        for job in jobs:
            job.error = translate_error(error, self._path)
        _resolve(jobs)

    def _serve_each(self, connection: Connection, jobs: Sequence[_Job]) -> None:
        for job in jobs:
            try:
                if not job.alone:
                    connection.execute("BEGIN")
                try:
                    job.result = job.work(connection)
                finally:
                    _roll_back(connection)  # nothing to keep, and a damaged file cannot commit
            except Exception as error:  # noqa: BLE001 - handed to the task that waits for it
                job.error = translate_error(error, self._path)

    def _commit(self, connection: Connection, jobs: Sequence[_Job]) -> None:
        try:
            connection.execute("BEGIN IMMEDIATE")
            try:
                for job in jobs:
                    job.result = job.work(connection)
            except Exception:  # noqa: BLE001 - each job keeps its own error
                _roll_back(connection)
                connection.execute("BEGIN IMMEDIATE")
                self._run_separately(connection, jobs)
            connection.execute("COMMIT")
        except Exception as error:  # noqa: BLE001 - handed to the tasks that wait
            _roll_back(connection)
            for job in jobs:
                job.error = translate_error(error, self._path)

    def _run_separately(self, connection: Connection, jobs: Sequence[_Job]) -> None:
        """Run each job in a savepoint, so that a failed one rolls back only its own changes."""
        for job in jobs:
            connection.execute("SAVEPOINT job")
            try:
                job.result = job.work(connection)
            except Exception as error:
                if not connection.in_transaction:
                    raise  # a full disk ends the whole transaction
                job.error = translate_error(error, self._path)
                connection.execute("ROLLBACK TO job")
            connection.execute("RELEASE job")


def _roll_back(connection: Connection) -> None:
    if connection.in_transaction:
        connection.execute("ROLLBACK")


def _resolve(jobs: Sequence[_Job]) -> None:
    """Resolve the jobs' futures, each on its own event loop."""
    by_loop: dict[asyncio.AbstractEventLoop, list[_Job]] = {}
    for job in jobs:
        by_loop.setdefault(job.future.get_loop(), []).append(job)
    for loop, waiting in by_loop.items():
        with contextlib.suppress(RuntimeError):  # the loop is closed: nobody waits any more
            loop.call_soon_threadsafe(_set_results, waiting)


def _set_results(jobs: Sequence[_Job]) -> None:
    for job in jobs:
        if job.future.done():
            continue
        if job.error is not None:
            job.future.set_exception(job.error)
        else:
            job.future.set_result(job.result)
