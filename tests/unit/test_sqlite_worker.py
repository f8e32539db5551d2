import asyncio
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path

import apsw
import pytest

from remanence.clock import SystemClock
from remanence.errors import Closed, StoreError, StoreUnavailable
from remanence.stores.sqlite.connection import Database
from remanence.stores.sqlite.fts import Connection
from remanence.stores.sqlite.worker import Work, Worker


class Disk(apsw.VFS):
    """The usual file system, until `full` is set."""

    def __init__(self) -> None:
        self.full = False
        super().__init__("disk", "")

    def xOpen(self, name: str | apsw.URIFilename | None, flags: list[int]) -> apsw.VFSFile:  # noqa: N802 - SQLite's name
        return DiskFile(self, name, flags)


class DiskFile(apsw.VFSFile):
    def __init__(self, disk: Disk, name: str | apsw.URIFilename | None, flags: list[int]) -> None:
        self._disk = disk
        super().__init__("", name, flags)

    def xWrite(self, data: bytes, offset: int) -> None:  # noqa: N802 - SQLite's name
        if self._disk.full:
            raise apsw.FullError
        super().xWrite(data, offset)


@pytest.fixture
def path(tmp_path: Path) -> str:
    return str(tmp_path / "memory.db")


@pytest.fixture
def disk() -> Iterator[Disk]:
    disk = Disk()
    yield disk
    disk.unregister()


@pytest.fixture
def commits() -> list[int]:
    """A number for each transaction that was committed."""
    return []


@pytest.fixture
async def writer(path: str, disk: Disk, commits: list[int]) -> AsyncIterator[Worker]:
    def count() -> bool:
        commits.append(len(commits))
        return False

    def connect() -> Connection:
        connection = Connection(path, vfs="disk")
        connection.pragma("journal_mode", "wal")
        connection.execute("CREATE TABLE t (n INTEGER PRIMARY KEY)")
        connection.set_commit_hook(count)
        return connection

    worker = Worker("test", path=path, connect=connect, writes=True)
    await worker.start()
    commits.clear()
    yield worker
    disk.full = False
    await worker.close()


def insert(number: int) -> Work[int]:
    def work(connection: Connection) -> int:
        connection.execute("INSERT INTO t VALUES (?)", (number,))
        return number

    return work


def insert_and_fail(number: int, error: Exception) -> Work[int]:
    def work(connection: Connection) -> int:
        connection.execute("INSERT INTO t VALUES (?)", (number,))
        raise error

    return work


def numbers(connection: Connection) -> list[int]:
    return [number for (number,) in connection.execute("SELECT n FROM t ORDER BY n")]


class Held:
    """A worker that is busy until the block ends."""

    def __init__(self, worker: Worker) -> None:
        self._worker = worker
        self._begun = asyncio.Event()
        self._end = threading.Event()

    async def __aenter__(self) -> None:
        loop = asyncio.get_running_loop()

        def hold(_: Connection) -> None:
            loop.call_soon_threadsafe(self._begun.set)
            self._end.wait(timeout=60)

        self._job = self._worker.submit(hold)
        await asyncio.wait_for(self._begun.wait(), timeout=60)

    async def __aexit__(self, *_: object) -> None:
        self._end.set()
        await asyncio.wait({self._job})


async def test_jobs_that_wait_share_one_transaction(writer: Worker, commits: list[int]) -> None:
    async with Held(writer):
        jobs = [writer.submit(insert(number)) for number in range(50)]

    assert [await job for job in jobs] == list(range(50))
    assert len(commits) == 2  # one of them is that of the job that held the writer


async def test_a_job_that_fails_is_rolled_back_alone(writer: Worker) -> None:
    async with Held(writer):
        good = [writer.submit(insert(number)) for number in (1, 2)]
        bad = writer.submit(insert_and_fail(3, ValueError("bad")))
        constraint = writer.submit(insert(1))
        late = writer.submit(insert(4))

    assert [await job for job in [*good, late]] == [1, 2, 4]
    with pytest.raises(ValueError, match="bad"):
        await bad
    with pytest.raises(StoreError, match="UNIQUE"):
        await constraint
    assert await writer.submit(numbers) == [1, 2, 4]


