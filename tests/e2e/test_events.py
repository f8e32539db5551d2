"""Events: a program follows what background work and forgetting did, over restarts too."""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import aclosing
from pathlib import Path

import pytest

from remanence import Budget, Event, Memory, Message, Policy, blocking
from remanence.errors import Closed, InvalidArgument
from remanence.testing import FixedClock
from remanence.testing.models import ScriptedModel

IN_MEMORY = "sqlite:///:memory:"
POLICY = Policy(observe_tokens=60, tail_tokens=120, tail_keep_tokens=20, keep_last=2)
TURN = (
    Message.user("My flight LH 454 to San Francisco leaves on 2026-05-08 at 13:25, seat 34K."),
    Message.assistant("Noted: LH 454 on 8 May 2026 at 13:25, seat 34K, gate B42 at 12:40."),
)


async def talk(memory: Memory, conversation: str = "trip", *, user: str | None = "ana") -> None:
    """Have turns of a conversation observed and activated."""
    chat = memory.conversation(conversation, user=user)
    for _ in range(4):
        await chat.append(*TURN)
        await chat.flush()
        await chat.context()


async def test_a_follower_sees_steps_as_they_are_committed() -> None:
    async with Memory.open(IN_MEMORY, policy=POLICY, clock=FixedClock()) as memory:
        await talk(memory, "earlier")
        before = (await memory.read_events()).last
        async with asyncio.timeout(30), aclosing(memory.events(after=before)) as events:
            first = asyncio.ensure_future(anext(events))
            await talk(memory)
            seen = [await first, await anext(events)]

    assert [(event.type, event.conversation) for event in seen] == [
        ("observed", "trip"),
        ("activated", "trip"),
    ]
    assert seen[0].data["first_seq"] == 1
    assert "LH 454" not in repr(seen)


async def test_a_follower_without_a_position_begins_with_the_next_event() -> None:
    async with Memory.open(IN_MEMORY, policy=POLICY, clock=FixedClock()) as memory:
        await talk(memory, "earlier")
        async with asyncio.timeout(30), aclosing(memory.events()) as events:
            first = asyncio.ensure_future(anext(events))
            await memory.read_events()  # reads come in order, so that of the follower was before
            await talk(memory)

            assert (await first).conversation == "trip"


async def test_a_page_has_the_types_and_the_conversation_that_were_asked_for() -> None:
    async with Memory.open(IN_MEMORY, policy=POLICY, clock=FixedClock()) as memory:
        await talk(memory)
        await talk(memory, "other")
        await memory.conversation("trip", user="ana").delete()

        page = await memory.read_events(after=0, types=["forgotten", "observed"])

    kinds = {(event.type, event.conversation) for event in page.events}
    assert kinds == {("observed", "other"), ("forgotten", "trip")}


async def test_an_unknown_type_is_refused_with_those_there_are() -> None:
    async with Memory.open(IN_MEMORY) as memory:
        with pytest.raises(InvalidArgument, match=r"types='noted' is impossible: known are observ"):
            await memory.read_events(types=["noted"])  # type: ignore[list-item]  # the test's point


async def test_a_spent_budget_is_an_event_without_amounts() -> None:
    budget = Budget(scope="conversation", hard_tokens=1)
    model = ScriptedModel(otherwise="#1-2 user: flight LH 454 on 2026-05-08 at 13:25, seat 34K.")
    async with Memory.open(
        IN_MEMORY, policy=POLICY, model=model, budgets=[budget], clock=FixedClock()
    ) as memory:
        await talk(memory)
        page = await memory.read_events(after=0, types=["budget"])

    assert [(event.conversation, event.data) for event in page.events] == [
        ("trip", {"scope": "conversation", "level": "hard"})
    ]


async def test_a_consumer_gets_an_event_again_until_it_is_taken() -> None:
    tries: list[int] = []
    done = asyncio.Event()

    async def send(event: Event) -> None:
        tries.append(event.id)
        if tries == [1, 2]:
            raise ConnectionError("the receiver restarts")
        if event.id == 3:
            done.set()

    async with Memory.open(IN_MEMORY, policy=POLICY, clock=FixedClock()) as memory:
        await talk(memory)
        await delivered(memory, send, done)

    assert tries[:4] == [1, 2, 2, 3]


async def test_an_event_that_is_always_refused_holds_up_its_own_tenant_alone() -> None:
    taken: list[tuple[str, int]] = []
    done = asyncio.Event()

    async def send(event: Event) -> None:
        if event.tenant == "acme":
            raise ConnectionError("the receiver of acme is gone")
        taken.append((event.tenant, event.id))
        if len(taken) == 4:
            done.set()

    async with Memory.open(IN_MEMORY, clock=FixedClock()) as memory:
        for tenant in ("acme", "rival"):
            for number in range(4):
                await memory.facts.save(f"keeps {number} bees", user="ana", tenant=tenant)
        await delivered(memory, send, done)

    assert taken == [("rival", number) for number in range(1, 5)]


