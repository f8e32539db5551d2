"""A slice of a preset reaches a model in one request, with each message whole."""

import pytest
from tests.wire.dialects import Reply
from tests.wire.reach import Wire

from remanence import Memory, Message, Policy
from remanence.testing import FixedClock

SENTENCES = "The harbour office opens at nine, and the ferry to the island leaves at noon. " * 16


def mark(number: int) -> str:
    """A word of its own for each message; one with a digit would be an id to be repaired."""
    return f"{chr(97 + number // 26)}{chr(97 + number % 26)}-buoy"


def said(count: int) -> list[Message]:
    """Messages of some 330 tokens by every counter, each with its mark at the end."""
    return [
        Message.user(SENTENCES + mark(number))
        if number % 2
        else Message.assistant(SENTENCES + mark(number))
        for number in range(1, count + 1)
    ]


@pytest.mark.req("L-02", "L-06", "L-09")
async def test_lango_sends_all_unobserved_messages_in_one_request(whole_wire: Wire) -> None:
    whole_wire.server.script(Reply("#1-40 [Fact] user: the ferry leaves at noon"))
    async with Memory.open(
        "sqlite:///:memory:",
        policy=Policy.lango(enabled=True),
        model=whole_wire.spec,
        clock=FixedClock(),
    ) as memory:
        chat = memory.conversation("harbour")
        await chat.append(*said(40))
        await chat.flush()
        (observation,) = await chat.observations()
        (usage,) = await chat.usage()

    (received,) = whole_wire.server.received
    asked = str(received.body["messages"])
    assert (observation.first_seq, observation.last_seq) == (1, 40)
    assert observation.source_tokens > 8_000
    assert all(mark(number) in asked for number in range(1, 41))
    assert "left out" not in asked
    assert (usage.purpose, usage.calls) == ("observe", 1)


@pytest.mark.req("Z-08", "Z-09", "Z-31")
async def test_zora_sends_the_chunk_that_it_is_told_in_one_request(whole_wire: Wire) -> None:
    whole_wire.server.script(Reply("#1-20 [Fact] user: the ferry leaves at noon"))
    policy = Policy.zora(observe_tokens=11_000, tail_tokens=11_000, tail_keep_tokens=2_000)
    async with Memory.open(
        "sqlite:///:memory:",
        policy=policy.replace(precompute_at=None, observe_slice_messages=30),
        model=whole_wire.spec,
        clock=FixedClock(),
    ) as memory:
        chat = memory.conversation("harbour")
        await chat.append(*said(36))
        await chat.flush()
        first = (await chat.observations())[0]

    asked = str(whole_wire.server.received[0].body["messages"])
    assert (first.first_seq, first.last_seq) == (1, 30)
    assert first.source_tokens > 8_000
    assert all(mark(number) in asked for number in range(1, 31))
    assert mark(31) not in asked
