"""Turns in which the model calls tools."""

import asyncio
import json
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from tests.wire.dialects import Body, Call, Reply
from tests.wire.reach import Wire
from tests.wire.talking import SMALL, chat_of, conversing, said, texts

from remanence import Conversation, Message, Policy, Reply as ChatReply, Tool, memory_tools
from remanence.chat import Done, TextDelta, ToolCalled, ToolReturned
from remanence.errors import ModelError
from remanence.wire.content import ERROR_MARK

SCHEMA = {"type": "object", "properties": {"flight": {"type": "string"}}, "required": ["flight"]}


async def find_gate(arguments: dict[str, Any]) -> str:
    if arguments["flight"] != "LH 454":
        raise LookupError(f"no flight {arguments['flight']!r}")
    return "B42"


GATE = Tool(name="gate", description="Finds a gate.", parameters=SCHEMA, handler=find_gate)


def results(body: Body) -> list[str]:
    """The texts of a request's tool results, in order, without OpenAI's mark of a failure."""
    found = [
        message["content"].removeprefix(f"{ERROR_MARK}\n")
        for message in body["messages"]
        if message["role"] == "tool"
    ]
    for message in body["messages"]:
        blocks = message["content"] if isinstance(message["content"], list) else []
        found += [block["content"] for block in blocks if block["type"] == "tool_result"]
    return found


async def roles(conversation: Conversation) -> list[str]:
    return [message.role for message in await conversation.messages()]


async def test_a_tool_is_offered_called_and_answered(wire: Wire) -> None:
    wire.server.script(
        Reply("I look.", calls=(Call("a", "gate", {"flight": "LH 454"}),)), Reply("Gate B42.")
    )
    async with conversing() as conversation:
        reply = await said(chat_of(conversation, wire, tools=[GATE]), wire, "Which gate?")
        messages = await conversation.messages()

    first, second = (request.body for request in wire.server.received)
    offered = first["tools"][0]
    offered = offered if wire.provider == "anthropic" else offered["function"]
    assert (offered["name"], offered["description"]) == ("gate", "Finds a gate.")
    assert offered.get("input_schema", offered.get("parameters")) == SCHEMA
    assert results(second) == ["B42"]
    assert second["tools"] == first["tools"]
    assert (reply.text, len(reply.calls)) == ("Gate B42.", 2)
    assert [message.role for message in messages] == ["user", "assistant", "tool", "assistant"]
    assert json.loads(messages[1].tool_calls[0].arguments) == {"flight": "LH 454"}


async def test_a_turns_usage_is_the_sum_of_its_calls(wire: Wire) -> None:
    wire.server.script(
        Reply("I look.", calls=(Call("a", "gate", {"flight": "LH 454"}),)), Reply("Gate B42.")
    )
    async with conversing() as conversation:
        reply = await said(chat_of(conversation, wire, tools=[GATE]), wire, "Which gate?")

    assert reply.usage.output_tokens == 2 + 2
    assert reply.usage.input_tokens == sum(call.input_tokens for call in reply.calls)
    assert reply.usage.cost_usd == pytest.approx(sum(call.cost_usd or 0.0 for call in reply.calls))


async def test_a_stream_tells_text_calls_results_and_the_reply(stream_wire: Wire) -> None:
    stream_wire.server.script(
        Reply("I look.", calls=(Call("a", "gate", {"flight": "LH 454"}),)), Reply("Gate B42.")
    )
    async with conversing() as conversation:
        chat = chat_of(conversation, stream_wire, tools=[GATE])
        events = [event async for event in chat.stream("Which gate?")]

    assert [type(event) for event in events] == [
        TextDelta,
        TextDelta,
        ToolCalled,
        ToolReturned,
        TextDelta,
        TextDelta,
        Done,
    ]
    assert events[3] == ToolReturned(call_id="a", name="gate", text="B42", is_error=False)


async def test_a_tool_does_not_wait_for_the_turn_that_waits_for_it(wire: Wire) -> None:
    others: list[asyncio.Task[ChatReply]] = []

    async def ask(arguments: dict[str, Any]) -> str:
        others.append(asyncio.create_task(said(chat, wire, "Which seat?")))
        return (await said(chat, wire, "Which gate?")).text

    tool = Tool(name="ask", description="", parameters={"type": "object"}, handler=ask)
    wire.server.script(Reply("", calls=(Call("a", "ask"),)), Reply("Sorry."), Reply("Seat 34K."))
    async with conversing() as conversation:
        chat = chat_of(conversation, wire, tools=[tool])
        await said(chat, wire, "Ask yourself.")
        later = await others[0]
        result = (await conversation.messages())[2].tool_results[0]

    assert "use another conversation in the tool" in result.text
    assert later.text == "Seat 34K."


