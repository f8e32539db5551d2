import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import closing
from pathlib import Path

import apsw
import pytest

from remanence.protocols import Store
from remanence.stores import open_store
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
    parts: int = connection.execute("SELECT count(DISTINCT segid) FROM text_index_idx").get
    return 0 < parts < 10


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
