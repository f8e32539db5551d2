"""Turns of one conversation never mix, whoever makes them and wherever."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

import pytest
from tests.builders import chat_answer

from remanence import Chat, Memory, Message, Tool
from remanence.chat import BROKEN_OFF, ChatAnswer, ChatEvent, ChatRequest
from remanence.errors import Closed, TurnTaken, WrongUser
from remanence.protocols import ModelRequest
from remanence.settings import Settings
from remanence.types import ToolCallPart

PATIENT = Settings(turn_wait_seconds=60)


class Thinker:
    """Answers when its gate is open, and tells when it was asked."""

    def __init__(self, *, is_open: bool = True) -> None:
        self.asked = asyncio.Event()
        self.gate = asyncio.Event()
        self.calls = 0
        if is_open:
            self.gate.set()

    async def __call__(self, request: ModelRequest) -> str:
        self.calls += 1
        self.asked.set()
        await self.gate.wait()
        await asyncio.sleep(0)
        return "Gate B42."


class Caller:
    """A chat model that calls the tool `end`."""

    name = "caller"

    async def complete(self, request: ChatRequest) -> ChatAnswer:
        call = ToolCallPart(id="call-1", name="end", arguments="{}")
        return replace(chat_answer(request, ""), content=(call,))

    async def stream(self, request: ChatRequest) -> AsyncGenerator[str | ChatAnswer, None]:
        yield await self.complete(request)


@asynccontextmanager
async def opened(path: Path, settings: Settings = PATIENT) -> AsyncIterator[Memory]:
    async with Memory.open(f"sqlite:///{path / 'memory.db'}", settings=settings) as memory:
        yield memory


async def read_all(stream: AsyncIterator[ChatEvent]) -> object:
    return [event async for event in stream]


async def roles(memory: Memory) -> list[str]:
    return [message.role for message in await memory.conversation("trip").messages()]


async def test_two_chats_on_one_conversation_take_turns(tmp_path: Path) -> None:
    async with opened(tmp_path) as memory:
        one, two = memory.conversation("trip"), memory.conversation("trip")
        chats = [Chat(one, model=Thinker()), Chat(two, model=Thinker())]
        async with asyncio.TaskGroup() as group:
            for number in range(6):
                group.create_task(chats[number % 2].send(f"Question {number}"))

        assert await roles(memory) == ["user", "assistant"] * 6


async def test_two_memories_on_one_file_take_turns(tmp_path: Path) -> None:
    async with opened(tmp_path) as here, opened(tmp_path) as there:
        chats = [Chat(m.conversation("trip"), model=Thinker()) for m in (here, there)]
        async with asyncio.timeout(60), asyncio.TaskGroup() as group:
            for number in range(4):
                group.create_task(chats[number % 2].send(f"Question {number}"))

        assert await roles(here) == ["user", "assistant"] * 4


async def test_a_turn_that_lasts_longer_than_its_lease_stays_alone(tmp_path: Path) -> None:
    slow, quick = Thinker(is_open=False), replace(PATIENT, lease_seconds=1.5)
    async with opened(tmp_path, quick) as here, opened(tmp_path, quick) as there:
        async with asyncio.timeout(60), asyncio.TaskGroup() as group:
            group.create_task(Chat(here.conversation("trip"), model=slow).send("First?"))
            await slow.asked.wait()
            group.create_task(Chat(there.conversation("trip"), model=Thinker()).send("Second?"))
            await asyncio.sleep(1.4 * quick.lease_seconds)
            before = await roles(here)
            slow.gate.set()
        after = await roles(here)

    assert before == ["user"]
    assert after == ["user", "assistant"] * 2


async def test_a_turn_that_waits_too_long_is_refused_with_what_to_do(tmp_path: Path) -> None:
    slow = Thinker(is_open=False)
    impatient = Settings(turn_wait_seconds=0)
    async with opened(tmp_path, impatient) as here, opened(tmp_path, impatient) as there:
        async with asyncio.TaskGroup() as group:
            group.create_task(Chat(here.conversation("trip"), model=slow).send("First?"))
            await slow.asked.wait()
            for memory in (here, there):
                with pytest.raises(TurnTaken, match="turn_wait_seconds"):
                    await Chat(memory.conversation("trip"), model=Thinker()).send("Second?")
            slow.gate.set()

        assert await roles(here) == ["user", "assistant"]


async def test_a_turn_in_the_block_of_a_turn_is_refused_at_once_with_what_to_do(
    tmp_path: Path,
) -> None:
    async with opened(tmp_path) as memory:
        trip = memory.conversation("trip")
        async with trip.turn() as turn:
            with pytest.raises(TurnTaken, match=r"already holds the turn.*turn="):
                await Chat(memory.conversation("trip"), model=Thinker()).send("Which gate?")
            async with memory.conversation("another trip").turn():
                pass
            await trip.append(Message.user("Which gate?"), turn=turn)
        await Chat(trip, model=Thinker()).send("And which seat?")


async def test_a_task_that_began_a_stream_waits_while_another_reads_it(tmp_path: Path) -> None:
    async def read(stream: AsyncIterator[ChatEvent]) -> None:
        await waits.wait()
        await read_all(stream)

    waits = asyncio.Event()
    async with opened(tmp_path) as memory:
        chat = Chat(memory.conversation("trip"), model=Thinker())
        stream = chat.stream("Which gate?")
        await anext(stream)
        async with asyncio.timeout(60), asyncio.TaskGroup() as group:
            group.create_task(read(stream))
            asyncio.get_running_loop().call_later(0.1, waits.set)
            await chat.send("And which seat?")

        assert await roles(memory) == ["user", "assistant"] * 2


async def speak_without_end(request: ModelRequest) -> AsyncIterator[str]:
    yield "Gate"
    await asyncio.Event().wait()


async def test_closing_a_memory_keeps_the_answer_of_a_stream_and_ends_its_turn(
    tmp_path: Path,
) -> None:
    async with opened(tmp_path) as memory:
        stream = Chat(memory.conversation("trip"), model=speak_without_end).stream("Which gate?")
        await anext(stream)
    async with opened(tmp_path) as memory, memory.conversation("trip").turn():
        kept = await memory.conversation("trip").messages()

    with pytest.raises(Closed, match="before this turn was done"):
        await anext(stream)
    assert [message.text for message in kept] == ["Which gate?", f"Gate\n{BROKEN_OFF}"]


@pytest.mark.parametrize("streams", [False, True])
async def test_closing_a_memory_cancels_the_model_call_of_a_turn_and_those_that_wait_for_it(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, streams: bool
) -> None:
    async def speak(request: ModelRequest) -> AsyncIterator[str]:
        try:
            yield "Gate"
            asked.set()
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            cancelled.set()
            raise

    async def ask(text: str) -> None:
        chat = Chat(memory.conversation("trip"), model=speak)
        turn = read_all(chat.stream(text)) if streams else chat.send(text)
        with pytest.raises(Closed, match="closed before this turn was done"):
            await turn

    asked, cancelled = asyncio.Event(), asyncio.Event()
    async with asyncio.timeout(60), asyncio.TaskGroup() as group:
        async with opened(tmp_path) as memory:
            group.create_task(ask("Which gate?"))
            await asked.wait()
            group.create_task(ask("And which seat?"))
            await asyncio.sleep(0.05)
        assert cancelled.is_set()
    async with opened(tmp_path) as memory, memory.conversation("trip").turn():
        kept = [message.text for message in await memory.conversation("trip").messages()]

    assert kept == ["Which gate?", f"Gate\n{BROKEN_OFF}"][: 1 + streams]
    assert [record for record in caplog.records if record.levelname == "WARNING"] == []


async def test_a_tool_that_closes_the_memory_ends_its_turn(tmp_path: Path) -> None:
    async def end_all(arguments: object) -> str:
        await memory.close()
        return "closed"

    tool = Tool(name="end", description="Close.", parameters={"type": "object"}, handler=end_all)
    async with asyncio.timeout(60), opened(tmp_path) as memory:
        with pytest.raises(Closed):
            await Chat(memory.conversation("trip"), model=Caller(), tools=[tool]).send("End it.")


async def test_closing_a_memory_ends_a_turn_of_ones_own(tmp_path: Path) -> None:
    async with opened(tmp_path) as memory, memory.conversation("trip").turn():
        await memory.close()
        async with opened(tmp_path) as again, again.conversation("trip").turn():
            pass


async def test_a_turn_ends_at_once_when_it_is_cancelled(tmp_path: Path) -> None:
    slow = Thinker(is_open=False)
    async with opened(tmp_path) as here, opened(tmp_path) as there:
        turn = asyncio.create_task(Chat(here.conversation("trip"), model=slow).send("Which gate?"))
        await slow.asked.wait()
        turn.cancel()
        await asyncio.sleep(0)
        turn.cancel()
        await asyncio.wait({turn})
        async with there.conversation("trip").turn():
            pass
        await Chat(there.conversation("trip"), model=Thinker()).send("Which gate?")

        assert await roles(here) == ["user", "assistant"]


async def test_an_answer_is_not_written_to_a_conversation_that_was_deleted_meanwhile(
    tmp_path: Path,
) -> None:
    slow = Thinker(is_open=False)
    async with opened(tmp_path) as memory:
        chat = memory.conversation("trip")
        turn = asyncio.create_task(Chat(chat, model=slow).send("Which gate?"))
        await slow.asked.wait()
        await chat.delete()
        slow.gate.set()

        with pytest.raises(TurnTaken):
            await turn
        assert await chat.messages() == ()


async def test_a_stranger_does_not_wait_for_the_turn_of_another_user(tmp_path: Path) -> None:
    async with opened(tmp_path) as memory:
        ours = memory.conversation("trip", user="ana")
        await ours.append(Message.user("Hello."))
        async with ours.turn():
            with pytest.raises(WrongUser):
                await Chat(memory.conversation("trip", user="bob"), model=Thinker()).send("Hi.")


async def test_messages_of_a_turn_of_ones_own_are_appended_under_its_name(tmp_path: Path) -> None:
    async with opened(tmp_path) as memory:
        chat = memory.conversation("trip")
        async with chat.turn() as turn:
            await chat.append(Message.user("Which gate?"), turn=turn)
        with pytest.raises(TurnTaken):
            await chat.append(Message.assistant("Gate B42."), turn=turn)

        assert await roles(memory) == ["user"]
