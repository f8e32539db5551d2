"""A model that drops values: the repair call restores them, and the loss report has the rest."""

import pytest
from tests.wire.dialects import Reply
from tests.wire.reach import Wire

from remanence import Memory, Message, Policy
from remanence.testing import FixedClock

POLICY = Policy(observe_tokens=50, keep_last=0, note_ratio=0.5)
TOLD = (
    "We fly with LH 454 to San Francisco, and the booking reference is K7Q-2201. The hotel costs "
    "231.50 EUR a night, its page is https://stay.example/rooms/77, and the config that you asked "
    "for is in /etc/trip/plan.toml now. Please mind that the invoice is INV-88213 and goes to the office."
)
VALUES = ("LH 454", "K7Q-2201", "231.50", "https://stay.example/rooms/77", "/etc/trip/plan.toml")
FIRST = "#1 [IMPORTANT Fact] user: a flight to San Francisco and a hotel are booked"
REPAIR = (
    "#1 [IMPORTANT Fact] user: flight LH 454, reference K7Q-2201, 231.50 EUR a night\n"
    "#1 user: https://stay.example/rooms/77 and /etc/trip/plan.toml"
)


@pytest.mark.req("L-11")
async def test_values_that_a_model_dropped_are_asked_for_once_and_restored(wire: Wire) -> None:
    wire.server.script(Reply(FIRST), Reply(REPAIR))
    policy = POLICY.replace(note_ratio=1.0)
    async with Memory.open(
        "sqlite:///:memory:", policy=policy, model=wire.spec, clock=FixedClock()
    ) as memory:
        chat = memory.conversation("trip", user="ana")
        await chat.append(Message.user(TOLD))
        await chat.flush()
        (observation,) = await chat.observations()
        usage = await chat.usage()

    asked = str(wire.server.received[1].body["messages"])
    assert len(wire.server.received) == 2
    for value in VALUES:
        assert value in asked
        assert value in observation.text
        assert value not in observation.lost
    assert [(total.purpose, total.calls) for total in usage] == [("observe", 1), ("repair", 1)]


async def test_what_the_repair_does_not_restore_is_in_the_loss_report(wire: Wire) -> None:
    wire.server.script(Reply(FIRST), Reply("SKIP"))
    policy = POLICY.replace(note_ratio=0.2)
    async with Memory.open(
        "sqlite:///:memory:", policy=policy, model=wire.spec, clock=FixedClock()
    ) as memory:
        chat = memory.conversation("trip")
        await chat.append(Message.user(TOLD))
        await chat.flush()
        (observation,) = await chat.observations()

    lost = [value for value in VALUES[1:] if value not in observation.text]
    assert lost
    assert set(lost) <= set(observation.lost)


async def test_a_repair_that_fails_costs_neither_the_notes_nor_another_call(wire: Wire) -> None:
    wire.server.script(Reply(FIRST), "reset")
    async with Memory.open(
        "sqlite:///:memory:", policy=POLICY, model=wire.spec, clock=FixedClock()
    ) as memory:
        chat = memory.conversation("trip")
        await chat.append(Message.user(TOLD))
        state = await chat.flush()
        (observation,) = await chat.observations()
        usage = await chat.usage()

    assert state.failures == 0
    assert "a flight to San Francisco" in observation.text
    assert len(wire.server.received) == 2
    assert [(total.purpose, total.failed_calls) for total in usage] == [
        ("observe", 0),
        ("repair", 1),
    ]
