"""Forks of conversations: they go on with the same notes, and belong to the same user."""

import asyncio
from typing import Literal

import pytest

from remanence import Memory, Message, Policy, Settings
from remanence.background import Background
from remanence.errors import InvalidArgument, WrongUser
from remanence.runtime import Runtime
from remanence.stores import open_store
from remanence.testing import FaultyStore, FixedClock

MESSAGES = (
    Message.user("I fly to Lisbon on 2026-05-08 with LH 454.", id="m1"),
    Message.assistant("Noted.", id="m2"),
    Message.user("Which seat?", id="m3"),
)


async def test_a_fork_goes_on_with_the_notes_of_its_source() -> None:
    async with Memory.open("sqlite:///:memory:") as memory:
        chat = memory.conversation("trip", user="ana")
        await chat.append(*MESSAGES)
        await chat.flush(everything=True)
        await chat.append(Message.assistant("34K.", id="m4"))

        state = await chat.fork("trip-2", last_seq=3)

        fork = chat.sibling("trip-2")
        assert (state.user, state.observed_seq) == ("ana", 3)
        assert await fork.observations() != ()
        await fork.append(Message.assistant("12A.", id="m4"))
        assert [m.text for m in await fork.messages(after=2)] == ["Which seat?", "12A."]
        assert [m.text for m in await chat.messages(after=2)] == ["Which seat?", "34K."]
        assert await memory.check() == ()


async def test_another_user_cannot_fork_a_conversation() -> None:
    async with Memory.open("sqlite:///:memory:") as memory:
        await memory.conversation("trip", user="ana").append(*MESSAGES)

        with pytest.raises(WrongUser):
            await memory.conversation("trip", user="bob").fork("mine", last_seq=1)

        assert [state.ref.id for state in await memory.conversations()] == ["trip"]


async def test_a_fork_is_a_new_conversation() -> None:
    async with Memory.open("sqlite:///:memory:") as memory:
        chat = memory.conversation("trip", user="ana")
        await chat.append(*MESSAGES)

        with pytest.raises(InvalidArgument, match="conversation 'trip' already has messages"):
            await chat.fork("trip", last_seq=1)


async def test_a_fork_whose_source_forgets_meanwhile_has_the_tombstone() -> None:
    clock = FixedClock()
    store = FaultyStore(await open_store("sqlite:///:memory:", clock=clock))
    async with Background() as background:
        runtime = Runtime(
            store, settings=Settings(), policy=Policy(), clock=clock, background=background
        )
        chat = Memory(runtime).conversation("trip", user="ana")
        first, *_ = await chat.append(*MESSAGES)
        gate = store.hold("fork")
        async with asyncio.TaskGroup() as group:
            group.create_task(chat.fork("trip-2", last_seq=2))
            await asyncio.wait_for(gate.reached.wait(), 5)
            await chat.forget(first.id or "")
            gate.opened.set()
        kinds = [message.kind for message in await chat.sibling("trip-2").messages()]
    await store.close()

    assert kinds == ["forgotten", "message"]


@pytest.mark.parametrize("fork_ends", [False, True])
async def test_a_fork_keeps_the_facts_of_its_messages_when_its_source_is_deleted(
    *, fork_ends: bool
) -> None:
    async with Memory.open("sqlite:///:memory:") as memory:
        chat = memory.conversation("trip", user="ana")
        await chat.append(Message.user("I'm allergic to peanuts."), Message.assistant("Noted."))
        await chat.append(Message.user("I moved to York."))
        await chat.end()
        await chat.fork("trip-2", last_seq=2)
        fork = chat.sibling("trip-2")
        if fork_ends:
            await fork.end()
        await chat.delete()
        facts = await memory.facts.list(user="ana", history=True)

        assert [(fact.conversation, fact.first_seq) for fact in facts] == [("trip-2", 1)]
        assert "peanuts" in facts[0].summary
        assert "peanuts" in (await memory.conversation("new", user="ana").context()).to_text()
        await fork.delete()
        assert await memory.facts.list(user="ana", history=True) == ()


async def test_facts_of_a_message_outlive_it_while_a_fork_has_it() -> None:
    async with Memory.open("sqlite:///:memory:") as memory:
        chat = memory.conversation("trip", user="ana")
        await chat.append(Message.user("I'm allergic to peanuts.", id="m1"))
        await chat.end()
        await chat.fork("trip-2", last_seq=1)
        await memory.conversation("later", user="ana").append(Message.user("What may I eat?"))
        await memory.facts.save("Brings no peanuts", user="ana", conversation="later")
        left = []
        for name in ("trip", "trip-2"):
            await chat.sibling(name).forget("m1")
            left.append(await memory.facts.list(user="ana", history=True))

        assert {fact.conversation for fact in left[0]} == {"trip-2", "later"}
        assert left[1] == ()


@pytest.mark.parametrize("facts_place", ["prefix", "volatile"])
async def test_facts_of_messages_that_a_fork_shares_are_its_own(
    facts_place: Literal["prefix", "volatile"],
) -> None:
    policy = Policy(facts_place=facts_place, facts_idle_seconds=0)
    clock = FixedClock()
    async with Memory.open("sqlite:///:memory:", policy=policy, clock=clock) as memory:
        chat = memory.conversation("trip", user="ana")
        await chat.append(Message.user("I'm allergic to peanuts."), Message.assistant("Noted."))
        await chat.append(Message.user("I live in York."), Message.assistant("Noted."))
        await chat.end()
        clock.advance(60)
        await chat.fork("trip-2", last_seq=2)
        await chat.sibling("trip-2").append(Message.user("I live in Ghent."))
        await chat.sibling("trip-2").fork("trip-3", last_seq=2)
        fork, other = chat.sibling("trip-3"), chat.sibling("other")
        await fork.append(Message.user("Which peanuts do I live with in York?"))
        await other.append(Message.user("Which peanuts do I live with in York?"))
        contexts = [await one.context() for one in (fork, other)]
        known = [f"{context.system} {context.volatile}" for context in contexts]

        assert ["peanuts" in text for text in known] == [False, True]
        assert ["York" in text for text in known] == [True, True]


async def test_a_fork_shows_facts_of_later_messages_of_its_source_until_that_is_deleted() -> None:
    async with Memory.open("sqlite:///:memory:") as memory:
        chat = memory.conversation("trip", user="ana")
        await chat.append(*MESSAGES)
        await memory.facts.save("Lives in Porto.", user="ana", conversation="trip")
        await chat.fork("trip-2", last_seq=2)
        fork = chat.sibling("trip-2")
        shown = str((await fork.context()).system)
        (begun, *_) = await fork.log()
        await chat.delete()
        left = str((await fork.context()).system)

        assert ("Porto" in shown, "Porto" in left) == (True, False)
        assert "'trip'" in begun.detail
        assert len(await fork.messages()) == 2