async def test_nothing_of_a_transaction_is_kept_when_the_disk_is_full(
    writer: Worker, disk: Disk
) -> None:
    await writer.submit(insert(1))
    async with Held(writer):
        jobs = [writer.submit(insert(number)) for number in (2, 3)]
        disk.full = True

    for job in jobs:
        with pytest.raises(StoreUnavailable, match="no space is left"):
            await job
    disk.full = False
    assert await writer.submit(numbers) == [1]
    assert await writer.submit(insert(2)) == 2


async def test_a_commit_that_is_refused_fails_every_job(path: str) -> None:
    refusing = threading.Event()

    def connect() -> Connection:
        connection = Connection(path)
        connection.execute("CREATE TABLE t (n INTEGER PRIMARY KEY)")
        connection.set_commit_hook(refusing.is_set)
        return connection

    writer = Worker("test", path=path, connect=connect, writes=True)
    await writer.start()
    async with Held(writer):
        jobs = [writer.submit(insert(number)) for number in (1, 2)]
        refusing.set()

    for job in jobs:
        with pytest.raises(StoreError):
            await job
    refusing.clear()
    assert await writer.submit(numbers) == []
    await writer.close()


async def test_a_job_that_is_cancelled_before_it_begins_is_skipped(writer: Worker) -> None:
    async with Held(writer):
        jobs = [writer.submit(insert(number)) for number in (1, 2, 3)]
        jobs[1].cancel()

    await jobs[2]
    assert await writer.submit(numbers) == [1, 3]


async def test_what_goes_wrong_when_opening_is_raised_by_start(path: str) -> None:
    def connect() -> Connection:
        raise apsw.CantOpenError

    worker = Worker("test", path=path, connect=connect, writes=False)

    with pytest.raises(StoreUnavailable, match="cannot be opened"):
        await worker.start()
    with pytest.raises(Closed):
        worker.submit(numbers)
    await worker.close()


async def test_closing_finishes_what_is_queued(writer: Worker) -> None:
    async with asyncio.TaskGroup() as group, Held(writer):
        jobs = [writer.submit(insert(number)) for number in range(5)]
        closing = group.create_task(writer.close())
        await asyncio.sleep(0)

    assert closing.done()
    assert [await job for job in jobs] == list(range(5))
    with pytest.raises(Closed):
        writer.submit(numbers)


async def test_a_loop_that_ended_does_not_stop_the_worker(writer: Worker) -> None:
    def leave_a_job_behind() -> None:
        async def main() -> None:
            writer.submit(insert(1))

        asyncio.run(main())

    async with Held(writer):
        await asyncio.to_thread(leave_a_job_behind)

    assert await writer.submit(insert(2)) == 2
    assert await writer.submit(numbers) == [1, 2]


async def test_idle_work_is_done_until_there_is_none(path: str) -> None:
    left = list(range(5))
    done = asyncio.Event()
    loop = asyncio.get_running_loop()

    def idle(_: Connection) -> bool:
        left.pop()
        if not left:
            loop.call_soon_threadsafe(done.set)
        return bool(left)

    def connect() -> Connection:
        return Database(path=":memory:").open_writer(SystemClock())

    worker = Worker("test", path=path, connect=connect, writes=True, idle=idle)
    await worker.start()

    await asyncio.wait_for(done.wait(), timeout=60)
    assert left == []
    await worker.close()


def test_a_reader_sees_one_instant(path: str) -> None:
    async def main(work: Callable[[Connection], list[int]]) -> list[int]:
        reader = Worker("test", path=path, connect=lambda: Connection(path), writes=False)
        await reader.start()
        seen = await reader.submit(work)
        await reader.close()
        return seen

    rival = Connection(path)
    rival.pragma("journal_mode", "wal")
    rival.execute("CREATE TABLE t (n INTEGER PRIMARY KEY)")

    def look_twice(connection: Connection) -> list[int]:
        first = len(numbers(connection))
        rival.execute("INSERT INTO t VALUES (1)")
        return [first, len(numbers(connection))]

    assert asyncio.run(main(look_twice)) == [0, 0]
    rival.close()
