"""A call that fails: the user's message is kept, nothing else is, and the turn can go on."""

import asyncio
import json
import logging
import traceback
from collections.abc import AsyncGenerator, AsyncIterator

import anyio
import pytest
from tests.builders import chat_answer
from tests.wire.dialects import Call, Reply
from tests.wire.reach import KEY, Wire
from tests.wire.servers import Compressed, Fail, ModelServer, Raw, Step
from tests.wire.talking import ONE_TRY, chat_of, conversing, said

from remanence import Chat, Conversation, Message, Tool
from remanence.chat import BROKEN_OFF, ChatAnswer, ChatEvent, ChatRequest, TextDelta
from remanence.errors import DuplicateMessage, InvalidArgument, InvalidMessage, ModelError
from remanence.protocols import ModelRequest
from remanence.providers import ModelOptions
from remanence.providers.clients import MAX_ANSWER_BYTES

SHORT = ModelOptions(attempts=1, timeout_seconds=0.2)
NEVER_ENDING = ("slow header", "stall", "drip")


def impatient(step: Step) -> ModelOptions:
    """A short time for what would never end, and enough for the rest."""
    return SHORT if step in NEVER_ENDING else ONE_TRY


async def kept(conversation: Conversation) -> list[str]:
    return [message.text for message in await conversation.messages()]


async def collect(stream: AsyncIterator[ChatEvent], events: list[ChatEvent]) -> None:
    async for event in stream:
        events.append(event)  # noqa: PERF401 - what comes before an error is kept


FAILURES: list[tuple[Step, str]] = [
    (Fail(401, "bad key {key}", "authentication_error"), "auth"),
    (Fail(403, "not for you"), "auth"),
    (Fail(404, "no such model", "not_found_error"), "unknown_model"),
    (Fail(400, "prompt is too long: 250000 tokens"), "too_long"),
    (Fail(400, "temperature is odd"), "bad_request"),
    (Fail(413, "too large"), "too_long"),
    (Fail(429, "slow down", "rate_limit_error"), "rate_limit"),
    (Fail(429, "no credit", "insufficient_quota"), "quota"),
    (Fail(500, "oops"), "server"),
    (Fail(529, "busy", "overloaded_error"), "overloaded"),
    (Fail(503, "busy"), "overloaded"),
    ("reset", "connection"),
    ("broken off", "connection"),
    ("slow header", "timeout"),
    ("stall", "timeout"),
    ("drip", "timeout"),
    ("garbage", "bad_answer"),
    ("no json", "server"),
    ("other protocol", "bad_answer"),
    (Reply(""), "empty"),
    (Reply(" \n"), "empty"),
    (Reply("I cannot help with that.", ending="refusal"), "refused"),
    (Reply("That is", ending="filter"), "refused"),
]


@pytest.mark.parametrize(("step", "reason"), FAILURES, ids=str)
async def test_a_failed_call_keeps_the_users_message_and_nothing_else(
    wire: Wire, step: Step, reason: str
) -> None:
    wire.server.script(step)
    async with conversing() as conversation:
        chat = chat_of(conversation, wire, options=impatient(step))
        with pytest.raises(ModelError) as caught:
            await said(chat, wire, "Which gate?")
        before = await kept(conversation)
        reply = await said(chat_of(conversation, wire), wire)
        after = await kept(conversation)

    assert caught.value.reason == reason
    assert wire.name in str(caught.value)
    assert KEY not in "".join(traceback.format_exception(caught.value))
    assert before == ["Which gate?"]
    assert after == ["Which gate?", reply.text]


@pytest.mark.parametrize("trouble", ["ends early", "error event", "broken off", "stall"])
async def test_a_stream_that_breaks_after_some_text_leaves_no_part_of_it(
    stream_wire: Wire, trouble: Step
) -> None:
    stream_wire.server.script(trouble)
    async with conversing() as conversation:
        chat = chat_of(conversation, stream_wire, options=impatient(trouble))
        events: list[ChatEvent] = []
        with pytest.raises(ModelError) as caught:
            await collect(chat.stream("Which gate?"), events)
        before = await kept(conversation)
        await chat_of(conversation, stream_wire).send("Which gate?")

        assert before == ["Which gate?"]
        assert await kept(conversation) == ["Which gate?", "[Fact] noted"]
    assert caught.value.reason in {"connection", "overloaded", "timeout"}
    assert all(isinstance(event, TextDelta) for event in events)


