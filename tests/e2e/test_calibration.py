"""Token counts corrected by what providers report, and what a chat's model changes."""

from collections.abc import AsyncGenerator
from dataclasses import replace

import pytest
from tests.builders import chat_answer

from remanence import Chat, Conversation, Memory, Message, Policy
from remanence.chat import ChatAnswer, ChatRequest
from remanence.testing import FixedClock
from remanence.testing.models import ScriptedModel, scripted_answer

IN_MEMORY = "sqlite:///:memory:"
WORDS = "seven brave sailors crossed a quiet bay before the morning bell rang twice "
WINDOW = Policy(
    observe_tokens=100_000,
    observe_max_tokens=8_000,
    tail_tokens=3_000,
    tail_keep_tokens=500,
    reflect_tokens=(500, 500),
    max_context_tokens=4_000,
)


class Reporting:
    """A chat's model that reports a multiple of what we estimated."""

    def __init__(self, times: float, *, name: str = "reporting", estimated: bool = False) -> None:
        self.name = name
        self._times = times
        self._estimated = estimated

    async def complete(self, request: ChatRequest) -> ChatAnswer:
        tokens = int(request.context.stats.context_tokens * self._times)
        return chat_answer(
            request, "ok", model=self.name, input_tokens=tokens, estimated=self._estimated
        )

    async def stream(self, request: ChatRequest) -> AsyncGenerator[str | ChatAnswer, None]:
        yield await self.complete(request)


async def talk(conversation: Conversation, model: Reporting, turns: int) -> None:
    chat = Chat(conversation, model=model)
    for number in range(turns):
        await chat.send(f"{number} {WORDS * 10}")


async def test_a_context_leaves_room_for_what_the_model_counts_more() -> None:
    async with Memory.open(IN_MEMORY, policy=WINDOW, clock=FixedClock()) as memory:
        conversation = memory.conversation("a")
        await talk(conversation, Reporting(1.5), 40)
        context = await conversation.context(model="reporting")
        other = await conversation.context()
        counted = [message.tokens for message in await conversation.messages()]
        factor = memory.calibration["reporting"]

    assert factor == pytest.approx(1.5, abs=0.05)
    assert context.stats.token_factor == pytest.approx(factor, abs=0.05)
    assert context.stats.context_tokens * 1.45 < WINDOW.context_tokens
    assert context.stats.context_tokens < other.stats.context_tokens
    assert other.stats.token_factor == 1.0
    assert counted[0] == counted[2]


async def test_a_model_that_counts_less_does_not_make_the_window_larger() -> None:
    async with Memory.open(IN_MEMORY, policy=WINDOW, clock=FixedClock()) as memory:
        conversation = memory.conversation("a")
        await talk(conversation, Reporting(0.7), 40)
        context = await conversation.context(model="reporting")

        assert memory.calibration["reporting"] == pytest.approx(0.7, abs=0.05)
        assert context.stats.token_factor == 1.0


async def test_counts_of_our_own_and_small_requests_correct_nothing() -> None:
    async with Memory.open(IN_MEMORY, policy=WINDOW, clock=FixedClock()) as memory:
        await talk(memory.conversation("a"), Reporting(2, estimated=True), 10)
        await Chat(memory.conversation("b"), model=Reporting(9, name="small")).send("Hello.")

        assert memory.calibration == {}


async def test_the_answers_of_an_observers_model_correct_the_count_too() -> None:
    model = ScriptedModel(
        otherwise=lambda request: replace(
            answer := scripted_answer("- noted", request),
            usage=replace(answer.usage, input_tokens=2 * answer.usage.input_tokens),
        )
    )
    async with Memory.open(IN_MEMORY, model=model, clock=FixedClock()) as memory:
        conversation = memory.conversation("a")
        await conversation.append(Message.user(WORDS * 200))
        await conversation.flush(everything=True)

        assert memory.calibration["scripted-model"] > 1.1


async def test_another_model_in_a_chat_activates_notes_that_are_ready() -> None:
    policy = Policy(observe_tokens=300, tail_tokens=4_000, tail_keep_tokens=500, keep_last=2)
    async with Memory.open(IN_MEMORY, policy=policy, clock=FixedClock()) as memory:
        conversation = memory.conversation("a")
        await talk(conversation, Reporting(1, name="first"), 12)
        await conversation.flush()
        await talk(conversation, Reporting(1, name="first"), 1)
        before = await conversation.state()
        await talk(conversation, Reporting(1, name="second"), 1)
        after = await conversation.state()

    assert before.active_seq == 0
    assert before.observed_seq > 0
    assert after.active_seq > 0
