import asyncio
import gc
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import closing
from pathlib import Path

import apsw
import pytest

from remanence.clock import SystemClock
from remanence.protocols import Store
from remanence.stores import open_store
from remanence.stores.sqlite import Database
from remanence.stores.sqlite.fts import SideIndex, index_some
from remanence.testing.store_contract.samples import observation, user
from remanence.types import ConversationRef, Note, Owner

REF = ConversationRef("default", "chat")
OTHER = ConversationRef("default", "other")


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "memory.db"


@pytest.fixture
async def store(path: Path) -> AsyncIterator[Store]:
    store = await open_store(f"sqlite:///{path}")
    yield store
    await store.close()


async def until(path: Path, condition: Callable[[apsw.Connection], bool]) -> None:
    """Look at the database until the condition holds, for at most 10 s."""
    connection = apsw.Connection(str(path))
    async with asyncio.timeout(60):
        while not condition(connection):  # noqa: ASYNC110 - the writer's thread changes it
            await asyncio.sleep(0.005)
    connection.close()


def indexed(connection: apsw.Connection) -> bool:
    waiting: int = connection.execute(
        "SELECT count(*) FROM states WHERE last_seq - indexed_seq >= 64"
    ).get
    return waiting == 0


def merged(connection: apsw.Connection) -> bool:
    """Return whether the index has few parts, each of which a search opens for every scope."""
    return 0 < count_parts(connection) < 10


def count_parts(connection: apsw.Connection) -> int:
    parts: int = connection.execute("SELECT count(DISTINCT segid) FROM text_index_idx").get
    return parts


def lower_bytes(path: Path) -> bytes:
    return path.read_bytes().lower()


async def test_a_growing_tape_is_indexed_while_nobody_waits(store: Store, path: Path) -> None:
    await store.append(REF, [user(f"umbrella {number}") for number in range(1_000)], user=None)

    await until(path, indexed)

    assert len(await store.search(REF, "umbrella", limit=2_000)) == 1_000
    assert await store.check() == ()


async def test_what_searches_indexed_is_merged_while_nobody_waits(store: Store, path: Path) -> None:
    for number in range(40):
        await store.append(REF, [user(f"umbrella {number}")], user=None)
        await store.search(REF, "umbrella", limit=1)

    await until(path, merged)

    assert len(await store.search(REF, "umbrella", limit=100)) == 40


async def append_to_each(store: Store, conversations: int) -> None:
    async with asyncio.TaskGroup() as group:
        for number in range(conversations):
            ref = ConversationRef("default", f"chat {number}")
            text = user(f"umbrella {number} of " + " ".join(f"w{number + n}" for n in range(100)))
            group.create_task(store.append(ref, [text], user="ana"))


async def test_the_index_is_merged_along_while_many_conversations_are_indexed(path: Path) -> None:
    store = await open_store(f"sqlite:///{path}")
    await append_to_each(store, 500)
    await store.close()
    parts = []

    with closing(Database(path=str(path)).open_writer(SystemClock())) as connection:
        left: Sequence[int] = range(1, 501)
        while left:
            with connection:
                left = index_some(connection, left)
            parts.append(count_parts(connection))

    assert max(parts) < 50


@pytest.mark.parametrize(("conversations", "at_most"), [(1, 1), (32, 1), (500, 16)])
async def test_many_conversations_with_a_few_unindexed_messages_share_a_transaction(
    path: Path, conversations: int, at_most: int
) -> None:
    store = await open_store(f"sqlite:///{path}")
    for number in range(conversations):
        ref = ConversationRef("default", f"chat {number}")
        await store.append(ref, [user("umbrella"), user("harbour")], user="ana")
    await store.close()
    steps = 0

    with closing(Database(path=str(path)).open_writer(SystemClock())) as connection:
        left: Sequence[int] = range(1, conversations + 1)
        while left:
            with connection:
                left = index_some(connection, left)
            steps += 1
        behind = connection.execute("SELECT count(*) FROM states WHERE indexed_seq < 2").get

    assert steps <= at_most
    assert behind == 0


