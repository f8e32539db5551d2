"""Memory as tools: definitions for two dialects, and handlers that answer in words."""

import re
from collections.abc import Callable, Coroutine
from functools import partial
from typing import Any

import pytest

from remanence import Chat, Memory, Message, Policy, blocking, memory_tools
from remanence.conversation import Conversation
from remanence.types import TextPart, ToolCallPart, ToolResultPart

IN_MEMORY = "sqlite:///:memory:"


def caller(chat: Conversation) -> "Callable[..., Coroutine[object, object, str]]":
    """Calls a tool by its name, as an agent loop does."""
    handlers = {tool.name: tool.handler for tool in memory_tools(chat)}

    async def call(name: str, **arguments: object) -> str:
        return await handlers[name](arguments)

    return call


@pytest.mark.req("Z-90")
async def test_the_definitions_have_the_shapes_of_both_dialects() -> None:
    async with Memory.open(IN_MEMORY) as memory:
        tools = memory_tools(memory.conversation("a", user="ana"))

    names = ["memory_search", "memory_save", "memory_forget", "recall"]
    assert [tool.to_openai()["function"]["name"] for tool in tools] == names
    assert {tool.to_openai()["type"] for tool in tools} == {"function"}
    assert [tool.to_anthropic()["name"] for tool in tools] == names
    for tool in tools:
        schema = tool.to_anthropic()["input_schema"]
        assert schema == tool.to_openai()["function"]["parameters"] == tool.parameters
        assert set(schema["required"]) <= set(schema["properties"])


def test_tools_and_chats_name_a_conversation_that_cannot_be_awaited() -> None:
    with blocking.Memory.open(IN_MEMORY) as memory:
        conversation: Any = memory.conversation("a")
        for use in (memory_tools, partial(Chat, model="openai:m@http://127.0.0.1:9/v1")):
            with pytest.raises(TypeError, match=r"remanence\.blocking\.Conversation: use memory"):
                use(conversation)


@pytest.mark.req("Z-90")
async def test_a_model_saves_finds_and_forgets_a_fact() -> None:
    async with Memory.open(IN_MEMORY) as memory:
        chat = memory.conversation("a", user="ana")
        call = caller(chat)
        saved = await call("memory_save", summary="Ana keeps bees", type="behavior", tags=["b"])
        (fact,) = await memory.facts.list(user="ana")
        found = await call("memory_search", query="bees")
        forgotten = await call("memory_forget", id=fact.id)
        again = await call("memory_forget", id=fact.id)
        nothing = await call("memory_search", query="bees")

    assert saved == f"Kept: Ana keeps bees (id: {fact.id})"
    assert (fact.type, fact.tags) == ("behavior", ("b",))
    assert "[behavior] Ana keeps bees" in found
    assert fact.id in found
    assert forgotten == f"Forgotten: {fact.id}"
    assert "no fact" in again
    assert nothing.startswith("No fact was found.")


async def test_a_model_corrects_a_fact_by_its_id() -> None:
    async with Memory.open(IN_MEMORY) as memory:
        old = await memory.facts.save("The office dog is Rex", user="ana")
        call = caller(memory.conversation("a", user="ana"))
        await call("memory_save", summary="There is no dog any more", replaces=old.id)
        facts = await memory.facts.list(user="ana")

    assert [fact.summary for fact in facts] == ["There is no dog any more"]


async def test_a_model_recalls_what_was_said_with_its_place() -> None:
    async with Memory.open(IN_MEMORY) as memory:
        chat = memory.conversation("a", user="ana")
        await chat.append(Message.user("The tulips are yellow."), Message.assistant("Noted."))
        call = caller(chat)
        found = await call("recall", query="tulips", since="2020-01-01", role="user")
        nothing = await call("recall", query="tulips", until="2020-01-01T00:00:00Z")

    assert found.endswith("user message 1: The tulips are yellow.")
    assert nothing == "Nothing was found beyond the messages that you see already."


@pytest.mark.parametrize("before", ["", f"{'The harbour is cold and grey. ' * 99}\n"])
async def test_a_model_recalls_no_secret_and_the_program_does(before: str) -> None:
    said = f"{before}The password of the boat's wifi: sail-4417-boat"
    async with Memory.open(IN_MEMORY) as memory:
        chat = memory.conversation("a", user="ana")
        await chat.append(Message.user(said), Message.assistant("Noted."))
        found = await caller(chat)("recall", query="wifi password")
        (hit,) = await chat.recall("wifi password", limit=1)

    assert found.endswith("The password of the boat's wifi: [secret]")
    assert "sail-4417-boat" in hit.snippet


