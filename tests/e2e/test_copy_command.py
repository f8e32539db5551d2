"""`remanence copy`: a memory moves from SQLite to PostgreSQL and back."""

import asyncio
import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import AsyncExitStack, closing
from pathlib import Path
from subprocess import CompletedProcess

import apsw
import psycopg
import pytest
from tests.postgres import new_database

from remanence import Memory, Message, Policy
from remanence.errors import InvalidArgument, StoreUnavailable
from remanence.memory import Opening
from remanence.stores import open_store
from remanence.stores.copy import TABLES, copy_store
from remanence.types import Fact

pytestmark = pytest.mark.postgres

Cli = Callable[..., CompletedProcess[str]]

WORDS = "the quick brown fox jumps over a lazy dog near the old river bank at dawn "
NOT_COPIED = {"states": {"lease_owner", "lease_until", "indexed_seq"}}
EMPTY = {"api_keys", "event_consumers", "model_calls"}
WITHOUT_COPY = {
    "call_limits",
    "facts_index",
    "look_rules",
    "schema_migrations",
    "text_index",
    "turns",
}


@pytest.fixture
def database(postgres: str) -> Iterator[str]:
    with new_database(postgres) as url:
        yield url


async def embed(texts: Sequence[str]) -> list[list[float]]:
    return [[float(len(text)), 1.0] for text in texts]


def open_memory(url: str) -> Opening[Memory]:
    policy = Policy(
        observe_tokens=100,
        tail_tokens=200,
        tail_keep_tokens=50,
        keep_last=1,
        reflect_tokens=(100, 200),
    )
    return Memory.open(url, policy=policy, embedder=embed)


async def fill(url: str) -> None:
    async with open_memory(url) as memory:
        chat = memory.conversation("a", user="ana")
        for number in range(20):
            await chat.append(
                Message.user(f"{number} {WORDS * 2}"), Message.assistant(f"noted {number} ✓")
            )
            await chat.context(system="You help.")
            await chat.flush()
        await memory.conversation("b").append(Message.user("I moved to Lisbon in spring."))
        home = memory.conversation("c", user="ana")
        await home.append(Message.user("I live in Lisbon."))
        await home.end()
        await memory.facts.save("I live in Lisbon", user="ana")
        await memory.facts.save("Ana likes rye bread.", user="ana")


async def remembered(url: str) -> object:
    """All that a user sees of a memory."""
    async with open_memory(url) as memory:
        chat = memory.conversation("a", user="ana")
        return (
            await chat.messages(),
            await chat.snapshot(),
            await chat.log(),
            [(hit.kind, hit.text) for hit in await chat.recall("lazy fox", limit=20)],
            [hit.text for hit in await memory.conversation("b").recall("Lisbon", limit=5)],
            await memory.facts.search("rye bread", user="ana"),
            [problem for problem in await memory.check() if problem.level != "info"],
        )


async def test_a_memory_moves_to_postgresql_and_back(
    cli: Cli, database: str, tmp_path: Path
) -> None:
    here, back = f"sqlite:///{tmp_path}/here.db", f"sqlite:///{tmp_path}/back.db"
    await fill(here)
    seen = await remembered(here)

    for source, target in ((here, database), (database, back)):
        result = await asyncio.to_thread(cli, "copy", source, target, "--json")
        assert result.returncode == 0, result.stderr
        for table in json.loads(result.stdout)["tables"]:
            assert table["source"] == table["target"]
            assert table["source"]["rows"] or table["source"]["table"] in EMPTY
        assert await remembered(target) == seen

    await fill(database)  # new rows have new keys


async def test_new_rows_of_a_copy_get_vectors_where_the_newest_were_erased(
    cli: Cli, database: str, tmp_path: Path
) -> None:
    here, back = f"sqlite:///{tmp_path}/here.db", f"sqlite:///{tmp_path}/back.db"
    async with open_memory(here) as memory:
        for name in ("old", "older"):
            await say(memory, name, "I moved to Lisbon in spring.")
        await memory.facts.forget((await memory.facts.list(user="ana"))[0].id, user="ana")
        await memory.conversation("older", user="ana").delete()

    for source, target in ((here, database), (database, back)):
        result = await asyncio.to_thread(cli, "copy", source, target)
        assert result.returncode == 0, result.stderr
    for url in (database, back):
        async with open_memory(url) as memory:
            fact = await say(memory, "new", "The ferry to Porto leaves at noon.")
            hits = await memory.conversation("new", user="ana").recall("unlike", kind="message")
            facts = await memory.facts.search("unlike", user="ana")

        assert [hit.text for hit in hits] == ["The ferry to Porto leaves at noon."]
        assert fact in facts


