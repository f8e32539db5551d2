"""Facts of a conversation do not depend on how its messages came in batches."""

import asyncio
from collections.abc import Sequence
from datetime import timedelta
from functools import cache

from hypothesis import example, given, settings, strategies as st

from remanence import Memory, Message, Policy
from remanence.testing import FixedClock

TURNS = (
    ("user", "Hi! I need a room for my father's party on 9 May."),
    ("assistant", "How many guests are coming?"),
    ("user", "fourteen then"),
    ("assistant", "Noted. Do you eat fish?"),
    ("user", "never, I can't stand it"),
    ("user", "My dentist appointment is on 12 June. I live in Lisbon."),
    ("assistant", "Which day suits you for the tasting?"),
    ("user", "only Tuesdays"),
    ("user", "Budget: 4,000 at most."),
    ("user", "Please never send me more than five bullets."),
    ("assistant", "All right."),
    ("user", "We raised the budget to 5,200."),
    ("user", "The dentist moved my appointment to 19 June. I live in Porto now."),
    ("user", "I live in Lisbon."),
    ("assistant", "Back again? Who comes along?"),
    ("user", "my two dogs and Mia"),
    ("user", "Ich gehe dienstags zum Chor. Die Probe ist um sieben."),
    ("user", "Der Chor probt nicht mehr dienstags, sondern donnerstags."),
    ("user", "Quiero invitar a 30 personas a la fiesta."),
    ("assistant", "El local solo admite 25 personas."),
    ("user", "pues 25"),
)


@settings(max_examples=6, deadline=None)
@given(st.sets(st.integers(1, len(TURNS) - 1)))
@example(set(range(1, len(TURNS))))
def test_any_split_of_a_conversation_into_batches_gives_the_same_facts(cuts: set[int]) -> None:
    assert asyncio.run(facts_of(sorted(cuts))) == facts_of_one_batch()


@cache
def facts_of_one_batch() -> list[tuple[object, ...]]:
    return asyncio.run(facts_of(()))


async def facts_of(cuts: Sequence[int]) -> list[tuple[object, ...]]:
    clock = FixedClock()
    at = clock.now() - timedelta(days=90)
    told = [
        Message.from_openai({"role": role, "content": text}).replace(
            created_at=at + timedelta(minutes=number)
        )
        for number, (role, text) in enumerate(TURNS)
    ]
    async with Memory.open("sqlite:///:memory:", policy=Policy.default(), clock=clock) as memory:
        chat = memory.conversation("c", user="ana")
        for start, stop in zip((0, *cuts), (*cuts, len(told)), strict=True):
            await chat.append(*told[start:stop])
            await chat.end()
        facts = await memory.facts.list(user="ana", history=True)
    summaries = {fact.id: fact.summary for fact in facts}
    return [
        (f.summary, f.type, f.tags, f.first_seq, f.last_seq, summaries.get(f.superseded_by or ""))
        for f in facts
    ]