async def test_a_model_does_not_recall_what_its_prompt_has_word_for_word() -> None:
    policy = Policy.default(observe_tokens=200, tail_tokens=300, tail_keep_tokens=60)
    question = "Which gate does my flight leave from?"
    async with Memory.open(IN_MEMORY, policy=policy) as memory:
        chat = memory.conversation("a", user="ana")
        await chat.append(Message.user("My flight leaves from gate B22."), Message.assistant("Ok."))
        for number in range(12):
            text = f"Question {number} about the harbour, the ships and the fish. " * 3
            await chat.append(Message.user(text), Message.assistant("I see."))
        await chat.flush()
        await chat.append(Message.user(question))
        context = await chat.context()
        found = await caller(chat)("recall", query=question)
        in_prompt = await caller(chat)("recall", query="harbour ships fish", limit=20)
        searched = await chat.recall(question, limit=3)

    shown = {message.seq for message in context.messages}
    assert "message 1: My flight leaves from gate B22." in found
    assert question not in found
    seqs = {int(seq) for seq in re.findall(r"message (\d+):", in_prompt)}
    assert seqs
    assert not seqs & shown
    assert question in [hit.snippet for hit in searched]


async def test_arguments_may_be_the_text_of_a_json_object() -> None:
    async with Memory.open(IN_MEMORY) as memory:
        tools = memory_tools(memory.conversation("a", user="ana"))
        handlers = {tool.name: tool.handler for tool in tools}
        saved = await handlers["memory_save"]('{"summary": "Ana keeps bees"}')
        listed = await handlers["memory_search"]("")
        broken = await handlers["recall"]('{"query": ')
        series = await handlers["recall"]("[1]")

    assert saved.startswith("Kept: Ana keeps bees")
    assert "Ana keeps bees" in listed
    assert broken == "Error: arguments '{\"query\": ' are not JSON: give a JSON object"
    assert series == "Error: arguments '[1]' are not an object: give a JSON object"


@pytest.mark.parametrize(
    ("name", "arguments", "words"),
    [
        ("memory_search", {"query": " "}, "query is missing"),
        ("memory_search", {"query": 7}, "query 7 is not a text"),
        ("memory_save", {"summary": " "}, "summary is missing"),
        ("memory_save", {"summary": "x" * 9_000}, "9,000 characters"),
        ("memory_forget", {"id": None}, "id is missing"),
        ("recall", {"query": "x", "since": "yesterday"}, "'yesterday' is not a date"),
        ("memory_search", {"Query": "x"}, "argument 'Query' is unknown: use query, limit"),
        ("memory_search", {"limit": "x"}, "limit 'x' is not a whole number from 1 to 20"),
        ("memory_search", {"limit": True}, "limit True is not a whole number"),
        ("memory_search", {"limit": 0}, "limit 0 is not a whole number from 1 to 20"),
        ("recall", {"query": "x", "limit": 21}, "limit 21 is not a whole number from 1 to 20"),
        ("memory_save", {"summary": "x", "type": "weird"}, "type 'weird' is unknown: use knowl"),
        ("memory_save", {"summary": "x", "replaces": "bad"}, "'bad' is the id of no current fact"),
        ("memory_save", {"summary": "x", "replaces": "bad"}, "memory_search lists"),
        ("memory_forget", {"query": "x", "facts": ["f1"]}, "a query only finds what is meant"),
        ("recall", {"query": "x", "role": ["user"]}, "role ['user'] is not a text"),
    ],
)
async def test_arguments_that_make_no_sense_are_answered_in_words(
    name: str, arguments: dict[str, object], words: str
) -> None:
    async with Memory.open(IN_MEMORY) as memory:
        answer = await caller(memory.conversation("a", user="ana"))(name, **arguments)

    assert answer.startswith("Error: ")
    assert words in answer


async def test_a_search_without_a_query_lists_what_was_learned_last() -> None:
    async with Memory.open(IN_MEMORY) as memory:
        for summary in ("Ana keeps bees", "Ana plays the viola", "Ana lives in Porto"):
            await memory.facts.save(summary, user="ana")
        call = caller(memory.conversation("a", user="ana"))
        listed = await call("memory_search", limit=2)

    assert [line.partition(" (")[0] for line in listed.splitlines()] == [
        "- [knowledge] Ana lives in Porto",
        "- [knowledge] Ana plays the viola",
    ]


async def test_what_the_user_asks_to_forget_is_found_first_and_then_forgotten() -> None:
    async with Memory.open("sqlite:///:memory:") as memory:
        chat = memory.conversation("chat", user="ana")
        await chat.append(Message.user("I live in Lisbon.", id="m1"))
        await chat.end()
        await chat.append(Message.user("Forget where I live, please.", id="m2"))
        (forget,) = (tool for tool in memory_tools(chat) if tool.name == "memory_forget")
        (fact,) = await memory.facts.list(user="ana")

        found = await forget.handler({"query": "lives in Lisbon"})
        assert fact.id in found
        assert "I live in Lisbon. (id: m1)" in found
        assert await memory.facts.list(user="ana") == (fact,)

        done = await forget.handler({"facts": [fact.id], "messages": ["m1"]})

        assert done == f"Forgotten: {fact.id}, m1"
        assert await memory.facts.list(user="ana") == ()
        assert [message.kind for message in await chat.messages()] == ["forgotten", "message"]
        assert await chat.recall("Lisbon") == ()


