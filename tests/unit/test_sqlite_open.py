import asyncio
import contextlib
import os
import sqlite3
import subprocess
import sys
import tempfile
import threading
import traceback
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

import apsw
import pytest

from remanence.clock import SystemClock
from remanence.errors import NewerSchema, NotADatabase, RemanenceError, StoreUnavailable
from remanence.protocols import BackupStore
from remanence.stores import open_store
from remanence.stores.sqlite.connection import Database
from remanence.testing import FixedClock
from remanence.types import ConversationRef, Message

REF = ConversationRef("default", "chat")
NOBODY = 65534


def url(path: Path) -> str:
    return f"sqlite:///{path}"


async def refused(address: str, error: type[RemanenceError], *, read_only: bool = False) -> str:
    """The text of the error that opening raises."""
    with pytest.raises(error) as caught:
        await open_store(address, read_only=read_only)
    return str(caught.value)


def names(folder: Path) -> list[str]:
    return [path.name for path in folder.iterdir()]


def contents(folder: Path) -> dict[str, bytes | None]:
    """Every file below a folder with its bytes."""
    paths = sorted(folder.rglob("*"))
    return {str(path): path.read_bytes() if path.is_file() else None for path in paths}


async def write_one(path: Path) -> None:
    store = await open_store(url(path))
    await store.append(REF, [Message.user("hello")], user=None)
    await store.close()


@pytest.mark.parametrize(
    ("address", "named", "remedy"),
    [
        ("memory.db", "'memory.db'", "sqlite:///memory.db"),
        ("", "''", "sqlite:///"),
        (":memory:", "':memory:'", "sqlite:///:memory:"),
        ("mysql://db/x", "'mysql://db/x'", "sqlite:///"),
        ("mysql://ana:secret@db/x", "'mysql://ana:***@db/x'", "sqlite:///"),
        ("sqlite://", "'sqlite://'", "sqlite:///"),
        ("sqlite:///", "'sqlite:///'", "sqlite:///"),
        ("sqlite://memory.db", "'sqlite://memory.db'", "sqlite:///"),
        ("sqlite:///a\0b", r"a\x00b", "sqlite:///name.db"),
    ],
)
async def test_a_url_that_names_no_store_is_refused_with_a_remedy(
    address: str, named: str, remedy: str
) -> None:
    text = await refused(address, StoreUnavailable)

    assert named in text
    assert remedy in text
    assert "secret" not in text


async def test_a_relative_url_names_a_file_of_the_working_directory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    store = await open_store("sqlite:///memory.db")
    monkeypatch.chdir("/")
    await store.append(REF, [Message.user("hello")], user=None)
    await store.close()

    assert names(tmp_path) == ["memory.db"]


@pytest.mark.parametrize("name", ["with space.db", "100%.db", "?.db", "#.db", "이름.db", "'.db"])
async def test_any_file_name_is_taken_as_it_is(tmp_path: Path, name: str) -> None:
    await write_one(tmp_path / name)

    assert names(tmp_path) == [name]


async def test_a_path_that_the_locale_cannot_read_is_named_with_a_remedy(tmp_path: Path) -> None:
    file = tmp_path / os.fsdecode(b"b\xfccher.db")
    store = await open_store(f"sqlite:///{tmp_path}/memory.db")

    assert isinstance(store, BackupStore)

    said = await refused(url(file), StoreUnavailable)
    with pytest.raises(StoreUnavailable, match="LC_ALL"):
        await store.backup(str(file))
    await store.close()

    assert "b\\udcfccher.db" in said
    assert "LC_ALL=C.UTF-8" in said
    assert not file.exists()


async def test_an_empty_file_becomes_a_database(tmp_path: Path) -> None:
    (tmp_path / "memory.db").touch()

    await write_one(tmp_path / "memory.db")


@pytest.mark.parametrize(
    ("place", "remedy"),
    [
        ("missing/memory.db", "create it"),
        ("file/memory.db", "is a file"),
        ("folder", "name a file in it"),
        ("long" * 100, "name another file"),
    ],
)
async def test_a_place_where_no_file_can_be_is_refused(
    tmp_path: Path, place: str, remedy: str
) -> None:
    (tmp_path / "file").write_bytes(b"")
    (tmp_path / "folder").mkdir()
    before = contents(tmp_path)

    text = await refused(url(tmp_path / place), StoreUnavailable)

    assert repr(str(tmp_path / place)) in text
    assert remedy in text
    assert contents(tmp_path) == before


