import asyncio
import resource
from collections.abc import AsyncIterator
from pathlib import Path

import apsw
import pytest

from remanence import Memory, Message
from remanence.cli import main
from remanence.errors import StoreError
from remanence.protocols import Store
from remanence.stores import open_store
from remanence.stores.copy import copy_store
from remanence.testing.store_contract.samples import (
    REF,
    active,
    fact,
    new,
    said_again,
    tape,
    user,
)
from remanence.types import ConversationRef

OTHER = ConversationRef("default", "other")


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "memory.db"


@pytest.fixture
async def store(path: Path) -> AsyncIterator[Store]:
    store = await open_store(f"sqlite:///{path}")
    await active(store, [(1, 2), (3, 4)])
    await store.append(REF, [user("more")], user=None, any_user=True)
    await tape(store, 3, OTHER)
    yield store
    await store.close()


def tamper(path: Path, sql: str) -> None:
    connection = apsw.Connection(str(path))
    connection.set_busy_timeout(5_000)
    connection.execute(sql)
    connection.close()


@pytest.mark.parametrize(
    ("sql", "what"),
    [
        ("DELETE FROM messages WHERE seq = 3 AND conversation = 1", "not 1..5"),
        ("UPDATE messages SET seq = 9 WHERE seq = 5", "not 1..5"),
        ("UPDATE states SET last_seq = 6 WHERE conversation = 1", "not 1..6"),
        ("UPDATE messages SET tokens = 11 WHERE seq = 2 AND conversation = 1", "from message 2 on"),
        ("UPDATE messages SET sum_tokens = 31 WHERE seq = 3 AND conversation = 1", "message 3 on"),
        ("UPDATE states SET last_sum_tokens = 0 WHERE conversation = 1", "last_sum_tokens is 0"),
        ("UPDATE states SET observed_sum_tokens = 1 WHERE conversation = 1", "observed_sum_tokens"),
        ("UPDATE states SET active_sum_tokens = 1 WHERE conversation = 1", "active_sum_tokens"),
        ("UPDATE states SET tail_sum_tokens = 1 WHERE conversation = 1", "tail_sum_tokens is 1"),
        ("UPDATE states SET active_seq = 5 WHERE conversation = 1", "out of order"),
        ("UPDATE states SET tail_seq = 6 WHERE conversation = 1", "out of order"),
        ("UPDATE states SET reflected_seq = 2 WHERE conversation = 1", "reflected_seq is 2"),
        ("DELETE FROM segments WHERE first_seq = 1", "a gap between 1 and"),
        ("DELETE FROM segments WHERE first_seq = 3", "segments end at 2"),
        ("UPDATE segments SET last_seq = 3 WHERE first_seq = 1", "an overlap"),
        ("UPDATE segments SET generation = 1 WHERE first_seq = 1", "of generation 1"),
        ("UPDATE segments SET superseded = 9 WHERE first_seq = 1", "a gap"),
        ("DELETE FROM states WHERE conversation = 1", "its state is missing"),
    ],
)
async def test_what_breaks_a_promise_is_found_and_named(
    store: Store, path: Path, sql: str, what: str
) -> None:
    assert await store.check() == ()
    tamper(path, sql)

    problems = await store.check()

    assert any(what in problem.what for problem in problems), problems
    assert {problem.conversation for problem in problems} - {None} == {REF}
    assert all(problem.remedy and problem.level == "error" for problem in problems)


async def test_rows_without_their_conversation_are_found(store: Store, path: Path) -> None:
    tamper(path, "DELETE FROM conversations WHERE id = 'other'")

    problems = await store.check()

    assert any("belongs to no row of conversations" in problem.what for problem in problems)


@pytest.mark.parametrize(
    "sql", ["DELETE FROM messages WHERE conversation = 2", "DELETE FROM segments"]
)
async def test_texts_of_nothing_in_the_index_are_found(store: Store, path: Path, sql: str) -> None:
    await store.search(OTHER, "message", limit=1)
    tamper(path, sql)

    problems = await store.check()

    assert any("orphaned texts" in problem.what for problem in problems)


@pytest.mark.parametrize(
    ("index", "what"),
    [
        ("text_index", ["3 messages", "2 live segments of notes"]),
        ("facts_index", ["1 current facts"]),
    ],
)
async def test_texts_that_an_index_lacks_are_found_and_a_copy_has_them(
    store: Store, path: Path, index: str, what: list[str]
) -> None:
    await store.save_facts(new(fact("f1", "keeps bees", conversation=REF.id)))
    await store.search(OTHER, "message", limit=1)
    assert await store.check() == ()
    tamper(path, f"DELETE FROM {index}")

    problems = await store.check()
    copy = await open_store(f"sqlite:///{path.parent / 'new.db'}")
    await copy_store(store, copy)

    named = [f"{index} lacks {texts}," for texts in what]
    assert [problem.what.partition(" which")[0] for problem in problems] == named
    assert all("remanence copy" in problem.remedy for problem in problems)
    assert await copy.check() == ()
    await copy.close()


async def test_a_damaged_text_index_is_found(store: Store, path: Path) -> None:
    await store.search(REF, "message", limit=1)
    tamper(path, "DELETE FROM text_index_docsize")
    tamper(path, "UPDATE text_index_data SET block = x'00' WHERE id > 10")

    assert await store.check() != ()


