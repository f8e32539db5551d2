"""REQUIREMENTS 1.1: background work of the lango preset, its workers and its end."""

import asyncio
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any

import pytest
from tests.builders import chat_answer
from tests.requirements.samples import IN_MEMORY, noting, ranges, scripted, turns

from remanence import Chat, Memory, Policy, Settings
from remanence.chat import ChatAnswer, ChatRequest, Done, TextDelta
from remanence.conversation import Conversation
from remanence.errors import Closed, ModelError
from remanence.protocols import ObserveRequest
from remanence.testing import FixedClock, ScriptedObserver
from remanence.testing.observers import ObserveAnswer, brief_notes
from remanence.types import Draft

LANGO = Policy.lango(enabled=True)
BEYOND_A_SHORT_WAIT = 0.3
"""Seconds: far below `shutdown_timeout_seconds`."""


class CountingObserver:
    """Counts how many calls run at once; each call waits until *together* calls are under way."""

    def __init__(self, *, together: int) -> None:
        self.at_once = self.most_at_once = 0
        self.sessions: list[str] = []
        self.reached = asyncio.Event()
        self._together = together

    async def observe(self, request: ObserveRequest) -> Draft:
        self.sessions.append(request.conversation.id)
        self.at_once += 1
        self.most_at_once = max(self.most_at_once, self.at_once)
        if self.at_once == self._together:
            self.reached.set()
        await self.reached.wait()
        for _ in range(200):  # others that may run come to their turn
            await asyncio.sleep(0)
        self.at_once -= 1
        return brief_notes(request)


async def due(memory: Memory, *names: str) -> list[Conversation]:
    """Conversations with more unobserved tokens than the threshold."""
    chats = [memory.conversation(name) for name in names]
    for chat in chats:
        await chat.append(*turns(12, tokens=110, counter="cjk"))
    return chats


@pytest.mark.req("L-47")
@pytest.mark.parametrize("workers", [1, 2, 3])
async def test_as_many_conversations_are_observed_at_once_as_there_are_workers(
    workers: int,
) -> None:
    observer = CountingObserver(together=workers)
    settings = Settings(url=IN_MEMORY, workers=workers)
    async with Memory.open(settings=settings, policy=LANGO, observer=observer) as memory:
        chats = await due(memory, "a", "b", "c", "d", "e", "f")
        async with asyncio.timeout(60):
            for chat in chats:
                await chat.flush()

    assert observer.most_at_once == workers
    assert sorted(observer.sessions) == ["a", "b", "c", "d", "e", "f"]


@pytest.mark.req("L-26", "L-27", "L-29", "LS-12")
async def test_closing_waits_for_the_observation_in_progress_and_keeps_its_note(
    tmp_path: Path,
) -> None:
    url = f"sqlite:///{tmp_path / 'lango.db'}"
    gate = asyncio.Event()
    async with scripted([noting(60)], policy=LANGO, url=url, gate=gate) as (chat, observer, _):
        await chat.append(*turns(10, tokens=110, counter="cjk"))
        async with asyncio.timeout(60):
            await observer.called.wait()
        asyncio.get_running_loop().call_later(BEYOND_A_SHORT_WAIT, gate.set)

    async with scripted(policy=Policy.lango(), url=url) as (chat, _, _):
        notes = await chat.observations()
    assert ranges(notes) == [(1, 10)]
    assert len(observer.requests) == 1


@pytest.mark.req("L-28", "LS-12")
async def test_while_a_memory_closes_it_takes_no_more_messages_or_work(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'lango.db'}"
    gate, observer = asyncio.Event(), ScriptedObserver()
    observer = ScriptedObserver(gate=gate)
    memory = await Memory.open(url, policy=LANGO, observer=observer)
    chat, other = memory.conversation("a"), memory.conversation("b")
    await chat.append(*turns(10, tokens=110, counter="cjk"))
    async with asyncio.timeout(60):
        await observer.called.wait()
    closing = asyncio.create_task(memory.close())
    await asyncio.sleep(0)  # it has begun
    assert not closing.done()
    for late in (chat, other):
        with pytest.raises(Closed):
            await late.append(*turns(10, tokens=110, counter="cjk", start=10))
        with pytest.raises(Closed):
            await late.flush()
    gate.set()
    await closing

    async with Memory.open(url, policy=Policy.lango()) as again:
        states = [await again.conversation(name).state() for name in ("a", "b")]
    assert [(state.last_seq, state.observed_seq) for state in states] == [(10, 10), (0, 0)]
    assert [request.conversation.id for request in observer.requests] == ["a"]


