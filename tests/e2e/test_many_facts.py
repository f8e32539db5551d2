"""Users with thousands of facts: what was said long ago is neither lost nor out of reach."""

from datetime import timedelta

from remanence import Fact, Memory, Message
from remanence.facts.extraction import KNOWN_FACTS
from remanence.protocols import Store
from remanence.stores import open_store
from remanence.testing import FixedClock
from remanence.types import FactChanges

IN_MEMORY = "sqlite:///:memory:"


async def store_with(clock: FixedClock, *first: str, then: int) -> Store:
    """A store in which the user's first facts are older than as many others."""
    summaries = (
        *first,
        *(f"Parcel {number} went to Hall {number % 90}." for number in range(then)),
    )
    begin = clock.now() - timedelta(days=400)
    facts = tuple(
        Fact(
            id=f"fact_{number:06}",
            tenant="default",
            user="ana",
            summary=summary,
            type="profile",
            created_at=begin + timedelta(minutes=number),
            valid_from=begin + timedelta(minutes=number),
            conversation="long ago",
            first_seq=number,
            last_seq=number,
            made_by="extractive/1",
        )
        for number, summary in enumerate(summaries)
    )
    store = await open_store(IN_MEMORY)
    await store.save_facts(FactChanges(facts=facts))
    return store


async def test_a_request_to_forget_ends_a_fact_however_many_were_told_after_it() -> None:
    clock = FixedClock(prefix="x")
    told = ("My locker code is 4471.", "Ich habe eine Allergie gegen Kiwis.", "I like figs.")
    store = await store_with(clock, *told, then=KNOWN_FACTS)
    async with Memory.open(store, clock=clock) as memory:
        chat = memory.conversation("c", user="ana")
        await chat.append(
            Message.user("Forget my locker code."),
            Message.assistant("I will."),
            Message.user("Vergiss bitte, dass ich eine Allergie gegen Kiwis habe."),
        )
        await chat.end()
        left = {fact.summary for fact in await memory.facts.list(user="ana")}

    assert left.intersection(told) == {"I like figs."}


async def test_a_fact_ends_what_it_denies_however_many_were_told_in_between() -> None:
    clock = FixedClock(prefix="x")
    store = await store_with(clock, "I am allergic to kiwis.", then=KNOWN_FACTS)
    async with Memory.open(store, clock=clock) as memory:
        new = await memory.facts.save("I am not allergic to kiwis.", user="ana")
        found = await memory.facts.search("allergic to kiwis", user="ana")

    assert found == (new,)