async def test_a_message_that_waits_for_its_answer_is_not_appended_twice(wire: Wire) -> None:
    wire.server.script(Fail(500))
    async with conversing() as conversation:
        chat = chat_of(conversation, wire)
        with pytest.raises(ModelError):
            await said(chat, wire, "Hello.")
        await said(chat, wire, "Hello.")
        await said(chat, wire, "Hello.")

        assert await kept(conversation) == ["Hello.", "[Fact] noted", "Hello.", "[Fact] noted"]


async def test_a_waiting_message_in_the_words_of_another_member_is_appended(wire: Wire) -> None:
    wire.server.script(Fail(500))
    async with conversing() as conversation:
        chat = chat_of(conversation, wire)
        with pytest.raises(ModelError):
            await chat.send(Message.user("Yes, sign me up.", name="bo"))
        await chat.send(Message.user("Yes, sign me up.", name="ana"))

        names = [message.name for message in await conversation.messages()]
        assert names == ["bo", "ana", None]


async def test_a_turn_that_is_repeated_under_the_id_of_its_answer_is_asked_once(wire: Wire) -> None:
    async with conversing() as conversation:
        chat = chat_of(conversation, wire)
        first = await chat.send("Hello.", answer_id="a1")
        again = await chat.send("Hello.", answer_id="a1")
        other = await chat.send("Hello.", answer_id="a2")

        assert (first.text, again.text, other.text) == (
            "[Fact] noted",
            "[Fact] noted",
            "[Fact] noted",
        )
        assert await kept(conversation) == ["Hello.", "[Fact] noted", "Hello.", "[Fact] noted"]
        assert [total.calls for total in await conversation.usage()] == [2]


@pytest.mark.parametrize("id_", [None, "q2"])
async def test_an_answer_whose_id_is_taken_is_refused_before_the_model_is_called(
    wire: Wire, id_: str | None
) -> None:
    async with conversing() as conversation:
        chat = chat_of(conversation, wire)
        await chat.send("Hello.", answer_id="a1")
        with pytest.raises(DuplicateMessage, match="'a1' is taken by message 2"):
            await chat.send(Message.user("Which gate?").replace(id=id_), answer_id="a1")
        with pytest.raises(InvalidArgument, match="use two ids"):
            await chat.send(Message.user("Which gate?").replace(id="q3"), answer_id="q3")
        texts = await kept(conversation)

    assert texts == ["Hello.", "[Fact] noted"]
    assert len(wire.server.received) == 1


async def test_a_question_whose_answer_was_forgotten_is_refused_under_the_id_of_that_answer(
    wire: Wire,
) -> None:
    async with conversing() as conversation:
        chat = chat_of(conversation, wire)
        question = Message.user("Which berth?").replace(id="q1")
        await chat.send(question, answer_id="a1")
        again = await chat.send(question, answer_id="a1")
        await conversation.forget("a1")
        with pytest.raises(DuplicateMessage, match="'a1' is taken by message 2"):
            await chat.send(question, answer_id="a1")

    assert again.text == "[Fact] noted"
    assert len(wire.server.received) == 1


async def test_a_question_whose_answer_was_forgotten_is_answered_anew(wire: Wire) -> None:
    wire.server.script(Reply("Berth 4."), Reply("Berth 9."))
    question = Message.user("Which berth?", id="q1")
    async with conversing() as conversation:
        chat = chat_of(conversation, wire)
        await chat.send(question, answer_id="a1")
        await conversation.forget("a1")
        reply = await chat.send(question)
        texts = await kept(conversation)

    assert reply.text == "Berth 9."
    assert texts == ["Which berth?", "[forgotten]", "Berth 9."]


async def test_a_question_that_was_forgotten_is_asked_no_more(wire: Wire) -> None:
    wire.server.script(Reply("Berth 4."))
    question = Message.user("Which berth?", id="q1")
    async with conversing() as conversation:
        chat = chat_of(conversation, wire)
        await chat.send(question)
        await conversation.forget("q1")
        with pytest.raises(DuplicateMessage, match=r"'q1' .* was forgotten: send it again under"):
            await chat.send(question)

    assert len(wire.server.received) == 1


