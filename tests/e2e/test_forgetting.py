"""Forgetting: the text is gone from the memory and from the bytes of its files."""

from pathlib import Path
from random import Random

import pytest

from remanence import Memory, Message
from remanence.stores import open_store
from remanence.testing.store_contract.samples import START
from remanence.types import Fact, FactChanges, Owner

WORDS = (b"xylophone", b"quetzalcoatl", b"8814-2207")
SECRET = "My xylophone teacher Quetzalcoatl has the number 8814-2207."


def traces(path: Path) -> list[tuple[str, bytes]]:
    """Return the words of the secret that are left in the database's files, with the file."""
    files = [file for file in path.parent.iterdir() if file.name.startswith(path.name)]
    return [
        (file.name, word)
        for file in files
        for word in WORDS
        if word[:8] in file.read_bytes().lower()
    ]


def filler(number: int) -> Message:
    return Message.user(f"Line {number}: the meeting on day {number} was about chapter {number}.")


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "memory.db"


async def test_no_byte_of_a_deleted_conversation_is_left_when_delete_returns(path: Path) -> None:
    async with Memory.open(f"sqlite:///{path}") as memory:
        other = memory.conversation("other", user="ana")
        chat = memory.conversation("chat", user="ana")
        for number in range(40):
            await other.append(*[filler(number * 10 + line) for line in range(10)])
            await chat.append(Message.user(f"{number}. {SECRET}"))
        await chat.end()
        await chat.recall("teacher")
        assert traces(path)

        await chat.delete()

        assert traces(path) == []
        assert len(await other.messages()) == 400
        assert [p for p in await memory.check() if p.level != "info"] == []


async def test_no_byte_of_a_forgotten_fact_is_left_when_forget_returns(path: Path) -> None:
    async with Memory.open(f"sqlite:///{path}") as memory:
        for number in range(30):
            await memory.facts.save(f"Fact {number} is about chapter {number}", user="ana")
        fact = await memory.facts.save(SECRET, user="ana")
        assert traces(path)

        await memory.facts.forget(fact.id, user="ana")

        assert traces(path) == []
        assert len(await memory.facts.list(user="ana")) == 30


async def test_copies_that_sqlite_left_on_other_pages_are_gone_too(path: Path) -> None:
    random = Random(1)
    owner = Owner("default", "ana")
    facts = [
        Fact(
            id=f"fact_{number}",
            tenant="default",
            user="ana",
            summary=f"{random.randrange(10**9)} Number{number:03}. {'z' * random.randint(10, 600)}",
            type="knowledge",
            created_at=START,
            valid_from=START,
        )
        for number in range(300)
    ]
    random.shuffle(facts)
    store = await open_store(f"sqlite:///{path}")
    await store.save_facts(FactChanges(facts=tuple(facts)))

    for fact in facts[:250]:
        await store.forget_fact(owner, fact.id)
    await store.scrub()

    content = b"".join(file.read_bytes() for file in path.parent.glob("memory.db*"))
    left = [fact.id for fact in facts if fact.summary.split()[1].encode() in content]
    assert sorted(left) == sorted(fact.id for fact in facts[250:])
    await store.close()
