"""P3 on the wire: over many turns, what a provider may cache is sent again byte for byte."""

import itertools
import logging
from collections.abc import AsyncIterator
from dataclasses import dataclass

import pytest
from tests.wire.dialects import Body, Call, Reply
from tests.wire.reach import Wire
from tests.wire.servers import ModelServer
from tests.wire.talking import SMALL, cached, chat_of, conversing, pieces, said

from remanence import Tool
from remanence.testing import FixedClock
from remanence.types import Usage

TURNS = 50
CACHE_MINIMUM = 150


@dataclass(frozen=True, slots=True, kw_only=True)
class Turn:
    """One turn on the wire: the request, its usage, and what its prompt was made of."""

    body: Body
    usage: Usage
    active_seq: int
    notes: tuple[str, ...]


@pytest.fixture
async def server() -> AsyncIterator[ModelServer]:
    async with ModelServer(cache_minimum=CACHE_MINIMUM).running() as server:
        yield server


_HELD: dict[tuple[str, bool], tuple[Turn, ...]] = {}


async def turns_of(wire: Wire, turns: int = TURNS) -> tuple[Turn, ...]:
    """The first *turns* of a conversation of fifty, which is held once over each wire."""
    key = wire.provider, wire.stream
    if key not in _HELD:
        _HELD[key] = tuple(await held(wire, TURNS))
    return _HELD[key][:turns]


async def held(wire: Wire, turns: int) -> list[Turn]:
    """A conversation with its observer at work after each turn, 40 seconds a turn."""
    clock = FixedClock()
    taken: list[Turn] = []
    async with conversing(SMALL, clock=clock) as conversation:
        chat = chat_of(conversation, wire)
        for number in range(turns):
            wire.server.script(Reply(f"Noted: LH {450 + number} and room {200 + number}."))
            live = (*await conversation.reflections(), *await conversation.observations())
            reply = await said(chat, wire, question(number))
            active_seq = (await conversation.state()).active_seq
            taken.append(
                Turn(
                    body=wire.server.received[-1].body,
                    usage=reply.usage,
                    active_seq=active_seq,
                    notes=tuple(s.id for s in live if s.last_seq <= active_seq),
                )
            )
            await conversation.flush()
            clock.advance(40)
    return taken


def question(number: int) -> str:
    return (
        f"On day {number} I fly with LH {450 + number} to town {number}. Please book room "
        f"{200 + number} in the Hotel Linde{number} for {90 + number} euros, tell Tomasz{number} "
        f"that I bring {number + 2} boxes of samples, and remind me of the passport."
    )


def starts_with(whole: list[str], prefix: list[str]) -> bool:
    return whole[: len(prefix)] == prefix


@pytest.mark.req("B-16", "X-11")
async def test_what_may_be_cached_of_a_request_begins_the_next_one(wire: Wire) -> None:
    turns = await turns_of(wire)
    pairs = list(itertools.pairwise(turns))
    moved = [
        number
        for number, (earlier, later) in enumerate(pairs)
        if not starts_with(pieces(later.body), cached(earlier.body))
    ]
    activated = [
        number
        for number, (earlier, later) in enumerate(pairs)
        if (later.active_seq, later.notes) != (earlier.active_seq, earlier.notes)
    ]

    assert set(moved) <= set(activated)
    assert 3 <= len(activated) <= 15
    assert turns[-1].notes != ()


async def test_reflections_too_change_the_prompt_only_now_and_then(whole_wire: Wire) -> None:
    turns = await turns_of(whole_wire)

    assert any(
        note.startswith("ref") or set(earlier.notes) - set(later.notes)
        for earlier, later in itertools.pairwise(turns)
        for note in later.notes[:1]
    )


@pytest.mark.req("B-73")
async def test_a_cache_serves_all_of_the_request_before_while_no_notes_change(
    anthropic_wire: Wire,
) -> None:
    turns = await turns_of(anthropic_wire)
    kept = [
        (earlier.usage, later.usage)
        for earlier, later in itertools.pairwise(turns)
        if earlier.usage.cache_write_tokens + earlier.usage.cache_read_tokens >= CACHE_MINIMUM
        and (earlier.active_seq, earlier.notes) == (later.active_seq, later.notes)
    ]

    assert len(kept) >= 25
    assert [later.cache_read_tokens for _, later in kept] == [
        earlier.cache_read_tokens + earlier.cache_write_tokens for earlier, _ in kept
    ]
    assert all(later.cache_read_tokens > 0 for _, later in kept)


@pytest.mark.req("B-73")
async def test_consecutive_turns_read_the_cache_of_either_provider(wire: Wire) -> None:
    turns = await turns_of(wire, turns=16)
    read = [turn.usage.cache_read_tokens / turn.usage.input_tokens for turn in turns[5:]]

    assert sum(share > 0.8 for share in read) >= 8


@pytest.mark.req("X-11")
async def test_each_change_of_the_prefix_is_told_in_the_log(
    whole_wire: Wire, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.INFO, logger="remanence"):
        turns = await held(whole_wire, 24)
    lines = [line for line in caplog.messages if line.startswith("chat call")]
    changed = [index for index, line in enumerate(lines) if "prefix=changed" in line]
    activated = [
        index
        for index, (earlier, later) in enumerate(itertools.pairwise(turns), start=1)
        if (later.active_seq, later.notes) != (earlier.active_seq, earlier.notes)
    ]

    assert len(lines) == 24
    assert changed
    assert set(changed) <= set(activated)


async def test_a_prompt_below_the_least_length_is_sent_and_costs_no_cache(
    anthropic_wire: Wire,
) -> None:
    turns = await turns_of(anthropic_wire, turns=2)

    assert [turn.usage.cache_write_tokens for turn in turns] == [0, 0]
    assert all(turn.usage.input_tokens > 0 for turn in turns)


async def test_no_request_of_a_long_conversation_has_more_than_four_breakpoints(
    anthropic_wire: Wire,
) -> None:
    turns = await turns_of(anthropic_wire)
    counts = [str(turn.body).count("cache_control") for turn in turns]

    assert max(counts) == 4
    assert min(counts) >= 2


@pytest.mark.req("X-11")
@pytest.mark.parametrize("calls", [4, 9, 10, 11, 15])
async def test_a_step_with_many_tool_calls_stays_within_the_look_back_of_the_cache(
    anthropic_wire: Wire, calls: int
) -> None:
    async def gate(arguments: dict[str, object]) -> str:
        return f"B{arguments['number']}"

    tool = Tool(name="gate", description="The gate.", parameters={"type": "object"}, handler=gate)
    many = tuple(Call(f"call_{number}", "gate", {"number": number}) for number in range(calls))
    async with conversing(SMALL) as conversation:
        chat = chat_of(conversation, anthropic_wire, tools=[tool], system="word " * CACHE_MINIMUM)
        await said(chat, anthropic_wire, question(1))
        anthropic_wire.server.script(Reply("I look.", calls=many), Reply("They are B0 and so on."))
        asked, told = (await said(chat, anthropic_wire, question(2))).calls

    body = anthropic_wire.server.received[-1].body
    assert told.cache_read_tokens == asked.cache_read_tokens + asked.cache_write_tokens
    assert str(body).count("cache_control") <= 4