async def test_a_consumer_goes_on_after_a_restart(tmp_path: Path) -> None:
    async def deliver_all(conversation: str) -> list[int]:
        ids: list[int] = []
        done = asyncio.Event()

        async def send(event: Event) -> None:
            ids.append(event.id)
            if event.id == last:
                done.set()

        async with Memory.open(
            f"sqlite:///{tmp_path}/memory.db", policy=POLICY, clock=FixedClock()
        ) as memory:
            await talk(memory, conversation)
            last = (await memory.read_events()).last
            await delivered(memory, send, done)
        return ids

    first, second = await deliver_all("trip"), await deliver_all("other")

    assert first == list(range(1, len(first) + 1))
    assert second[0] in (len(first), len(first) + 1)  # the last one may be sent twice
    assert second == list(range(second[0], second[-1] + 1))


async def delivered(
    memory: Memory, send: Callable[[Event], Awaitable[None]], done: asyncio.Event
) -> None:
    """Deliver events until *done* is set."""
    delivery = asyncio.create_task(memory.deliver_events("hook", send))
    async with asyncio.timeout(30):
        await done.wait()
    delivery.cancel()
    await asyncio.wait({delivery})


async def test_no_byte_of_a_forgotten_users_names_stays(tmp_path: Path) -> None:
    async with Memory.open(
        f"sqlite:///{tmp_path}/memory.db", policy=POLICY, clock=FixedClock()
    ) as memory:
        await talk(memory, "chat-of-marguerite", user="marguerite")
        await memory.facts.save("keeps bees", user="marguerite")
        await talk(memory, "second-chat", user="marguerite")
        await memory.conversation("second-chat", user="marguerite").delete()

        await memory.forget_user("marguerite")

        left = (await memory.read_events(after=0)).events
        files = await asyncio.to_thread(
            lambda: b"".join(file.read_bytes() for file in tmp_path.glob("memory.db*"))
        )
    assert [(event.type, event.conversation, event.data) for event in left] == [
        ("forgotten", None, {"conversations": 1, "facts": 1}),
    ]
    assert b"marguerite" not in files
    assert b"second-chat" not in files


async def test_facts_of_a_forgotten_users_conversations_are_counted() -> None:
    async with Memory.open(IN_MEMORY, policy=POLICY, clock=FixedClock()) as memory:
        chat = memory.conversation("trip", user="ana")
        await chat.append(Message.user("I live in Lisbon and keep bees."))
        await chat.end()
        receipt = await memory.forget_user("ana")
        page = await memory.read_events(after=0, types=["forgotten"])

    assert receipt.facts
    assert [event.data["facts"] for event in page.events] == [len(receipt.facts)]


async def test_an_event_names_the_facts_that_a_request_to_forget_ended() -> None:
    told = (
        "I have epilepsy.",
        "Please forget that I have epilepsy.",
        "Please forget that I smoke.",
    )
    async with Memory.open(IN_MEMORY) as memory:
        chat = memory.conversation("health", user="ana")
        for text in told:
            await chat.append(Message.user(text))
            await chat.end()
        (fact,) = await memory.facts.list(user="ana", history=True)
        page = await memory.read_events(after=0, types=["facts"])

    found = [(event.data.get("requests"), event.data.get("ended")) for event in page.events]
    assert found == [(None, None), (1, fact.id), (1, "")]


async def test_an_event_names_a_fact_that_was_told_and_taken_back_at_once() -> None:
    async with Memory.open(IN_MEMORY) as memory:
        chat = memory.conversation("health", user="ana")
        await chat.append(Message.user("I have epilepsy."))
        await chat.append(Message.user("Please forget that I have epilepsy."))
        await chat.end()
        (fact,) = await memory.facts.list(user="ana", history=True)
        page = await memory.read_events(after=0, types=["facts"])

    assert [event.data.get("ended") for event in page.events] == [fact.id]


async def test_following_ends_with_the_memory() -> None:
    async with Memory.open(IN_MEMORY) as memory:
        events = memory.events()
        following = asyncio.ensure_future(anext(events))
        await memory.read_events()
    with pytest.raises(Closed):
        await following


def test_a_program_without_an_event_loop_reads_events() -> None:
    with blocking.Memory.open(IN_MEMORY, policy=POLICY, clock=FixedClock()) as memory:
        chat = memory.conversation("trip", user="ana")
        chat.append(*TURN, *TURN)
        chat.flush()

        first = next(memory.events(after=0))

    assert (first.id, first.type) == (1, "observed")