async def say(memory: Memory, name: str, text: str) -> Fact:
    """Have a message noted and a fact kept, each with its vectors, and return the fact."""
    chat = memory.conversation(name, user="ana")
    await chat.append(Message.user(text))
    fact = await memory.facts.save(f"Ana said: {text}", user="ana")
    await chat.flush(everything=True)
    return fact


async def test_a_database_that_is_not_empty_is_not_copied_to(
    cli: Cli, database: str, tmp_path: Path
) -> None:
    here = f"sqlite:///{tmp_path}/here.db"
    await fill(here)
    await fill(database)

    result = await asyncio.to_thread(cli, "copy", here, database)

    assert result.returncode == 1
    assert "is not empty" in result.stderr


async def test_of_two_copies_to_one_database_at_once_the_second_finds_it_not_empty(
    database: str, tmp_path: Path
) -> None:
    here = f"sqlite:///{tmp_path}/here.db"
    await fill(here)
    for target in (f"sqlite:///{tmp_path}/target.db", database):
        async with AsyncExitStack() as stack:
            source, *ends = [await open_store(url) for url in (here, target, target)]
            for store in (source, *ends):
                stack.push_async_callback(store.close)
            copies = [asyncio.create_task(copy_store(source, end)) for end in ends]
            await asyncio.wait(copies)
            (error,) = filter(None, (copy.exception() for copy in copies))

        assert isinstance(error, InvalidArgument)
        assert "is not empty" in str(error)
        assert await remembered(target) == await remembered(here)


async def test_a_copy_that_was_interrupted_is_refused_until_it_is_repeated_elsewhere(
    cli: Cli, database: str, tmp_path: Path
) -> None:
    here = f"sqlite:///{tmp_path}/here.db"
    await fill(here)
    for target in (f"sqlite:///{tmp_path}/target.db", database):
        await refuse_facts(target)
        copied = await asyncio.to_thread(cli, "copy", here, target)
        assert copied.returncode == 1
        assert "not now" in copied.stderr

        with pytest.raises(StoreUnavailable, match=r"unfinished copy: .* repeat 'remanence copy'"):
            await open_memory(target)
        for command in (("doctor", "--db", target), ("copy", here, target)):
            result = await asyncio.to_thread(cli, *command)
            assert result.returncode == 1
            assert "repeat 'remanence copy' to a new database" in " ".join(result.stderr.split())


async def refuse_facts(url: str) -> None:
    """Have a new database refuse facts, which are copied after messages."""
    await (await open_store(url)).close()
    if url.startswith("sqlite:"):
        with closing(apsw.Connection(url.removeprefix("sqlite:///"))) as file:
            file.execute(
                "CREATE TRIGGER refuse BEFORE INSERT ON facts BEGIN SELECT RAISE(ABORT, 'not now'); END"
            )
        return
    with psycopg.connect(url) as connection:
        connection.execute(
            "CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql "
            "AS $$ BEGIN RAISE 'not now'; END $$"
        )
        connection.execute("CREATE TRIGGER refuse BEFORE INSERT ON facts EXECUTE FUNCTION refuse()")


async def test_every_column_is_copied(database: str) -> None:
    async with Memory.open(database):
        pass
    with psycopg.connect(database) as connection:
        found = connection.execute(
            "SELECT table_name, column_name FROM information_schema.columns "
            "WHERE table_schema = 'public' AND table_name NOT LIKE 'procrastinate%' "
            "AND is_generated = 'NEVER'"
        ).fetchall()
    copied = {
        (table.name, column.strip().strip('"'))
        for table in TABLES
        for column in f"{table.key}, {table.columns}".split(",")
    }
    left_out = {(table, column) for table, columns in NOT_COPIED.items() for column in columns}

    assert {row for row in found if row[0] not in WITHOUT_COPY} == copied | left_out