@pytest.mark.parametrize(
    ("call", "told"),
    [
        (Call("a", "gate", {"flight": "XX 1"}), "LookupError: no flight 'XX 1'"),
        (Call("a", "gait", {}), "there is no tool 'gait'; known tools: gate"),
    ],
)
async def test_what_goes_wrong_with_a_tool_is_told_to_the_model(
    wire: Wire, call: Call, told: str
) -> None:
    wire.server.script(Reply("", calls=(call,)), Reply("Sorry."))
    async with conversing() as conversation:
        reply = await said(chat_of(conversation, wire, tools=[GATE]), wire, "Which gate?")
        result = (await conversation.messages())[2].tool_results[0]

    assert reply.text == "Sorry."
    assert results(wire.server.received[1].body) == [told]
    assert ("[the tool failed]" if wire.provider == "openai" else "'is_error': True") in str(
        wire.server.received[1].body
    )
    assert result.is_error


async def test_a_call_that_was_cut_off_is_not_run_but_answered(wire: Wire) -> None:
    cut_off = Call("a", "gate", {"flight": "LH 454"})
    wire.server.script(Reply("", ending="length", calls=(cut_off,)), Reply("Again."))
    ran: list[dict[str, Any]] = []

    async def handler(arguments: dict[str, Any]) -> str:
        ran.append(arguments)
        return "B42"

    tool = Tool(name="gate", description="Finds a gate.", parameters=SCHEMA, handler=handler)
    async with conversing() as conversation:
        reply = await said(chat_of(conversation, wire, tools=[tool]), wire, "Which gate?")

    assert (reply.text, ran) == ("Again.", [])
    assert results(wire.server.received[1].body) == [
        "not run: the answer was cut off at its limit; call the tool again"
    ]


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("PK\0\0 \udc80", "PK ?"),
        ({"gate": "B42"}, "the tool has run, but returned a dict instead of a text"),
        ("x" * 2_000, "the tool has run, but its result is too long: 2,000 bytes"),
        ("x" * 990, "the tool has run, but its result is too long: 990 bytes"),
        (OSError("x" * 2_000), "OSError: its text is too long: 2,000 bytes"),
    ],
)
async def test_a_result_that_no_tape_takes_leaves_those_beside_it(
    wire: Wire, text: Any, told: str, caplog: pytest.LogCaptureFixture
) -> None:
    async def handler(_: dict[str, Any]) -> Any:
        if isinstance(text, Exception):
            raise text
        return text

    odd = Tool(name="odd", description="Reads.", parameters=SCHEMA, handler=handler)
    calls = (Call("a", "gate", {"flight": "LH 454"}), Call("b", "odd"))
    wire.server.script(Reply("", calls=calls), Reply("Done."))
    async with conversing(Policy(max_message_bytes=1_000)) as conversation:
        await said(chat_of(conversation, wire, tools=[GATE, odd]), wire, "Which gate?")

    assert results(wire.server.received[1].body) == ["B42", told]
    assert ("tool 'odd' failed with" in caplog.text) == (told != "PK ?")


async def test_an_answer_with_characters_that_no_tape_takes_is_kept_without_them(
    wire: Wire,
) -> None:
    wire.server.script(Reply("Gate\0 B42."))
    async with conversing() as conversation:
        reply = await said(chat_of(conversation, wire), wire, "Which gate?")

    assert reply.text == "Gate B42."


async def test_calls_of_one_answer_are_answered_together_in_order(wire: Wire) -> None:
    calls = tuple(Call(f"c{n}", "gate", {"flight": f"LH {453 + n}"}) for n in range(3))
    wire.server.script(Reply("", calls=calls), Reply("Done."))
    async with conversing() as conversation:
        await said(chat_of(conversation, wire, tools=[GATE]), wire, "Which gates?")

    assert results(wire.server.received[1].body) == [
        "LookupError: no flight 'LH 453'",
        "B42",
        "LookupError: no flight 'LH 455'",
    ]


async def test_the_last_round_has_to_answer_without_tools(wire: Wire) -> None:
    again = Reply("", calls=(Call("a", "gate", {"flight": "LH 454"}),))
    wire.server.script(again, Reply("Enough."))
    async with conversing() as conversation:
        chat = chat_of(conversation, wire, tools=[GATE], max_rounds=2)
        reply = await said(chat, wire, "Which gate?")

    none = {"type": "none"} if wire.provider == "anthropic" else "none"
    assert reply.text == "Enough."
    assert [request.body.get("tool_choice") for request in wire.server.received] == [None, none]


async def test_a_model_that_calls_tools_for_ever_is_stopped(wire: Wire) -> None:
    wire.server.script(
        *(Reply("", calls=(Call(f"c{n}", "gate", {"flight": "LH 454"}),)) for n in range(5))
    )
    async with conversing() as conversation:
        with pytest.raises(ModelError, match="after 3 rounds") as caught:
            await said(chat_of(conversation, wire, tools=[GATE], max_rounds=3), wire, "Which gate?")
        kept = await roles(conversation)

    assert caught.value.reason == "tool_rounds"
    assert len(wire.server.received) == 3
    assert kept == ["user", "assistant", "tool", "assistant", "tool"]


