"""Models that a chat is given otherwise than over its own protocols."""

import subprocess
import sys
from collections.abc import AsyncGenerator
from typing import Any

import pytest
from tests.wire.servers import ModelServer
from tests.wire.talking import SYSTEM, conversing

from remanence import Chat, Message, Tool
from remanence.chat import ChatAnswer, ChatRequest, Done, TextDelta, open_chat_model
from remanence.clock import SystemClock
from remanence.errors import ModelError
from remanence.protocols import ModelRequest
from remanence.testing.models import ScriptedModel


async def test_a_function_gets_the_notes_as_stable_text_and_the_messages_as_prompt() -> None:
    asked: list[ModelRequest] = []

    async def answer(request: ModelRequest) -> str:
        asked.append(request)
        return "B42."

    async with conversing() as conversation:
        await conversation.append(Message.user("Hello."), Message.assistant("Good day."))
        reply = await Chat(conversation, model=answer, system=SYSTEM).send("Which gate?")

    assert reply.text == "B42."
    assert asked[0].stable == SYSTEM
    assert "user: Hello.\n\nassistant: Good day.\n\nuser: Which gate?" in asked[0].prompt
    assert (asked[0].purpose, asked[0].user) == ("chat", "ana")


async def test_a_function_answers_a_stream_in_one_piece() -> None:
    async def answer(request: ModelRequest) -> str:
        return "B42."

    async with conversing() as conversation:
        chat = Chat(conversation, model=answer)
        events = [event async for event in chat.stream("Which gate?")]

    assert events[0] == TextDelta(text="B42.")
    assert isinstance(events[1], Done)


async def test_a_function_that_yields_answers_a_stream_as_it_yields() -> None:
    async def pieces(request: ModelRequest) -> AsyncGenerator[str, None]:
        yield "Gate "
        yield "B42."

    async with conversing() as conversation:
        chat = Chat(conversation, model=pieces)
        events = [event async for event in chat.stream("Which gate?")]
        reply = await chat.send("And again?")

    assert events[:2] == [TextDelta(text="Gate "), TextDelta(text="B42.")]
    assert isinstance(events[2], Done)
    assert events[2].reply.text == reply.text == "Gate B42."


async def test_a_character_that_a_model_cuts_between_two_pieces_is_streamed_whole() -> None:
    """A server in JavaScript cuts a text between two units of UTF-16."""

    async def pieces(request: ModelRequest) -> AsyncGenerator[str, None]:
        for piece in ("Sure ", "\ud83d", "\ude00 and", " \ud83c", "\udf0d \udc00"):
            yield piece

    async with conversing() as conversation:
        chat = Chat(conversation, model=pieces)
        *texts, done = [event async for event in chat.stream("Ready?")]

    assert texts == [TextDelta(text=text) for text in ("Sure ", "😀 and", " ", "🌍 ?")]
    assert isinstance(done, Done)
    assert done.reply.text == "Sure 😀 and 🌍 ?"


async def test_a_model_of_the_observers_kind_may_answer_too() -> None:
    model = ScriptedModel(["B42."])
    async with conversing() as conversation:
        reply = await Chat(conversation, model=model).send("Which gate?")

    assert reply.usage.purpose == "chat"
    assert len(model.requests) == 1


async def test_a_model_that_takes_one_text_refuses_tools() -> None:
    async def nothing(arguments: dict[str, Any]) -> str:
        return ""

    tool = Tool(name="gate", description="", parameters={"type": "object"}, handler=nothing)
    async with conversing() as conversation:
        chat = Chat(conversation, model=ScriptedModel(), tools=[tool])
        with pytest.raises(ModelError, match="cannot call tools"):
            await chat.send("Which gate?")


