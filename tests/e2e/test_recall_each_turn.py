"""What a chat looks up by itself: passages of earlier messages that a turn asks about."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Literal

import pytest

from remanence import Chat, Conversation, Memory, Message, Policy
from remanence.protocols import ModelRequest
from remanence.testing import FixedClock
from remanence.tokens import count_tokens

SMALL = Policy.default(
    observe_tokens=400,
    tail_tokens=1_000,
    tail_keep_tokens=300,
    keep_last=2,
    reflect_tokens=(150, 600),
)
TALK = (
    "The bread was good again and the market was quiet, so we walked home slowly along the canal "
    "and looked at the boats. "
)
LOCKER = "Oh, and the number on the tag is QX-4417, that's the locker of Ilse."
HEADING = "Retrieved memories"


class Listening:
    """A model that keeps its prompts and says nothing of interest."""

    def __init__(self) -> None:
        self.prompts: list[str] = []

    async def __call__(self, request: ModelRequest) -> str:
        self.prompts.append(f"{request.stable}\n\n{request.prompt}")
        return "I see."


@asynccontextmanager
async def long_ago(policy: Policy = SMALL, *facts: str) -> AsyncIterator[Conversation]:
    """A conversation in which *facts* were said, each inside a long message, some 40 turns ago."""
    async with Memory.open("sqlite:///:memory:", policy=policy, clock=FixedClock()) as memory:
        conversation = memory.conversation("a")
        for fact in facts or (LOCKER,):
            await conversation.append(
                Message.user(f"{TALK * 5}{fact} {TALK * 5}"), Message.assistant("Noted.")
            )
        for number in range(40):
            await conversation.append(
                Message.user(f"Day {number}. {TALK}"), Message.assistant("How nice.")
            )
        await conversation.flush()
        await conversation.context()
        await conversation.flush()
        assert (await conversation.state()).tail_seq > 2 * len(facts or (LOCKER,))
        yield conversation


async def test_a_turn_that_asks_for_something_said_long_ago_gets_it_word_for_word() -> None:
    model = Listening()
    async with long_ago() as conversation:
        await Chat(conversation, model=model).send("How do I open Ilse's locker?")

    assert HEADING in model.prompts[-1]
    assert f"- {LOCKER}" in model.prompts[-1].split(HEADING)[1]


async def test_a_turn_that_asks_for_nothing_that_was_said_gets_nothing() -> None:
    model = Listening()
    async with long_ago() as conversation:
        await Chat(conversation, model=model).send("Zebras!")

    assert HEADING not in model.prompts[-1]


@pytest.mark.parametrize("off", [{"recall_each_turn": False}, {"recall_tokens": 0}])
async def test_it_can_be_switched_off(off: dict[str, int]) -> None:
    model = Listening()
    async with long_ago(SMALL.replace(**off)) as conversation:
        await Chat(conversation, model=model).send("How do I open Ilse's locker?")

    assert HEADING not in model.prompts[-1]


async def test_recalled_text_stands_behind_the_last_breakpoint_and_moves_no_prefix() -> None:
    async with long_ago() as conversation:
        await conversation.append(Message.user("How do I open Ilse's locker?"))
        plain = (await conversation.context(system="You help.")).to_anthropic()
        asked = (
            await conversation.context(system="You help.", recall="How do I open Ilse's locker?")
        ).to_anthropic()

    newest = asked["messages"][-1]["content"]
    assert asked["system"] == plain["system"]
    assert asked["messages"][:-1] == plain["messages"][:-1]
    assert "cache_control" in newest[-2]
    assert HEADING in newest[-1]["text"]


async def test_a_message_that_the_context_shows_is_not_repeated() -> None:
    async with long_ago() as conversation:
        await conversation.append(Message.user("Now Ilse's locker is QX-9000."))
        await conversation.append(Message.user("Ilse's locker?"))
        context = await conversation.context(recall="Ilse's locker?")

    assert "QX-4417" in context.volatile
    assert "QX-9000" not in context.volatile


@pytest.mark.parametrize("place", ["prefix", "volatile"])
async def test_a_fact_of_a_message_that_the_context_shows_is_not_repeated(
    place: Literal["prefix", "volatile"],
) -> None:
    clock, policy = FixedClock(), Policy.default(facts_place=place)
    async with Memory.open("sqlite:///:memory:", policy=policy, clock=clock) as memory:
        conversation = memory.conversation("a", user="ana")
        await conversation.append(Message.user("My flight LH 454 leaves on 2026-05-08 at 13:25."))
        clock.advance(301)
        await conversation.flush()
        facts = await memory.facts.list(user="ana")
        turn = "When does my flight LH 454 leave?"
        await conversation.append(Message.user(turn))
        here = await conversation.context(recall=turn)
        other = memory.conversation("b", user="ana")
        await other.append(Message.user(turn))
        there = await other.context(recall=turn)

    assert [fact.conversation for fact in facts] == ["a"]
    assert "13:25" not in here.volatile
    assert ("13:25" in there.volatile) == (place == "volatile")


async def test_nothing_is_looked_up_while_the_whole_conversation_is_shown() -> None:
    async with Memory.open("sqlite:///:memory:") as memory:
        conversation = memory.conversation("a")
        await conversation.append(Message.user(LOCKER), Message.user("Ilse's locker?"))
        context = await conversation.context(recall="Ilse's locker?")

    assert context.volatile == ""


async def test_recalled_passages_fit_into_their_budget_best_first() -> None:
    facts = [f"Locker {number} of Ilse has the code K-{number}00{number}." for number in range(9)]
    policy = SMALL.replace(recall_tokens=60)
    async with long_ago(policy, *facts) as conversation:
        context = await conversation.context(recall="What is the code of locker 7 of Ilse?")
        without = await conversation.context()

    recalled = context.volatile.removesuffix(without.volatile)
    assert "K-7007" in recalled
    assert 0 < count_tokens(recalled) <= 60 + count_tokens(f"{HEADING}, oldest first:\n\n")
    assert context.stats.volatile_tokens == count_tokens(context.volatile)


async def test_a_pasted_page_does_not_hide_the_question_below_it() -> None:
    page = "Minutes of the meeting. The roof was discussed at length by all members. " * 40
    async with long_ago() as conversation:
        context = await conversation.context(recall=f"{page}\nAnd which locker was Ilse's?")

    assert "QX-4417" in context.volatile


@pytest.mark.parametrize(
    ("said", "asked", "value"),
    [
        ("Mein Hausarzt ist Dr. Wendland in der Lindenstraße.", "Wie heißt mein Arzt?", None),
        ("Mein Hausarzt ist Dr. Wendland.", "Wie heißt mein Hausarzt?", "Wendland"),
        ("Notre plombier s'appelle Gaspard Morel.", "C'est qui, notre plombier ?", "Gaspard"),
        ("我的护照号码是E83920175。", "我的护照号码是多少?", "E83920175"),
        ("歯医者の予約は17日15時に変わりました。", "歯医者はいつでしたっけ?", "17日15時"),
        ("저는 땅콩 알레르기가 있어요.", "저 무슨 알레르기 있다고 했죠?", "땅콩"),
        ("Zofia swears by cedar against the moths.", "What did Zofia use for the moths?", "cedar"),
    ],
)
async def test_a_question_shares_a_word_with_its_answer_in_any_script(
    said: str, asked: str, value: str | None
) -> None:
    async with long_ago(SMALL, said) as conversation:
        context = await conversation.context(recall=asked)

    assert (value or said) in context.volatile if value else HEADING not in context.volatile