@pytest.mark.req("X-28")
async def test_a_long_run_of_tools_is_observed_while_it_goes_on(wire: Wire) -> None:
    async with conversing(SMALL) as conversation:

        async def read_page(arguments: dict[str, Any]) -> str:
            await conversation.flush()  # the observer has had its time
            number = arguments["number"]
            return " ".join(f"Flight LH {number}{n} leaves from gate B{n}." for n in range(12))

        page = Tool(name="page", description="A page.", parameters=SCHEMA, handler=read_page)
        wire.server.script(
            *(Reply("", calls=(Call(f"c{n}", "page", {"number": n}),)) for n in range(14))
        )
        reply = await said(
            chat_of(conversation, wire, tools=[page], max_rounds=20), wire, "Read all pages."
        )
        segments = await conversation.observations() + await conversation.reflections()
        active_seq = (await conversation.state()).active_seq
        notes = [segment.text for segment in segments if segment.last_seq <= active_seq]

    sent = json.dumps(texts(wire.server.received[-1].body), ensure_ascii=False)
    assert reply.text == "[Fact] noted"
    assert len(wire.server.received) == 15
    assert any(json.dumps(text, ensure_ascii=False)[1:-1] in sent for text in notes)
    assert len(results(wire.server.received[-1].body)) < 14


@pytest.mark.req("Z-75")
async def test_a_loop_that_only_tells_its_messages_is_compressed_all_the_same() -> None:
    async def loop(on_event: Callable[[Message], Awaitable[object]]) -> None:
        for number in range(30):
            await on_event(
                Message.user(
                    f"Please book room {number} in the Hotel Linde{number}, and tell "
                    f"Tomasz{number} that flight LH {number} is late."
                )
            )
            await on_event(Message.assistant(f"Room {number} is booked, reference K{number}Q."))

    async with conversing(SMALL) as conversation:
        await loop(conversation.append)
        await conversation.flush()
        context = await conversation.context()

    assert any(block.kind in ("observation", "reflection") for block in context.system)
    assert context.stats.context_tokens < context.stats.history_tokens


async def test_the_memory_is_a_tool_of_a_chat(wire: Wire) -> None:
    calls = (
        Call("a", "memory_search", {"query": "flights"}),
        Call("b", "recall", {"query": "tulips"}),
    )
    wire.server.script(Reply("", calls=calls), Reply("By the window."))
    async with conversing(SMALL) as conversation:
        await conversation.facts.save("Ana sits by the window on flights.", user="ana")
        await conversation.append(
            Message.user("The tulips are yellow.", name="Ana"), Message.assistant("Noted.")
        )
        for number in range(30):
            text = f"Room {number} in the Hotel Linde{number} is booked, reference K{number}Q."
            await conversation.append(Message.user(text), Message.assistant("Noted."))
        await conversation.flush()
        chat = chat_of(conversation, wire, tools=memory_tools(conversation))
        reply = await said(chat, wire, "Where do I sit?")

    found, recalled = results(wire.server.received[1].body)
    assert "Ana sits by the window on flights." in found
    assert "user message 1 by Ana: The tulips are yellow." in recalled
    assert len(wire.server.received[0].body["tools"]) == 4
    assert reply.text == "By the window."


async def test_a_memory_tool_that_fails_has_an_error_result(stream_wire: Wire) -> None:
    stream_wire.server.script(
        Reply("", calls=(Call("a", "memory_search", {"city": "Rome"}),)), Reply("Sorry.")
    )
    async with conversing() as conversation:
        chat = chat_of(conversation, stream_wire, tools=memory_tools(conversation))
        events = [event async for event in chat.stream("Where do I live?")]
        messages = await conversation.messages()

    (returned,) = (event for event in events if isinstance(event, ToolReturned))
    assert returned.text == "Error: argument 'city' is unknown: use query, limit"
    assert returned.is_error
    assert [result.is_error for m in messages for result in m.tool_results] == [True]


async def test_a_message_forgotten_by_the_model_is_left_in_no_list_of_the_tool(wire: Wire) -> None:
    steps: tuple[dict[str, Any], ...] = (
        {"query": "my number is"},
        {"query": "user: my number"},
        {"messages": ["m1"]},
    )
    calls = [Call(f"call-{number}", "memory_forget", step) for number, step in enumerate(steps)]
    wire.server.script(*(Reply("", calls=(call,)) for call in calls), Reply("Done."), Reply("Yes."))
    async with conversing() as conversation:
        await conversation.append(
            Message.user("My number is 555-0199.", id="m1"), Message.assistant("Noted.")
        )
        chat = chat_of(conversation, wire, tools=memory_tools(conversation))
        await said(chat, wire, "Forget my number, please.")
        await said(chat, wire, "Is it gone?")
        messages = await conversation.messages()
        hits = await conversation.recall("0199")

    listed, *_, last = (json.dumps(request.body) for request in wire.server.received[1:])
    assert "0199. (id: m1)" in listed
    assert "0199" not in last
    assert "0199" not in json.dumps(results(wire.server.received[3].body))
    assert [m.kind for m in messages if m.tool_results] == ["forgotten", "forgotten", "message"]
    assert not any("0199" in message.full_text for message in messages)
    assert hits == ()