@pytest.mark.parametrize("begin", ["", "We walked to the harbour. " * 7])
async def test_a_list_of_what_may_be_forgotten_shows_a_model_no_secret(begin: str) -> None:
    async with Memory.open(IN_MEMORY) as memory:
        chat = memory.conversation("a", user="ana")
        await chat.append(Message.user(f"{begin}My token is tok_Tiger!99x_8814-2207.", id="m1"))

        listed = await caller(chat)("memory_forget", query="tok_Tiger")

    assert listed.startswith("- message 1: user: ")
    assert "Tiger" not in listed


async def test_what_was_said_in_another_conversation_is_found_and_forgotten_there() -> None:
    async with Memory.open(IN_MEMORY) as memory:
        for name, user in (("old", "ana"), ("theirs", "bo"), ("nobodys", None)):
            chat = memory.conversation(name, user=user)
            await chat.append(Message.user("My number is 555-0199.", id="m1"))
        chat = memory.conversation("new", user="ana")
        await chat.append(Message.user("Forget my number, please.", id="m1"))
        call = caller(chat)

        found = await call("memory_forget", query="555-0199")
        others = [
            await call("memory_forget", messages=["m1"], conversation=name)
            for name in ("theirs", "nobodys", "none")
        ]
        done = await call("memory_forget", messages=["m1"], conversation="old")

        assert found == "- message 1: user: My number is 555-0199. (id: m1, conversation: old)"
        assert others == [
            f"Error: the user has no conversation {name!r}: use one from the results"
            for name in ("theirs", "nobodys", "none")
        ]
        assert done == "Forgotten: m1"
        assert await memory.recall("555-0199", user="ana") == ()
        assert [m.text for m in await chat.messages()] == ["Forget my number, please."]


async def test_the_list_in_which_a_fact_or_message_was_chosen_is_forgotten_with_it() -> None:
    async with Memory.open(IN_MEMORY) as memory:
        old, chat = (memory.conversation(name, user="ana") for name in ("old", "new"))
        await old.append(Message.user("The bees are in Porto.", id="m1"))
        fact = await memory.facts.save("Ana keeps bees", user="ana")
        other = await memory.facts.save("Ana plays the viola", user="ana")
        call = caller(chat)
        for number, query in enumerate(("keeps bees", "the bees are", "viola")):
            asked = ToolCallPart(id=f"c{number}", name="memory_forget", arguments="{}")
            listed = await call("memory_forget", query=query)
            result = ToolResultPart(call_id=asked.id, content=(TextPart(text=listed),))
            await chat.append(
                Message(role="assistant", content=(asked,)), Message(role="tool", content=(result,))
            )
        done = [
            await call("memory_forget", facts=[fact.id]),
            await call("memory_forget", messages=["m1"], conversation="old"),
        ]
        results = [message.full_text for message in await chat.messages() if message.tool_results]

    assert done == [f"Forgotten: {fact.id}", "Forgotten: m1"]
    assert ["bees" in result for result in results] == [False, False, False]
    assert f"id: {other.id}" in results[2]


async def test_what_is_to_be_forgotten_is_looked_for_in_the_named_conversation_alone() -> None:
    async with Memory.open(IN_MEMORY) as memory:
        for name in ("old", "older"):
            chat = memory.conversation(name, user="ana")
            await chat.append(Message.user("My number is 555-0199.", id=f"of-{name}"))
        chat = memory.conversation("new", user="ana")
        await chat.append(Message.user("My number is 555-0199.", id="of-new"))
        call = caller(chat)
        found = {
            name: await call("memory_forget", query="555-0199", conversation=name)
            for name in ("old", "new", "none")
        }

    assert found == {
        "old": "- message 1: user: My number is 555-0199. (id: of-old, conversation: old)",
        "new": "- message 1: user: My number is 555-0199. (id: of-new)",
        "none": "Error: the user has no conversation 'none': use one from the results",
    }


@pytest.mark.parametrize(
    ("name", "argument"),
    [("memory_search", "query"), ("memory_save", "summary"), ("memory_forget", "id")],
)
async def test_without_a_user_the_tools_keep_and_find_nothing(name: str, argument: str) -> None:
    async with Memory.open(IN_MEMORY) as memory:
        call = caller(memory.conversation("a"))
        answer = await call(name, **{argument: "x"})

    assert answer.startswith("Error: this conversation has no user to keep facts for")
    assert "memory.conversation(id, user=" in answer