@pytest.mark.parametrize("again", [None, "Which gate?"])
async def test_a_run_of_tools_goes_on_where_a_call_failed(wire: Wire, again: str | None) -> None:
    asked: list[object] = []

    async def gate(arguments: dict[str, object]) -> str:
        asked.append(arguments)
        return "B42"

    tool = Tool(name="gate", description="", parameters={"type": "object"}, handler=gate)
    wire.server.script(Reply("", calls=(Call("a", "gate"),)), Fail(500), Reply("Gate B42."))
    async with conversing() as conversation:
        chat = chat_of(conversation, wire, tools=[tool])
        with pytest.raises(ModelError):
            await said(chat, wire, "Which gate?")
        reply = await said(chat, wire, again)
        roles = [message.role for message in await conversation.messages()]

    assert reply.text == "Gate B42."
    assert len(asked) == 1
    assert roles == ["user", "assistant", "tool", "assistant"]


async def test_a_long_pause_that_the_provider_asks_for_is_told_and_not_slept_through(
    wire: Wire,
) -> None:
    wire.server.script(Fail(429, headers={"retry-after": "30"}))
    async with conversing() as conversation, asyncio.timeout(60):
        with pytest.raises(ModelError) as failure:
            await said(chat_of(conversation, wire, options=ModelOptions()), wire, "Hello.")

    assert (failure.value.reason, failure.value.retry_after_seconds) == ("rate_limit", 30)
    assert len(wire.server.received) == 1


async def test_each_try_of_a_call_is_in_the_ledger(wire: Wire) -> None:
    wire.server.script(Fail(529))
    async with conversing() as conversation:
        reply = await said(chat_of(conversation, wire, options=ModelOptions()), wire, "Hello.")
        [spent] = await conversation.usage()

    assert reply.text == "[Fact] noted"
    assert (spent.calls, spent.failed_calls) == (2, 1)


async def test_a_turn_that_was_left_while_a_tool_worked_goes_on_with_the_same_text(
    wire: Wire,
) -> None:
    working = asyncio.Event()

    async def gate(arguments: dict[str, object]) -> str:
        working.set()
        await asyncio.Event().wait()
        raise AssertionError("an event that nobody sets was set")

    tool = Tool(name="gate", description="", parameters={"type": "object"}, handler=gate)
    wire.server.script(Reply("", calls=(Call("a", "gate"),)), Reply("Gate B42."))
    async with conversing() as conversation:
        chat = chat_of(conversation, wire, tools=[tool])
        turn = asyncio.create_task(said(chat, wire, "Which gate?"))
        await working.wait()
        turn.cancel()
        await asyncio.wait({turn})
        reply = await said(chat, wire, "Which gate?")
        roles = [message.role for message in await conversation.messages()]

    assert reply.text == "Gate B42."
    assert roles == ["user", "assistant", "assistant"]


async def test_results_of_the_tools_that_ran_are_kept_when_a_later_one_is_left(wire: Wire) -> None:
    working = asyncio.Event()

    async def book(arguments: dict[str, object]) -> str:
        if arguments["seat"] == "34K":
            return "Booked."
        working.set()
        await asyncio.Event().wait()
        raise AssertionError("an event that nobody sets was set")

    tool = Tool(name="book", description="", parameters={"type": "object"}, handler=book)
    calls = tuple(Call(f"c{seat}", "book", {"seat": seat}) for seat in ("34K", "34J", "34H"))
    wire.server.script(Reply("", calls=calls), Reply("One is booked."))
    async with conversing() as conversation:
        chat = chat_of(conversation, wire, tools=[tool])
        turn = asyncio.create_task(said(chat, wire, "Book three seats."))
        await working.wait()
        turn.cancel()
        await asyncio.wait({turn})
        await said(chat, wire)
        messages = await conversation.messages()

    assert [message.role for message in messages] == ["user", "assistant", "tool", "assistant"]
    request = str(wire.server.received[1].body)
    assert request.count("Booked.") == 1
    assert request.count("the tool may or may not have run") == 2


async def test_going_on_is_refused_where_nothing_waits_for_an_answer(wire: Wire) -> None:
    async with conversing() as conversation:
        chat = chat_of(conversation, wire)
        with pytest.raises(InvalidMessage, match="nothing to answer"):
            await said(chat, wire)
        await said(chat, wire, "Hello.")
        with pytest.raises(InvalidMessage, match="nothing to answer"):
            await said(chat, wire)

    assert len(wire.server.received) == 1


