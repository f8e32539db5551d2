"""Users with thousands of facts: what was said long ago is neither lost nor out of reach."""

from datetime import timedelta

import pytest

from remanence import Fact, Memory, Message
from remanence.context_reader import SHOWN_FACTS
from remanence.facts.known import KNOWN_FACTS
from remanence.protocols import Store
from remanence.stores import open_store
from remanence.testing import FixedClock
from remanence.types import FactChanges

IN_MEMORY = "sqlite:///:memory:"
WISH = "Please answer without tables."
VITAL = "I'm allergic to peanuts and carry an EpiPen."


def fact(summary: str, number: int) -> Fact:
    at = FixedClock().now() - timedelta(days=400) + timedelta(minutes=number)
    return Fact(
        id=f"fact_{number:06}",
        tenant="default",
        user="ana",
        summary=summary,
        type="profile",
        created_at=at,
        valid_from=at,
        conversation="long ago",
        first_seq=number,
        last_seq=number,
        made_by="extractive/1",
    )


async def store_with(*first: str, then: int) -> Store:
    """A store in which the user's first facts are older than as many others."""
    summaries = (
        *first,
        *(f"Parcel {number} went to Hall {number % 90}." for number in range(then)),
    )
    store = await open_store(IN_MEMORY)
    facts = tuple(fact(summary, number) for number, summary in enumerate(summaries))
    await store.save_facts(FactChanges(facts=facts))
    return store


@pytest.mark.timeout(120)
async def test_a_request_to_forget_ends_a_fact_however_many_were_told_after_it() -> None:
    clock = FixedClock(prefix="x")
    told = (
        "My locker code is 4471.",
        "Ich habe eine Allergie gegen Kiwis.",
        "J'ai de l'asthme.",
        "I like figs.",
    )
    store = await store_with(*told, then=KNOWN_FACTS)
    async with Memory.open(store, clock=clock) as memory:
        chat = memory.conversation("c", user="ana")
        await chat.append(
            Message.user("Forget my locker code."),
            Message.assistant("I will."),
            Message.user("Vergiss bitte, dass ich eine Allergie gegen Kiwis habe."),
            Message.assistant("Mach ich."),
            Message.user("D'accord, oublie que j'ai de l'asthme."),
        )
        await chat.end()
        left = {fact.summary for fact in await memory.facts.list(user="ana")}
    await store.close()

    assert left.intersection(told) == {"I like figs."}


async def test_a_fact_ends_what_it_denies_however_many_were_told_in_between() -> None:
    clock = FixedClock(prefix="x")
    store = await store_with("I am allergic to kiwis.", then=KNOWN_FACTS)
    async with Memory.open(store, clock=clock) as memory:
        new = await memory.facts.save("I am not allergic to kiwis.", user="ana")
        found = await memory.facts.search("allergic to kiwis", user="ana")
    await store.close()

    assert found == (new,)


@pytest.mark.parametrize(
    ("newer", "kept"),
    [
        ("Parcel {} went to Hall 9.", (WISH, VITAL)),
        ("I have a severe allergy to additive E{}.", (WISH,)),
    ],
)
async def test_contexts_keep_wishes_and_what_is_vital_however_many_facts_are_newer(
    newer: str, kept: tuple[str, ...]
) -> None:
    clock = FixedClock()
    store = await open_store(IN_MEMORY, clock=clock)
    async with Memory.open(store, clock=clock) as memory:
        chat = memory.conversation("long ago", user="ana")
        await chat.append(Message.user(f"{WISH} {VITAL}"))
        await chat.end()
        clock.advance(400 * 86_400)
        facts = tuple(fact(newer.format(number), number) for number in range(SHOWN_FACTS))
        await store.save_facts(FactChanges(facts=facts))
        chat = memory.conversation("now", user="ana")
        await chat.append(Message.user("Hi!"))
        shown = (await chat.context()).to_text()
    await store.close()

    assert [text for text in kept if text not in shown] == []
