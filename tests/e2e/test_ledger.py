"""The ledger through the public API: every model call counts, and none is waited for."""

import asyncio
from datetime import timedelta

import pytest

from remanence import Memory, Message, Policy
from remanence.background import Background
from remanence.conversation import Conversation
from remanence.costs.ledger import Ledger
from remanence.errors import ModelError
from remanence.facts import ModelFacts
from remanence.observers.llm import ModelObserver
from remanence.stores import open_store
from remanence.testing import FixedClock
from remanence.testing.faults import FaultyStore
from remanence.testing.models import ScriptedModel
from remanence.testing.store_contract.samples import usage

IN_MEMORY = "sqlite:///:memory:"
POLICY = Policy(observe_tokens=10, keep_last=0, note_ratio=0.5)
FLIGHT = Message.user("My flight is LH 454 to San Francisco on 2026-05-08, ticket QF-7781.")
NOTE = "#1 [IMPORTANT Fact] user: flies LH 454 to San Francisco on 2026-05-08"


async def told(chat: Conversation) -> None:
    await chat.append(FLIGHT)
    await chat.flush()


@pytest.mark.req("X-19")
async def test_a_call_and_its_repair_are_in_the_totals_of_conversation_and_user() -> None:
    model = ScriptedModel([NOTE, "SKIP"], name="scripted:one")
    async with Memory.open(IN_MEMORY, policy=POLICY, model=model, clock=FixedClock()) as memory:
        await told(memory.conversation("trip", user="ana"))
        of_chat = await memory.conversation("trip", user="ana").usage()
        of_user = await memory.usage(user="ana")
        of_other = await memory.usage(user="bo")

    assert [(total.purpose, total.calls) for total in of_chat] == [("observe", 1), ("repair", 1)]
    assert of_user == of_chat
    assert of_other == ()
    assert {request.user for request in model.requests} == {"ana"}


async def test_a_user_without_a_tenant_is_one_of_the_default_tenant() -> None:
    async with Memory.open(IN_MEMORY) as memory:
        for tenant in ("default", "acme"):
            chat = memory.conversation("trip", user="ana", tenant=tenant)
            await chat.append(FLIGHT)
            await chat.record_call(usage())
        (of_user,) = await memory.usage(user="ana")
        (of_all,) = await memory.usage()

    assert (of_user.calls, of_all.calls) == (1, 2)


@pytest.mark.req("X-19")
async def test_a_failed_call_is_counted_too() -> None:
    model = ScriptedModel([ModelError("overloaded", "busy")])
    async with Memory.open(IN_MEMORY, policy=POLICY, model=model, clock=FixedClock()) as memory:
        chat = memory.conversation("trip")
        await told(chat)
        (total,) = await chat.usage()

    assert (total.calls, total.failed_calls, total.input_tokens) == (1, 1, 0)


async def test_the_calls_of_an_observer_that_brings_its_model_are_counted() -> None:
    observer = ModelObserver(ScriptedModel([NOTE]), repair=False)
    async with Memory.open(IN_MEMORY, policy=POLICY, observer=observer) as memory:
        chat = memory.conversation("trip")
        await told(chat)

        assert [total.calls for total in await chat.usage()] == [1]


async def test_the_calls_of_an_extractor_that_brings_its_model_are_counted() -> None:
    extractor = ModelFacts(ScriptedModel(['[{"summary": "Ana lives in Lisbon.", "source": [1]}]']))
    async with Memory.open(IN_MEMORY, policy=POLICY, extractor=extractor) as memory:
        chat = memory.conversation("trip", user="ana")
        await chat.append(Message.user("I live in Lisbon."), Message.assistant("Noted."))
        await chat.end()

        assert [(total.purpose, total.calls) for total in await chat.usage()] == [("facts", 1)]


async def test_the_calls_of_a_function_are_counted_with_estimated_tokens() -> None:
    async def model(request: object) -> str:
        return NOTE

    async with Memory.open(IN_MEMORY, policy=POLICY, model=model) as memory:
        chat = memory.conversation("trip")
        await told(chat)
        totals = await chat.usage()

    assert sum(total.output_tokens for total in totals) > 0
    assert {total.cost_usd for total in totals} == {None}


async def test_calls_are_dated_by_the_clock_of_the_memory() -> None:
    model, clock = ScriptedModel(otherwise=NOTE), FixedClock()
    async with Memory.open(IN_MEMORY, policy=POLICY, model=model, clock=clock) as memory:
        await told(memory.conversation("trip"))
        today = await memory.usage(since=clock.now())
        later = await memory.usage(since=clock.now() + timedelta(seconds=1))

    assert sum(total.calls for total in today) == len(model.requests) > 0
    assert later == ()


async def test_a_deleted_conversation_leaves_its_cost_with_its_user() -> None:
    model = ScriptedModel(otherwise=NOTE)
    async with Memory.open(IN_MEMORY, policy=POLICY, model=model, clock=FixedClock()) as memory:
        chat = memory.conversation("trip", user="ana")
        await told(chat)
        spent = await chat.usage()
        await chat.delete()

        assert await chat.usage() == ()
        assert await memory.usage(user="ana") == spent


async def test_recording_does_not_wait_for_the_store(background: Background) -> None:
    store = FaultyStore(await open_store(IN_MEMORY))
    gate = store.hold("record_usage")
    ledger = Ledger(store)
    ledger.start(background)

    for _ in range(3):
        ledger.record(usage())
    async with asyncio.timeout(60):
        await gate.reached.wait()
    gate.opened.set()
    await ledger.close(timeout_seconds=5)

    assert sum(total.calls for total in await store.usage()) == 3
    await store.close()


async def test_closing_gives_up_a_store_that_does_not_answer_and_says_so(
    caplog: pytest.LogCaptureFixture,
    background: Background,
) -> None:
    store = FaultyStore(await open_store(IN_MEMORY))
    gate = store.hold("record_usage")
    ledger = Ledger(store)
    ledger.start(background)
    ledger.record(usage())
    async with asyncio.timeout(60):
        await gate.reached.wait()
    ledger.record(usage())

    await ledger.close(timeout_seconds=0)
    ledger.record(usage())

    assert caplog.text.count("1 model calls are missing") == 3
    await store.close()