async def test_an_index_that_another_process_left_in_parts_is_merged_while_nobody_waits(
    path: Path,
) -> None:
    store = await open_store(f"sqlite:///{path}")
    await append_to_each(store, 50)
    await store.close()
    with closing(Database(path=str(path)).open_writer(SystemClock())) as connection:
        for conversation in range(1, 51):
            with connection:
                index_some(connection, [conversation])
        assert not merged(connection)

    store = await open_store(f"sqlite:///{path}")
    await until(path, merged)

    assert len(await store.search(Owner("default", "ana"), "umbrella", limit=100)) == 50
    await store.close()


async def test_no_word_of_a_deleted_conversation_or_forgotten_user_is_left_in_the_file(
    store: Store, path: Path
) -> None:
    for number in range(30):
        texts = [user(f"Xylophone{number} {repeat}") for repeat in range(10)]
        await store.append(REF, texts, user="Xaverius")
        await store.append(OTHER, [user(f"zither {number}")], user=None)
    state = await store.state(REF)
    assert state is not None
    note = Note(text="the xylophone", first_seq=1, last_seq=9)
    await store.commit_observation(state, observation(1, 9, text="xylophone", notes=(note,)))
    await store.search(REF, "umbrella", limit=1)
    await store.search(OTHER, "umbrella", limit=1)

    await store.delete(REF)
    await store.forget_user(Owner("default", "Xaverius"))  # the event of the deletion names them
    await store.scrub()
    await store.close()

    content = lower_bytes(path)
    assert b"xylophon" not in content
    assert b"xaverius" not in content
    assert b"zither" in content


async def search_locked(path: Path, store: Store) -> None:
    """Search for a word of `REF` while the file's index cannot be written."""
    with closing(apsw.Connection(str(path))) as connection:
        connection.execute("BEGIN IMMEDIATE")
        assert await store.search(REF, "xylophone", limit=1)
    assert indexes_in_memory()


def indexes_in_memory() -> list[SideIndex]:
    gc.collect()
    return [each for each in gc.get_objects() if isinstance(each, SideIndex)]


async def test_no_word_of_a_forgotten_user_is_left_in_the_index_in_memory(
    store: Store, path: Path
) -> None:
    await store.append(REF, [user("the xylophone")], user="Xaverius")
    await search_locked(path, store)

    await store.forget_user(Owner("default", "Xaverius"))
    await store.scrub()

    assert indexes_in_memory() == []


async def test_a_search_drops_words_in_memory_that_another_process_has_erased(
    store: Store, path: Path
) -> None:
    await store.append(REF, [user("the xylophone")], user="Xaverius")
    await store.append(OTHER, [user("a zither")], user=None)
    reader = await open_store(f"sqlite:///{path}", read_only=True)
    assert await reader.search(REF, "xylophone", limit=1)

    await store.delete(REF)
    assert await reader.search(OTHER, "zither", limit=1)
    found = [
        index.match_word("text_index", ["c1"], "xylophone", (0, 9)) for index in indexes_in_memory()
    ]
    await reader.close()

    assert found == [[]]


async def test_the_index_in_memory_goes_when_that_of_the_file_has_caught_up(
    store: Store, path: Path
) -> None:
    await store.append(REF, [user("the xylophone")], user=None)
    await search_locked(path, store)

    assert await store.search(REF, "xylophone", limit=1)

    assert indexes_in_memory() == []


async def test_words_of_an_index_from_before_folding_are_found_as_written(
    store: Store, path: Path
) -> None:
    await store.append(REF, [user("Ёлка стоит.")], user=None)
    await store.search(REF, "indexes the message", limit=1)
    with closing(apsw.Connection(str(path))) as connection:
        connection.execute("DELETE FROM text_index WHERE rowid > 0")
        connection.execute("INSERT INTO text_index (rowid, scope, terms) VALUES (1, 'c1', 'Ёлка')")

    (hit,) = await store.search(REF, "ёлка", limit=1)

    assert hit.score > 0
    assert await store.search(REF, "елка", limit=1) == ()
