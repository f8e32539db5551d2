"""What a chat tells of its calls: tokens by one count for every provider, prices, one log line."""

import json
import logging
import re
from typing import Any

import pytest
from tests.wire.dialects import Reply
from tests.wire.reach import Wire
from tests.wire.servers import Fail, ModelServer, Raw, Step
from tests.wire.talking import SYSTEM, chat_of, conversing, said

from remanence.errors import ModelError
from remanence.testing import FixedClock
from remanence.types import ConversationRef

# In the tests' servers a token is a word: 10 of the system text, 4 of the first question.
QUESTION = "Which gate has LH454?"


async def test_input_counts_all_input_whatever_the_cache_did(wire: Wire) -> None:
    wire.server.script(Reply("Gate B42."), Reply("At nine."))
    async with conversing() as conversation:
        chat = chat_of(conversation, wire)
        first = (await said(chat, wire, QUESTION)).usage
        second = (await said(chat, wire, "And when?")).usage

    assert len(SYSTEM.split()) == 10
    assert (first.input_tokens, first.output_tokens, first.cache_read_tokens) == (14, 2, 0)
    assert (second.input_tokens, second.output_tokens, second.cache_read_tokens) == (18, 2, 14)


async def test_what_anthropic_wrote_to_its_cache_is_told(anthropic_wire: Wire) -> None:
    async with conversing() as conversation:
        chat = chat_of(conversation, anthropic_wire)
        first = (await said(chat, anthropic_wire, QUESTION)).usage
        second = (await said(chat, anthropic_wire, "And when?")).usage

    assert first.cache_write_tokens == 14
    assert second.cache_write_tokens == 4
    assert second.cache_read_tokens == 14


async def test_a_usage_names_the_call(wire: Wire) -> None:
    clock = FixedClock()
    async with conversing(clock=clock) as conversation:
        reply = await said(chat_of(conversation, wire), wire, QUESTION)

    usage = reply.usage
    assert usage.conversation == ConversationRef("default", "trip")
    assert (usage.user, usage.purpose, usage.model) == ("ana", "chat", wire.name)
    assert (usage.at, usage.outcome) == (clock.now(), "ok")
    assert usage.duration_seconds > 0
    assert usage.cost_usd is not None
    assert reply.calls == (usage,)


async def test_reading_the_cache_costs_less_than_fresh_input(wire: Wire) -> None:
    async with conversing() as conversation:
        chat = chat_of(conversation, wire, system="word " * 3_000)
        first = (await said(chat, wire, QUESTION)).usage
        second = (await said(chat, wire, "And when?")).usage

    assert second.input_tokens > first.input_tokens
    assert first.cost_usd is not None
    assert second.cost_usd is not None
    assert second.cost_usd < first.cost_usd


@pytest.mark.req("B-67", "B-73")
async def test_each_call_is_logged_with_its_tokens_and_hit_ratio(
    wire: Wire, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.INFO, logger="remanence"):
        async with conversing() as conversation:
            chat = chat_of(conversation, wire)
            await said(chat, wire, QUESTION)
            await said(chat, wire, "And when?")

    lines = [r.getMessage() for r in caplog.records if r.getMessage().startswith("chat call")]
    written = [re.findall(r"(\w+)=([\w.:-]+)", line) for line in lines]
    first, second = (dict(pairs) for pairs in written)
    assert all("conversation 'trip'" in line for line in lines)
    assert (first["input"], first["output"], first["cache_read"]) == ("14", "2", "0")
    assert second["cache_read"] == "14"
    assert float(second["hit_ratio"]) == pytest.approx(14 / 18, abs=0.01)
    assert first["cache_creation"] == ("14" if wire.provider == "anthropic" else "0")


async def test_the_calls_of_a_chat_are_in_the_ledger_as_the_provider_counted_them(
    wire: Wire,
) -> None:
    wire.server.script(Reply("Gate B42."), Reply("At nine."))
    async with conversing() as conversation:
        chat = chat_of(conversation, wire)
        replies = [await said(chat, wire, QUESTION), await said(chat, wire, "And when?")]
        [spent] = await conversation.usage()

    assert (spent.purpose, spent.model) == ("chat", wire.name)
    assert (spent.calls, spent.failed_calls, spent.unpriced_calls) == (2, 0, 0)
    assert (spent.input_tokens, spent.output_tokens, spent.cache_read_tokens) == (32, 4, 14)
    assert spent.cache_write_tokens == (18 if wire.provider == "anthropic" else 0)
    costs = [reply.usage.cost_usd or 0.0 for reply in replies]
    assert spent.cost_usd == pytest.approx(sum(costs))
    assert sum(costs) > 0


@pytest.mark.parametrize("step", [Fail(500), "reset", "broken off"], ids=str)
async def test_a_call_that_failed_is_in_the_ledger(wire: Wire, step: Step) -> None:
    wire.server.script(step)
    async with conversing() as conversation:
        chat = chat_of(conversation, wire)
        with pytest.raises(ModelError):
            await said(chat, wire, QUESTION)
        await said(chat, wire)
        [spent] = await conversation.usage()

    assert (spent.calls, spent.failed_calls) == (2, 1)