@pytest.mark.parametrize("index", ["text_index", "facts_index"])
async def test_damaged_lengths_in_an_index_are_found_and_a_copy_is_sound(
    store: Store, path: Path, index: str
) -> None:
    await store.save_facts(new(fact("f1", "keeps bees", conversation=REF.id)))
    await store.search(REF, "message", limit=1)
    tamper(path, f"UPDATE {index}_docsize SET sz = x'ff'")

    (problem,) = await store.check()
    copy = await open_store(f"sqlite:///{path.parent / 'new.db'}")
    await copy_store(store, copy)

    assert f"{index} is damaged" in problem.what
    assert "remanence copy" in problem.remedy
    assert await copy.check() == ()
    await copy.close()


def damage(path: Path, table: str) -> None:
    """Write nonsense to the head of the table's first page."""
    with apsw.Connection(str(path)) as connection:
        query = "SELECT rootpage FROM sqlite_schema WHERE name = ?"
        page: int = connection.execute(query, (table,)).get
    connection.close()
    with path.open("r+b") as file:
        file.seek((page - 1) * 4_096)
        file.write(b"\xff" * 100)


@pytest.mark.parametrize("table", ["messages", "segments", "states", "conversations", "journal"])
async def test_a_damaged_file_is_found(store: Store, path: Path, table: str) -> None:
    await store.close()
    damage(path, table)
    again = await open_store(f"sqlite:///{path}")

    problems = await again.check()

    assert problems
    assert all("the file is damaged" in problem.what for problem in problems)
    await again.close()


async def test_a_damaged_file_is_not_backed_up(
    store: Store, path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    await store.close()
    damage(path, "messages")
    copy = path.with_name("copy.db")

    async with Memory.open(f"sqlite:///{path}") as memory:
        with pytest.raises(StoreError, match=r"memory\.db' is damaged.*restore a backup"):
            await memory.backup(copy)
    code = await asyncio.to_thread(main, ["backup", str(copy), "--db", f"sqlite:///{path}"])

    assert (code, copy.exists(), list(path.parent.glob("*.unfinished*"))) == (1, False, [])
    assert "is damaged" in capsys.readouterr().err


async def test_a_damaged_text_is_found_and_names_the_file(tmp_path: Path) -> None:
    path = tmp_path / "memory.db"
    async with Memory.open(f"sqlite:///{path}") as memory:
        await memory.conversation("a").append(Message.user("I live in Lisbon, MARKER."))
    path.write_bytes(path.read_bytes().replace(b"MARKER", b"\xc8ARKER"))

    async with Memory.open(f"sqlite:///{path}") as memory:
        with pytest.raises(StoreError, match=r"memory\.db' is damaged.*restore a backup"):
            await memory.conversation("a").messages()
        (found,) = await memory.check()

    assert (found.level, found.remedy) == ("error", "restore a backup from before the damage")


async def test_reading_from_a_damaged_file_names_it(store: Store, path: Path) -> None:
    await store.close()
    damage(path, "messages")
    again = await open_store(f"sqlite:///{path}")

    with pytest.raises(StoreError, match=r"memory\.db' is damaged.*restore a backup"):
        await again.messages(REF, after=0, limit=None)

    await again.close()


@pytest.mark.parametrize(
    ("sql", "what"),
    [
        (
            "UPDATE messages SET content = '{' WHERE seq = 2 AND conversation = 1",
            "message 2 cannot",
        ),
        ("UPDATE messages SET created_at = 'noon' WHERE seq = 3 AND conversation = 1", "message 3"),
        ("UPDATE segments SET notes = 'x' WHERE first_seq = 1", "cannot be read: JSONDecodeError"),
        ("UPDATE states SET observe_failure = '[]' WHERE conversation = 1", "state 1 cannot be"),
        ("UPDATE journal SET at = '' WHERE conversation = 1 AND version = 1", "log entry 1 cannot"),
    ],
)
async def test_rows_that_no_reader_can_decode_are_found(
    store: Store, path: Path, sql: str, what: str
) -> None:
    tamper(path, sql)

    problems = await store.check()

    assert any(what in problem.what for problem in problems), problems
    assert {problem.conversation for problem in problems} == {REF}


@pytest.mark.parametrize(("table", "name"), [("facts", "fact f1"), ("fact_repetitions", "f2")])
async def test_facts_that_no_reader_can_decode_are_found(
    store: Store, path: Path, table: str, name: str
) -> None:
    await store.save_facts(new(fact("f1", "keeps bees", conversation=REF.id)))
    await store.save_facts(said_again("f1", fact("f2", "has bees")))
    assert await store.check() == ()
    tamper(path, f"UPDATE {table} SET valid_from = 'noon'")

    (problem,) = await store.check()

    assert f"{name} cannot be read" in problem.what


async def test_a_disk_that_takes_no_writes_is_found(store: Store) -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, hard))
    try:
        (problem,) = await store.check()
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))

    assert (problem.level, problem.remedy) == ("error", "check the disk and its free space")
    assert "nothing can be written" in problem.what
    assert await store.check() == ()


async def test_a_lock_that_another_process_keeps_is_a_warning(path: Path) -> None:
    store = await open_store(f"sqlite:///{path}", pragmas={"busy_timeout": 10})
    rival = apsw.Connection(str(path))
    rival.execute("BEGIN IMMEDIATE")

    (problem,) = await store.check()
    rival.close()
    await store.close()

    assert (problem.level, problem.remedy) == ("warning", "try again, or end that process")