async def test_what_was_said_to_whoever_stops_reading_a_stream_is_kept_with_a_mark(
    stream_wire: Wire,
) -> None:
    async with conversing() as conversation:
        chat = chat_of(conversation, stream_wire)
        stream = chat.stream("Which gate?")
        first = await anext(stream)
        await stream.aclose()
        reply = await chat.send()

        assert isinstance(first, TextDelta)
        question, said_so_far, _, answer = await kept(conversation)
        assert (question, said_so_far) == ("Which gate?", f"{first.text}\n{BROKEN_OFF}")
        assert answer == reply.text


async def speak_without_end(request: ModelRequest) -> AsyncGenerator[str, None]:
    yield "Gate"
    await asyncio.Event().wait()


async def test_a_partial_answer_is_kept_in_a_scope_that_cancels_at_every_await() -> None:
    async with conversing() as conversation:
        with anyio.CancelScope() as scope:
            async for _ in Chat(conversation, model=speak_without_end).stream("Which gate?"):
                scope.cancel()
        async with conversation.turn():
            pass

        assert await kept(conversation) == ["Which gate?", f"Gate\n{BROKEN_OFF}"]


class LeftAtTheEnd:
    """A chat model whose reader is cancelled after its whole answer was read."""

    name = "left"

    async def complete(self, request: ChatRequest) -> ChatAnswer:
        raise AssertionError("it is streamed")

    async def stream(self, request: ChatRequest) -> AsyncGenerator[str | ChatAnswer, None]:
        yield "Gate B42."
        yield chat_answer(request, "Gate B42.")
        reader = asyncio.current_task()
        assert reader is not None
        reader.cancel()


async def test_a_whole_answer_is_kept_although_its_reader_leaves_before_it_is_written() -> None:
    async with conversing() as conversation:
        chat = Chat(conversation, model=LeftAtTheEnd())
        turn = asyncio.create_task(collect(chat.stream("Which gate?"), []))
        await asyncio.wait({turn})
        [spent] = await conversation.usage()

        assert turn.cancelled()
        assert await kept(conversation) == ["Which gate?", "Gate B42."]
        assert (spent.calls, spent.failed_calls) == (1, 0)


async def test_an_answer_at_the_output_limit_is_kept_and_told(wire: Wire) -> None:
    wire.server.script(Reply("The gate is", ending="length"))
    async with conversing() as conversation:
        reply = await said(chat_of(conversation, wire), wire, "Which gate?")

        assert await kept(conversation) == ["Which gate?", "The gate is"]
    assert (reply.complete, reply.usage.outcome) == (False, "cut_off")


@pytest.mark.parametrize("text", [None, "Next?"])
async def test_an_answer_that_anthropic_paused_is_continued_or_left(
    anthropic_wire: Wire, text: str | None
) -> None:
    used = {"type": "server_tool_use", "id": "s", "name": "web_search", "input": {"query": "LH"}}
    ended = {"stop_reason": "pause_turn"}
    paused = {"type": "message", "content": [used], **ended, "usage": {}}
    events: list[dict[str, object]] = [
        {"type": "message_start", "message": paused},
        {"type": "message_delta", "delta": ended, "usage": {}},
        {"type": "message_stop"},
    ]
    named = [f"{json.dumps(event)}\nevent: {event['type']}" for event in events]
    whole = (*named,) if anthropic_wire.stream else (json.dumps(paused),)
    anthropic_wire.server.script(Raw(whole), Reply("Gate B42."))
    async with conversing() as conversation:
        chat = chat_of(conversation, anthropic_wire)
        first = await said(chat, anthropic_wire, "Which gate?")
        second = await said(chat, anthropic_wire, text)

    answer = anthropic_wire.server.received[-1].body["messages"][1]["content"]
    assert (first.complete, second.complete, second.text) == (False, True, "Gate B42.")
    assert first.usage.outcome == "paused"
    assert [block["type"] for block in answer] == ["text" if text else "server_tool_use"]


async def test_a_pause_that_the_provider_asks_for_is_told(wire: Wire) -> None:
    wire.server.script(Fail(429, headers={"retry-after": "41"}))
    async with conversing() as conversation:
        with pytest.raises(ModelError) as caught:
            await said(chat_of(conversation, wire), wire, "Which gate?")

    assert caught.value.retry_after_seconds == 41