async def test_an_answer_that_is_none_is_counted_with_what_it_took(wire: Wire) -> None:
    wire.server.script(Reply("I cannot help with that.", ending="refusal"))
    async with conversing() as conversation:
        with pytest.raises(ModelError):
            await said(chat_of(conversation, wire), wire, QUESTION)
        [spent] = await conversation.usage()

    assert (spent.calls, spent.failed_calls) == (1, 1)
    assert (spent.input_tokens, spent.output_tokens) == (14, 5)


async def test_a_stream_that_breaks_is_counted_with_what_was_told_until_then(
    server: ModelServer,
) -> None:
    wire = Wire(provider="anthropic", stream=True, server=server)
    server.script("broken off")
    async with conversing() as conversation:
        with pytest.raises(ModelError):
            await said(chat_of(conversation, wire), wire, QUESTION)
        [spent] = await conversation.usage()

    assert (spent.calls, spent.failed_calls, spent.input_tokens) == (1, 1, 14)


async def test_a_stream_that_is_left_is_counted_with_what_was_told_until_then(
    server: ModelServer,
) -> None:
    wire = Wire(provider="anthropic", stream=True, server=server)
    async with conversing() as conversation:
        stream = chat_of(conversation, wire).stream(QUESTION)
        await anext(stream)
        await stream.aclose()
        [spent] = await conversation.usage()

    assert (spent.calls, spent.failed_calls, spent.input_tokens) == (1, 1, 14)


async def test_a_stream_that_nobody_reads_to_its_end_is_counted(stream_wire: Wire) -> None:
    async with conversing() as conversation:
        stream = chat_of(conversation, stream_wire).stream(QUESTION)
        await anext(stream)
        await stream.aclose()
        [spent] = await conversation.usage()

    assert (spent.calls, spent.failed_calls) == (1, 1)


BLANK = {"input_tokens": "", "output_tokens": "", "prompt_tokens": "", "completion_tokens": ""}
NEGATIVE = dict.fromkeys(BLANK, -1)
ODD = {**dict.fromkeys(BLANK, 1), "prompt_tokens_details": "x"}


@pytest.mark.parametrize("usage", [{}, None, "none", BLANK, NEGATIVE, ODD], ids=str)
async def test_an_answer_with_an_unreadable_usage_is_an_answer(
    whole_wire: Wire, usage: object
) -> None:
    whole_wire.server.script(answer_with(whole_wire, usage))
    async with conversing() as conversation:
        reply = await said(chat_of(conversation, whole_wire), whole_wire, QUESTION)

    assert reply.text == "Gate B42."
    assert reply.usage.output_tokens > 0


@pytest.mark.parametrize(
    ("cost", "is_taken"), [(0.5, True), (0, True), ("0.5", False), (-1, False)]
)
async def test_the_cost_that_a_compatible_server_reports_is_the_cost_of_the_call(
    openai_wire: Wire, cost: object, is_taken: bool
) -> None:
    counts = {"prompt_tokens": 1_000, "completion_tokens": 100}
    openai_wire.server.script(answer_with(openai_wire, {**counts, "cost": cost}))
    async with conversing() as conversation:
        reply = await said(chat_of(conversation, openai_wire), openai_wire, QUESTION)

    assert (reply.usage.cost_usd == cost) == is_taken
    assert reply.usage.cost_usd is not None


async def test_cached_tokens_beyond_the_reported_prompt_count_as_input(openai_wire: Wire) -> None:
    counts = {"prompt_tokens": 100, "completion_tokens": 10}
    counted = {**counts, "prompt_tokens_details": {"cached_tokens": 400}}
    openai_wire.server.script(answer_with(openai_wire, counted))
    async with conversing() as conversation:
        reply = await said(chat_of(conversation, openai_wire), openai_wire, QUESTION)

    assert (reply.usage.input_tokens, reply.usage.cache_read_tokens) == (400, 400)
    assert reply.usage.cost_usd


async def test_a_stream_with_an_empty_usage_is_an_answer(stream_wire: Wire) -> None:
    stream_wire.server.script(answer_with(stream_wire, {}))
    async with conversing() as conversation:
        reply = await said(chat_of(conversation, stream_wire), stream_wire, QUESTION)

    assert reply.text == "Gate B42."
    assert reply.usage.estimated


def answer_with(wire: Wire, usage: object) -> Raw:
    """The answer "Gate B42." with this usage."""
    if wire.provider == "openai":
        name = "delta" if wire.stream else "message"
        choice = {"index": 0, name: {"content": "Gate B42."}, "finish_reason": "stop"}
        return Raw((json.dumps({"choices": [choice], "usage": usage}),))
    text = {"type": "text", "text": "Gate B42."}
    ended = {"stop_reason": "end_turn"}
    answer = {"type": "message", "content": [text], **ended, "usage": usage}
    events: list[dict[str, Any]] = [
        {"type": "message_start", "message": answer},
        {"type": "message_delta", "delta": ended, "usage": usage},
        {"type": "message_stop"},
    ]
    named = [f"{json.dumps(event)}\nevent: {event['type']}" for event in events]
    return Raw((*named,) if wire.stream else (json.dumps(answer),))
