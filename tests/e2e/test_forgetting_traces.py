"""Forgetting of what a message left elsewhere: facts, notes of other messages, errors, files."""

from pathlib import Path

import pytest

from remanence import Memory, Message, memory_tools
from remanence.errors import InvalidArgument


@pytest.fixture
def url(tmp_path: Path) -> str:
    return f"sqlite:///{tmp_path / 'memory.db'}"


@pytest.mark.parametrize("erase", ["message", "conversation"])
async def test_a_fact_that_a_model_saved_goes_with_the_round_it_was_said_in(
    url: str, erase: str
) -> None:
    async with Memory.open(url) as memory:
        chat = memory.conversation("c", user="ana")
        save = next(tool for tool in memory_tools(chat) if tool.name == "memory_save")
        await chat.append(Message.user("I like tea.", id="m1"))
        await save.handler({"summary": "Ana likes tea"})
        await chat.append(Message.user("My number is 555-0199.", id="m2"))
        await chat.append(Message.assistant("I keep that.", id="m3"))
        await save.handler({"summary": "Ana's phone number is 555-0199"})
        new = await memory.conversation("new", user="ana").context()
        here = await chat.context()

        receipt = await (chat.forget("m2") if erase == "message" else chat.delete())

        assert "555-0199" in new.to_text()
        assert "Ana's phone number is 555-0199" in here.to_text()
        assert receipt is not None
        left = [fact.summary for fact in await memory.facts.list(user="ana")]
        assert left == (["Ana likes tea"] if erase == "message" else [])
        assert len(receipt.facts) == (1 if erase == "message" else 2)


async def test_a_fact_cannot_name_the_conversation_of_another_user(url: str) -> None:
    async with Memory.open(url) as memory:
        await memory.conversation("c", user="ben").append(Message.user("Hello."))
        with pytest.raises(InvalidArgument, match="'ana' has no conversation 'c'"):
            await memory.facts.save("Ana keeps bees", user="ana", conversation="c")
