"""A clock that was far ahead for some time leaves no fact that later ones cannot end."""

import asyncio
from datetime import timedelta

import pytest
from hypothesis import example, given, settings, strategies as st

from remanence import Memory, Message
from remanence.testing import FixedClock

DAY = timedelta(days=1).total_seconds()
SAID = (
    "I live in Lisbon.",
    "My shoe size is 41.",
    "I live in Porto.",
    "saved: My car is a red Fiat.",
    "Please forget my shoe size.",
    "I live in Lisbon.",
    "saved: My car is not a red Fiat.",
    "I live in Rome.",
    "My shoe size is 42.",
)
PLACES = st.integers(0, len(SAID))


@pytest.mark.timeout(120)
@settings(max_examples=12, deadline=None)
@given(PLACES, PLACES, st.integers(2, 4_000))
@example(0, 1, 1_400)
@example(0, len(SAID) - 1, 1_400)
def test_facts_told_under_a_clock_that_was_ahead_are_as_if_it_had_been_right(
    start: int, stop: int, days: int
) -> None:
    assert asyncio.run(facts_of(start, stop, days)) == asyncio.run(facts_of(0, 0, 0))


async def facts_of(start: int, stop: int, days: int) -> tuple[list[str], list[str]]:
    """Current facts, and those that a new context lacks, where the clock is ahead in start..stop."""
    clock = FixedClock()
    async with Memory.open("sqlite:///:memory:", clock=clock) as memory:
        for number, text in enumerate(SAID):
            ahead = days * DAY if start <= number < stop else 0
            clock.advance(DAY + ahead)
            await tell(memory, f"chat {number}", text)
            clock.advance(-ahead)
        clock.advance(DAY)
        chat = memory.conversation(f"new {start} {stop} {days}", user="ana")
        await chat.append(Message.user("Hi!"))
        shown = (await chat.context()).to_text()
        facts = await memory.facts.list(user="ana")
    summaries = sorted(fact.summary for fact in facts)
    return summaries, [text for text in summaries if text not in shown]


async def tell(memory: Memory, name: str, text: str) -> None:
    if text.startswith("saved: "):
        await memory.facts.save(text.removeprefix("saved: "), user="ana")
        return
    chat = memory.conversation(name, user="ana")
    await chat.append(Message.user(text))
    await chat.end()