async def test_a_server_that_is_not_there_cannot_be_reached(wire: Wire) -> None:
    gone = await gone_server()
    async with conversing() as conversation:
        absent = Wire(provider=wire.provider, stream=wire.stream, server=gone)
        with pytest.raises(ModelError) as caught:
            await said(chat_of(conversation, absent), absent, "Which gate?")

    assert caught.value.reason == "connection"


async def gone_server() -> ModelServer:
    async with ModelServer().running() as server:
        return server


async def test_a_failure_is_logged_without_key_and_words(
    wire: Wire, caplog: pytest.LogCaptureFixture
) -> None:
    wire.server.script(Fail(401, "the key {key} is wrong", "authentication_error"))
    with caplog.at_level(logging.DEBUG):
        async with conversing() as conversation:
            with pytest.raises(ModelError):
                await said(chat_of(conversation, wire), wire, "My secret flight is LH 454.")

    ours = [record.getMessage() for record in caplog.records if record.name == "remanence"]
    assert f"chat call of conversation 'trip' to {wire.name} failed: auth" in ours
    assert not any(KEY in line or "LH 454" in line for line in ours)


async def test_an_answer_without_end_is_not_read_beyond_a_bound(
    wire: Wire,
) -> None:
    wire.server.script("flood")
    async with conversing() as conversation:
        with pytest.raises(ModelError) as caught:
            await said(chat_of(conversation, wire, options=ONE_TRY), wire, "Which gate?")

    assert caught.value.reason == "bad_answer"
    assert "16,777,216 bytes" in str(caught.value)


@pytest.mark.parametrize("trouble", ["late start", "unknown block"])
async def test_events_out_of_order_are_a_bad_answer(server: ModelServer, trouble: Step) -> None:
    wire = Wire(provider="anthropic", stream=True, server=server)
    wire.server.script(trouble)
    async with conversing() as conversation:
        with pytest.raises(ModelError, match="anthropic:claude-haiku-4-5") as caught:
            await said(chat_of(conversation, wire, options=ONE_TRY), wire, "Which gate?")
        kept_then = await kept(conversation)

    assert caught.value.reason == "bad_answer"
    assert kept_then == ["Which gate?"]


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("choices", ["5", "[null]", '[{"index": 0, "%s": {"content": 5}}]'])
async def test_choices_of_another_shape_are_a_bad_answer(
    server: ModelServer, choices: str, stream: bool
) -> None:
    field = "delta" if stream else "message"
    server.script(Raw((f'{{"choices": {choices.replace("%s", field)}}}',)))
    wire = Wire(provider="openai", stream=stream, server=server)
    async with conversing() as conversation:
        with pytest.raises(ModelError, match="openai:") as caught:
            await said(chat_of(conversation, wire, options=ONE_TRY), wire, "Which gate?")

    assert caught.value.reason == "bad_answer"


async def test_a_stream_may_end_with_a_choice_without_a_delta(server: ModelServer) -> None:
    begun = '{"choices": [{"index": 0, "delta": {"content": "Gate B42."}}]}'
    ended = '{"choices": [{"index": 0, "delta": null, "finish_reason": "stop"}]}'
    server.script(Raw((begun, ended)))
    wire = Wire(provider="openai", stream=True, server=server)
    async with conversing() as conversation:
        reply = await said(chat_of(conversation, wire, options=ONE_TRY), wire, "Which gate?")

    assert (reply.text, reply.complete) == ("Gate B42.", True)


async def test_a_compressed_answer_is_read(wire: Wire) -> None:
    wire.server.script(Compressed("gzip", Reply("Gate B42.")))
    async with conversing() as conversation:
        reply = await said(chat_of(conversation, wire), wire, "Which gate?")

    assert reply.text == "Gate B42."


async def test_a_small_body_that_decompresses_to_a_large_one_is_not_read_beyond_a_bound(
    wire: Wire,
) -> None:
    wire.server.script(Compressed(padding_bytes=MAX_ANSWER_BYTES))
    async with conversing() as conversation:
        with pytest.raises(ModelError, match="16,777,216 bytes") as caught:
            await said(chat_of(conversation, wire, options=ONE_TRY), wire, "Which gate?")

    assert caught.value.reason == "bad_answer"