@pytest.mark.parametrize(
    "content",
    [b"x", b"not a database\n" * 1_000, os.urandom(8_192), b"SQLite format 3\0" + b"\xff" * 5_000],
    ids=["a byte", "text", "as if encrypted", "a broken header"],
)
async def test_a_file_that_is_no_database_is_left_alone(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "memory.db"
    path.write_bytes(content)

    text = await refused(url(path), NotADatabase)

    assert str(path) in text
    assert "encrypted" in text
    assert contents(tmp_path) == {str(path): content}


@pytest.mark.parametrize("journal_mode", ["delete", "wal"])
@pytest.mark.parametrize("application_id", [0, 7])
async def test_the_database_of_another_application_is_left_alone(
    tmp_path: Path, journal_mode: str, application_id: int
) -> None:
    path = tmp_path / "memory.db"
    with sqlite3.connect(path) as connection:
        connection.execute(f"PRAGMA journal_mode = {journal_mode}")
        connection.execute(f"PRAGMA application_id = {application_id}")
        connection.execute("CREATE TABLE conversations (id)")
    connection.close()
    before = contents(tmp_path)

    text = await refused(url(path), NotADatabase)

    assert "another application" in text
    assert str(path) in text
    assert contents(tmp_path) == before


async def test_a_database_made_from_a_dump_which_lacks_the_application_id_opens(
    tmp_path: Path,
) -> None:
    path = tmp_path / "memory.db"
    await write_one(path)
    with sqlite3.connect(path) as connection:
        connection.execute("PRAGMA application_id = 0")
    connection.close()

    reader = await open_store(url(path), read_only=True)
    writer = await open_store(url(path))
    messages = [await store.messages(REF, after=0, limit=None) for store in (reader, writer)]
    await writer.close()
    await reader.close()

    assert [message.text for message in messages[0]] == ["hello"]
    assert messages[1] == messages[0]


async def test_a_later_schema_is_refused_and_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "memory.db"
    await write_one(path)
    with sqlite3.connect(path) as connection:
        connection.execute(
            "INSERT INTO schema_migrations (number, name, applied_at, version) "
            "VALUES (999, 'later', '', '9.9')"
        )
    connection.close()
    before = path.read_bytes()

    text = await refused(url(path), NewerSchema)

    assert "999" in text
    assert "install a newer remanence" in text
    assert path.read_bytes() == before


async def test_opening_fails_as_a_whole_when_the_disk_is_full(tmp_path: Path) -> None:
    path = tmp_path / "memory.db"

    with pytest.raises(StoreUnavailable, match="no space"):
        await open_store(url(path), pragmas={"max_page_count": 5})

    assert path.read_bytes() == b""
    await write_one(path)


async def test_a_lock_that_another_process_keeps_is_named(tmp_path: Path) -> None:
    path = tmp_path / "memory.db"
    store = await open_store(url(path), pragmas={"busy_timeout": 10})
    state = (await store.append(REF, [Message.user("hello")], user=None)).state
    rival = apsw.Connection(str(path))
    rival.set_busy_timeout(5_000)
    rival.execute("BEGIN IMMEDIATE")

    with pytest.raises(StoreUnavailable, match=r"another process.*memory\.db") as caught:
        await store.append(REF, [Message.user("more")], user=None)

    assert str(path) in str(caught.value)
    assert await store.state(REF) == state
    rival.close()
    assert (await store.append(REF, [Message.user("more")], user=None)).state.last_seq == 2
    await store.close()


async def test_a_locked_new_file_is_named(tmp_path: Path) -> None:
    path = tmp_path / "memory.db"
    rival = apsw.Connection(str(path))
    rival.execute("BEGIN EXCLUSIVE")

    with pytest.raises(StoreUnavailable, match="another process"):
        await open_store(url(path), pragmas={"busy_timeout": 10})

    rival.close()


async def test_opening_waits_for_a_process_that_opens_or_closes_the_file(tmp_path: Path) -> None:
    path = tmp_path / "memory.db"
    await write_one(path)

    assert open_while_locked(path, Database(path=str(path), read_only=True).open_unwritten)
    assert open_while_locked(path, Database(path=str(path)).open_probe)


def open_while_locked(path: Path, connect: Callable[[], apsw.Connection]) -> bool:
    """Open a connection while the file is locked as by one that closes; false if it did not wait."""
    rival = apsw.Connection(str(path))
    rival.pragma("locking_mode", "exclusive")
    rival.execute("BEGIN IMMEDIATE; COMMIT")
    is_free = threading.Event()

    def free() -> None:
        is_free.set()
        rival.close()

    timer = threading.Timer(0.2, free)
    timer.start()
    try:
        connect().close()
        return is_free.is_set()
    finally:
        timer.join()


@pytest.fixture
def open_folder() -> Iterator[Path]:
    """A folder that other users can enter, unlike pytest's own."""
    with tempfile.TemporaryDirectory() as name:
        Path(name).chmod(0o755)
        yield Path(name)


async def rehearse(folder: Path) -> None:
    """Open a store for writing, for reading and in vain, so that all files are loaded.

    A process that is not root may be unable to read the project and its packages.
    """
    await write_one(folder / "memory.db")
    await read_only_texts(folder / "memory.db")
    await refused(url(folder), StoreUnavailable)


def without_privileges(act: Callable[[], str]) -> str:
    """Return the answer of *act* in a process which is not root; fail with its traceback."""
    with tempfile.TemporaryDirectory() as folder:
        asyncio.run(rehearse(Path(folder)))
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        with os.fdopen(writing, "w") as pipe:
            try:
                if os.geteuid() == 0:
                    os.setuid(NOBODY)
                pipe.write(act())
                pipe.flush()
                os._exit(0)
            except BaseException:  # noqa: BLE001 - a failure of pytest is no Exception
                traceback.print_exc(file=pipe)
                pipe.flush()
                os._exit(1)
    os.close(writing)
    with os.fdopen(reading) as pipe:
        answer = pipe.read()
    _, status = os.waitpid(child, 0)
    if status:
        pytest.fail(f"The process without privileges failed:\n{answer}")
    return answer


def open_without_privileges(path: Path, *, read_only: bool = False) -> str:
    """The text of the error that a process which is not root gets when it opens a store."""
    opening = partial(refused, url(path), StoreUnavailable, read_only=read_only)
    return without_privileges(lambda: asyncio.run(opening()))


@pytest.mark.filterwarnings("ignore:.*multi-threaded.*fork:DeprecationWarning")
def test_a_directory_without_write_permission_is_refused(open_folder: Path) -> None:
    open_folder.chmod(0o555)

    text = open_without_privileges(open_folder / "memory.db")

    assert "make the file and its directory writable; a program that only reads" in text
    assert contents(open_folder) == {}


@pytest.mark.filterwarnings("ignore:.*multi-threaded.*fork:DeprecationWarning")
@pytest.mark.parametrize("folder_mode", [0o555, 0o777])
def test_a_file_without_write_permission_is_refused(open_folder: Path, folder_mode: int) -> None:
    path = open_folder / "memory.db"
    asyncio.run(write_one(path))
    path.chmod(0o444)
    open_folder.chmod(folder_mode)
    before = contents(open_folder)

    text = open_without_privileges(path)

    assert "writable" in text
    assert str(path) in text
    assert contents(open_folder) == before


@pytest.mark.filterwarnings("ignore:.*multi-threaded.*fork:DeprecationWarning")
def test_a_file_without_read_permission_is_refused(open_folder: Path) -> None:
    path = open_folder / "memory.db"
    asyncio.run(write_one(path))
    path.chmod(0o000)
    open_folder.chmod(0o777)

    assert str(path) in open_without_privileges(path)


@pytest.mark.filterwarnings("ignore:.*multi-threaded.*fork:DeprecationWarning")
@pytest.mark.parametrize("read_only", [False, True])
def test_a_directory_that_cannot_be_entered_is_named(open_folder: Path, read_only: bool) -> None:
    path = open_folder / "memory.db"
    asyncio.run(write_one(path))
    open_folder.chmod(0o666)

    text = open_without_privileges(path, read_only=read_only)

    assert str(path) in text
    assert "make its directories accessible" in text


class Flicker:
    """Within a block, a thread creates and removes a file again and again."""

    def __init__(self, file: Path) -> None:
        self._file = file
        self._end = threading.Event()
        self._thread = threading.Thread(target=self._run)

    def _run(self) -> None:
        while not self._end.is_set():
            self._file.write_bytes(b"log")
            self._file.unlink()

    def __enter__(self) -> None:
        self._thread.start()

    def __exit__(self, *_: object) -> None:
        self._end.set()
        self._thread.join()


@pytest.mark.filterwarnings("ignore:.*multi-threaded.*fork:DeprecationWarning")
def test_a_log_that_a_writer_removes_meanwhile_breaks_no_reader(open_folder: Path) -> None:
    path = open_folder / "memory.db"
    asyncio.run(write_one(path))
    path.chmod(0o444)
    open_folder.chmod(0o555)

    def read_often() -> str:
        for _ in range(1500):
            with contextlib.suppress(StoreUnavailable):
                Database(path=str(path), read_only=True).open_unwritten().close()
        return "done"

    with Flicker(Path(f"{path}-wal")):
        assert without_privileges(read_often) == "done"


def test_full_durability_waits_for_the_disk(tmp_path: Path) -> None:
    synchronous = []
    for durability in ("full", "normal"):
        database = Database(path=str(tmp_path / f"{durability}.db"), durability=durability)
        connection = database.open_writer(SystemClock())
        synchronous.append(connection.pragma("synchronous"))
        connection.close()

    assert synchronous == [2, 1]


FORGET_TO_CLOSE = """
import asyncio, sys
from remanence.stores import open_store
from remanence.stores.sqlite.connection import Database
from remanence.testing import FixedClock
from remanence.types import ConversationRef, Message

async def main():
    store = await open_store(sys.argv[1])
    await store.append(ConversationRef("default", "chat"), [Message.user("hello")], user=None)

asyncio.run(main())
"""


async def test_a_store_that_is_not_closed_loses_nothing_and_keeps_no_process_alive(
    tmp_path: Path,
) -> None:
    path = tmp_path / "memory.db"
    run = await asyncio.create_subprocess_exec(
        sys.executable,
        "-c",
        FORGET_TO_CLOSE,
        url(path),
        env={"PYTHONPATH": os.pathsep.join(sys.path)},
        stderr=subprocess.PIPE,
    )
    async with asyncio.timeout(60):
        _, errors = await run.communicate()

    assert (run.returncode, errors) == (0, b"")
    store = await open_store(url(path))
    assert [message.text for message in await store.messages(REF, after=0, limit=None)] == ["hello"]
    await store.close()


async def read_only_texts(path: Path) -> list[str]:
    store = await open_store(url(path), read_only=True)
    try:
        texts = [message.text for message in await store.messages(REF, after=0, limit=None)]
        with pytest.raises(StoreUnavailable, match="open read-only"):
            await store.append(REF, [Message.user("more")], user=None)
        return texts
    finally:
        await store.close()


async def test_a_store_for_reading_shows_what_there_is_and_changes_no_file(tmp_path: Path) -> None:
    await write_one(tmp_path / "memory.db")
    before = contents(tmp_path)

    assert await read_only_texts(tmp_path / "memory.db") == ["hello"]
    assert contents(tmp_path) == before


async def test_a_store_for_reading_sees_what_another_one_has_just_written(tmp_path: Path) -> None:
    store = await open_store(url(tmp_path / "memory.db"))
    await store.append(REF, [Message.user("hello")], user=None)

    assert await read_only_texts(tmp_path / "memory.db") == ["hello"]
    await store.close()


@pytest.mark.filterwarnings("ignore:.*multi-threaded.*fork:DeprecationWarning")
@pytest.mark.parametrize("folder_mode", [0o555, 0o777])
def test_a_file_that_cannot_be_written_can_be_read_and_no_file_is_left(
    open_folder: Path, folder_mode: int
) -> None:
    path = open_folder / "with space?.db"
    asyncio.run(write_one(path))
    path.chmod(0o444)
    open_folder.chmod(folder_mode)
    before = contents(open_folder)

    assert without_privileges(lambda: str(asyncio.run(read_only_texts(path)))) == "['hello']"
    assert contents(open_folder) == before


@pytest.mark.filterwarnings("ignore:.*multi-threaded.*fork:DeprecationWarning")
def test_a_reader_that_cannot_write_sees_what_others_write_later(open_folder: Path) -> None:
    path = open_folder / "memory.db"
    asyncio.run(write_one(path))
    opened, written = os.pipe(), os.pipe()

    def set_modes(folder: int, file: int) -> None:
        open_folder.chmod(folder)
        path.chmod(file)

    async def read() -> str:
        store = await open_store(url(path), read_only=True)
        found = [len(await store.messages(REF, after=0, limit=None))]
        for _ in range(2):
            os.write(opened[1], b"1")
            await asyncio.to_thread(os.read, written[0], 1)
            found.append(len(await store.messages(REF, after=0, limit=None)))
        await store.close()
        return str(found)

    async def write() -> None:
        await asyncio.to_thread(os.read, opened[0], 1)
        set_modes(0o755, 0o644)
        store = await open_store(url(path))
        await store.append(REF, [Message.user("more")], user=None)
        os.write(written[1], b"1")
        await asyncio.to_thread(os.read, opened[0], 1)
        await store.append(REF, [Message.user("more")], user=None)
        await store.close()
        os.write(written[1], b"1")

    set_modes(0o555, 0o444)
    with ThreadPoolExecutor(1) as pool:
        writing = pool.submit(asyncio.run, write())
        try:
            assert without_privileges(lambda: asyncio.run(read())) == "[1, 2, 3]"
        finally:
            os.write(opened[1], b"11")  # for the writer, if the reader failed
        writing.result()


@pytest.mark.parametrize(
    ("content", "what"),
    [(b"", "is an empty file"), (b"x", "not a database"), (b"text" * 99, "encrypted")],
)
async def test_reading_names_a_file_that_holds_no_database(
    tmp_path: Path, content: bytes, what: str
) -> None:
    path = tmp_path / "memory.db"
    path.write_bytes(content)

    with pytest.raises(NotADatabase, match=what) as caught:
        await open_store(url(path), read_only=True)

    assert str(path) in str(caught.value)
    assert contents(tmp_path) == {str(path): content}


async def test_reading_needs_a_file_and_its_newest_tables(tmp_path: Path) -> None:
    path = tmp_path / "memory.db"
    with pytest.raises(StoreUnavailable, match="there is no database"):
        await open_store(url(path), read_only=True)
    await write_one(path)
    with sqlite3.connect(path) as connection:
        connection.execute("DELETE FROM schema_migrations WHERE number > 1")
    connection.close()

    with pytest.raises(StoreUnavailable, match="remanence migrate"):
        await open_store(url(path), read_only=True)


def modes(folder: Path) -> dict[str, str]:
    return {file.name: oct(file.stat().st_mode & 0o777) for file in folder.iterdir()}


async def test_a_new_database_is_for_its_owner_alone(tmp_path: Path) -> None:
    path = tmp_path / "memory.db"
    store = await open_store(f"sqlite:///{path}")
    await store.append(ConversationRef("default", "a"), [Message.user("Hello.")], user=None)
    found = modes(tmp_path)
    await store.close()

    assert found == dict.fromkeys(found, "0o600")
    assert "memory.db-wal" in found


async def test_a_new_database_behind_a_link_is_for_its_owner_alone(tmp_path: Path) -> None:
    (tmp_path / "link.db").symlink_to(tmp_path / "memory.db")
    await write_one(tmp_path / "link.db")

    assert modes(tmp_path)["memory.db"] == "0o600"


async def test_databases_in_memory_have_the_tables_of_a_file_and_share_no_row(
    tmp_path: Path,
) -> None:
    clock, schema = (
        FixedClock(),
        "SELECT type, name, tbl_name, sql FROM sqlite_schema ORDER BY 1, 2",
    )
    databases = [Database(path=str(path)) for path in (":memory:", ":memory:", tmp_path / "a.db")]
    first, second, file = (database.open_writer(clock) for database in databases)
    first.execute("DELETE FROM schema_migrations")

    steps = [one.execute("SELECT * FROM schema_migrations").fetchall() for one in (second, file)]
    schemas = [one.execute(schema).fetchall() for one in (second, file)]
    for connection in (first, second, file):
        connection.close()

    assert steps[0] == steps[1] != []
    assert schemas[0] == schemas[1]
