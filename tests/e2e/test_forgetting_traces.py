"""Forgetting of what a message left elsewhere: facts, notes of other messages, errors, files."""

import json
import unicodedata
from pathlib import Path

import pytest

from remanence import Memory, Message, memory_tools
from remanence.errors import InvalidArgument
from remanence.types import FilePart, TextPart, ToolCallPart


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


@pytest.mark.parametrize(
    ("text", "query"),
    [
        (unicodedata.normalize("NFD", "Frau Müller-Lüdenscheidt kam, {}."), "Müller-Lüdenscheidt"),
        ("رَقْمُ هَاتِفِي هو {}", "رقم هاتفي"),
        ("Donau\u00addampfschiff {}", "Donaudampfschiff"),
        ("My phone’s number {}", "My phone's number"),
        ("電話番号はＡＢ－{}です", "AB-"),
    ],
)
async def test_a_query_finds_all_that_say_it_in_whatever_form(
    url: str, text: str, query: str
) -> None:
    async with Memory.open(url) as memory:
        chat = memory.conversation("c", user="ana")
        for number in range(30):
            await chat.append(Message.user(text.format(number)))

        found = await chat.forget(query=query)

    assert len(found.messages) == 30


async def test_a_query_finds_tool_arguments_and_names_and_texts_of_files(url: str) -> None:
    arguments = json.dumps({"street": ["Größeweg"]})
    call = ToolCallPart(id="k", name="find", arguments=arguments)
    named = FilePart(media_type="image/png", name="Größeweg.png", data="AAAA")
    written = FilePart(media_type="text/plain", name="a.txt", data="R3LDtsOfZXdlZw==")
    see = TextPart(text="See the file.")
    async with Memory.open(url) as memory:
        chat = memory.conversation("c", user="ana")
        await chat.append(
            Message.assistant(tool_calls=[call], id="m1"),
            Message.tool("k", "Nothing.", id="m2"),
            Message(role="user", content=(see, named), id="m3"),
            Message(role="user", content=(see, written), id="m4"),
        )

        found = await chat.forget(query="Größeweg")

    assert found.message_ids == ("m1", "m3", "m4")