@pytest.mark.req("LS-12")
async def test_closing_drains_the_conversations_that_were_signalled_before(tmp_path: Path) -> None:
    settings = Settings(url=f"sqlite:///{tmp_path / 'lango.db'}", workers=1)
    gate = asyncio.Event()
    observer = ScriptedObserver(gate=gate)
    names = ("a", "b", "c", "d", "e")
    async with Memory.open(settings=settings, policy=LANGO, observer=observer) as memory:
        await due(memory, *names)
        async with asyncio.timeout(60):
            await observer.called.wait()
        asyncio.get_running_loop().call_soon(gate.set)

    async with Memory.open(settings=settings, policy=Policy.lango()) as memory:
        observed = [(await memory.conversation(name).state()).observed_seq for name in names]
    assert observed == [12] * 5


class ScriptedSpeaker:
    """A chat's model that answers in two pieces and keeps what it was asked, as it was then."""

    name = "speaker"

    def __init__(self) -> None:
        self.requests: list[ChatRequest] = []
        self.asked: list[dict[str, Any]] = []  # requests as JSON

    async def complete(self, request: ChatRequest) -> ChatAnswer:
        raise AssertionError("these tests stream")

    async def stream(self, request: ChatRequest) -> AsyncGenerator[str | ChatAnswer, None]:
        self.requests.append(request)
        self.asked.append(request.context.to_anthropic())
        yield "Gate "
        yield "B42."
        yield chat_answer(request, "Gate B42.")


@pytest.mark.req("L-N2")
async def test_notes_that_come_while_an_answer_is_streamed_wait_for_the_next_turn() -> None:
    gate, speaker = asyncio.Event(), ScriptedSpeaker()
    async with scripted([noting(60)], policy=LANGO, gate=gate) as (conversation, observer, _):
        chat = Chat(conversation, model=speaker, system="You help.")
        await conversation.append(*turns(10, tokens=110, counter="cjk"))
        async with asyncio.timeout(60):
            await observer.called.wait()
        events = []
        async for event in chat.stream("Which gate?"):
            events.append(event)
            gate.set()
            await conversation.flush()
            assert len(await conversation.observations()) == 1
        reply = events[-1]
        first = speaker.requests[0].context.to_anthropic()
        async for _ in chat.stream("And when?"):
            pass

    assert events[:-1] == [TextDelta(text="Gate "), TextDelta(text="B42.")]
    assert isinstance(reply, Done)
    assert reply.reply.text == "Gate B42."
    assert first == speaker.asked[0]
    assert ["notes-of-1-to-10" in str(request["system"]) for request in speaker.asked] == [
        False,
        True,
    ]


@pytest.mark.req("L-N2")
async def test_notes_come_whole_and_only_to_the_next_context(tmp_path: Path) -> None:
    gate = asyncio.Event()
    async with scripted([noting(60)], policy=LANGO, gate=gate) as (chat, observer, _):
        await chat.append(*turns(10, tokens=110, counter="cjk"))
        async with asyncio.timeout(60):
            await observer.called.wait()
        built = await chat.context(system="You help.")
        before = built.to_anthropic()
        assert await chat.observations() == ()
        gate.set()
        await chat.flush()
        after = built.to_anthropic()
        next_one = await chat.context(system="You help.")

    assert before == after
    assert not any(block.segment_id for block in built.system)
    assert [block.text.split()[0] for block in next_one.system if block.segment_id] == [
        "notes-of-1-to-10"
    ]


@pytest.mark.req("L-12")
async def test_a_failed_observation_loses_nothing_and_is_made_in_the_next_cycle() -> None:
    clock = FixedClock()
    down = ModelError("overloaded", "busy")
    answers: list[ObserveAnswer] = [down, down, noting(60)]
    async with scripted(answers, policy=LANGO, clock=clock) as (chat, observer, _):
        await chat.append(*turns(12, tokens=110, counter="cjk"))
        states = []
        for _ in range(3):
            states.append(await chat.flush())
            clock.advance(LANGO.retry_max_seconds)
        kept = await chat.messages()
        notes = await chat.observations()

    assert [(state.observed_seq, state.unobserved_tokens) for state in states] == [
        (0, 1_320),
        (0, 1_320),
        (12, 0),
    ]
    assert [len(request.messages) for request in observer.requests] == [12, 12, 12]
    assert [message.seq for message in kept] == list(range(1, 13))
    assert ranges(notes) == [(1, 12)]