class Counting:
    """Answers with the number of messages in its context; its usage is that of a function."""

    name = "counting"

    async def complete(self, request: ChatRequest) -> ChatAnswer:
        async def count(asked: ModelRequest) -> str:
            return f"{len(request.context.messages)} messages"

        return await open_chat_model(count, clock=SystemClock()).complete(request)

    async def stream(self, request: ChatRequest) -> AsyncGenerator[str | ChatAnswer, None]:
        answer = await self.complete(request)
        yield "some "
        yield answer


async def test_a_chat_model_of_ones_own_gets_the_whole_context() -> None:
    async with conversing() as conversation:
        chat = Chat(conversation, model=Counting())
        first = await chat.send("Which gate?")
        events = [event async for event in chat.stream("And when?")]

    assert first.text == "1 messages"
    assert isinstance(events[-1], Done)
    assert events[-1].reply.text == "3 messages"


async def test_ollama_is_reached_where_its_variable_says(
    server: ModelServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OLLAMA_BASE_URL", f"{server.url}/v1")
    async with conversing() as conversation:
        await Chat(conversation, model="ollama:llama3.2").send("Hello.")

    assert server.received[0].body["model"] == "llama3.2"
    assert "prompt_cache_key" not in server.received[0].body


async def test_a_server_of_ones_own_needs_no_key(
    server: ModelServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("OPENAI_API_KEY")
    async with conversing() as conversation:
        reply = await Chat(conversation, model=f"openai:mine@{server.url}/v1").send("Hello.")

    assert (reply.text, reply.usage.cost_usd) == ("[Fact] noted", None)


@pytest.mark.parametrize(
    ("model", "variable"),
    [
        ("anthropic:claude-haiku-4-5", "ANTHROPIC_API_KEY"),
        ("openai:gpt-4o-mini", "OPENAI_API_KEY"),
        ("google:gemini-2.5-flash", "GOOGLE_API_KEY"),
    ],
)
async def test_a_missing_key_is_told_when_the_chat_is_made(
    model: str, variable: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("ANTHROPIC_API_KEY", "OPENAI_API_KEY"):
        monkeypatch.delenv(name)
    async with conversing() as conversation:
        with pytest.raises(ModelError, match=variable) as caught:
            Chat(conversation, model=model)

    assert caught.value.reason == "auth"


@pytest.mark.parametrize("model", ["", "gpt-4o", "nowhere:model"])
async def test_what_is_no_model_is_refused(model: str) -> None:
    async with conversing() as conversation:
        with pytest.raises(ModelError) as caught:
            Chat(conversation, model=model)

    assert caught.value.reason == "unknown_model"


def test_a_named_model_without_the_extra_says_what_to_install() -> None:
    program = (
        "import asyncio, sys; sys.modules['anthropic'] = None\n"
        "from remanence import Chat, Memory\n"
        "async def main():\n"
        "    async with Memory.open('sqlite:///:memory:') as memory:\n"
        "        Chat(memory.conversation('c'), model='anthropic:claude-haiku-4-5')\n"
        "asyncio.run(main())"
    )

    run = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, check=False, text=True
    )

    assert "pip install '.[models]' in a checkout" in run.stderr


@pytest.mark.timeout(60)  # a process of its own loads a provider's client
def test_a_chat_over_a_protocol_of_its_own_does_without_pydantic_ai() -> None:
    program = "import sys; sys.modules['pydantic_ai'] = None\nimport remanence.providers.openai"

    subprocess.run([sys.executable, "-c", program], check=True)


def test_a_chat_with_a_function_loads_no_provider() -> None:
    program = (
        "import asyncio, sys\n"
        "from remanence import Chat, Memory\n"
        "async def answer(request): return 'B42.'\n"
        "async def main():\n"
        "    async with Memory.open('sqlite:///:memory:') as memory:\n"
        "        await Chat(memory.conversation('c'), model=answer).send('Which gate?')\n"
        "asyncio.run(main())\n"
        "print(sorted({'pydantic_ai', 'openai', 'anthropic', 'httpx2'} & set(sys.modules)))"
    )

    run = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, check=True, text=True
    )

    assert run.stdout.strip() == "[]"
