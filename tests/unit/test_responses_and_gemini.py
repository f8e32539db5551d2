"""Items of OpenAI's Responses and contents of Gemini, read and given back."""

from typing import Any

import pytest
from google.genai import types as genai
from openai.types.responses import Response, ResponseInputItemParam
from pydantic import TypeAdapter

from remanence import Memory, Message
from remanence.errors import InvalidMessage
from remanence.wire import gemini, responses

REASONING = {
    "type": "reasoning",
    "id": "rs_1",
    "summary": [{"type": "summary_text", "text": "Hm."}],
    "encrypted_content": "Z0FB",
}
SAID = {
    "type": "message",
    "id": "msg_1",
    "role": "assistant",
    "status": "completed",
    "phase": "commentary",
    "content": [{"type": "output_text", "text": "I look.", "annotations": []}],
}
CALLS = [
    {
        "type": "function_call",
        "id": f"fc_{n}",
        "call_id": f"call_{n}",
        "name": "look",
        "arguments": '{"at": 1}',
        "status": "completed",
        "caller": {"type": "program", "caller_id": "prog_1"},
    }
    for n in (1, 2)
]
CUSTOM = {
    "type": "custom_tool_call",
    "id": "ctc_1",
    "call_id": "call_3",
    "name": "sql",
    "input": 'select "1"',
}
RESULTS: list[dict[str, Any]] = [
    {"type": "function_call_output", "call_id": "call_2", "output": "two"},
    {
        "type": "function_call_output",
        "call_id": "call_1",
        "output": [
            {"type": "input_text", "text": "one"},
            {"type": "input_image", "detail": "low", "image_url": "data:image/png;base64,iVBORw0K"},
        ],
    },
    {"type": "custom_tool_call_output", "call_id": "call_3", "output": "1"},
]
ITEMS: list[dict[str, Any]] = [
    {"role": "user", "content": "Look."},
    REASONING,
    SAID,
    *CALLS,
    CUSTOM,
    *RESULTS,
    {"type": "web_search_call", "id": "ws_1", "status": "completed", "action": {"type": "search"}},
    {"role": "system", "content": "Be brief."},
]


async def test_responses_items_come_back_as_they_were() -> None:
    async with Memory.open("sqlite:///:memory:") as memory:
        chat = memory.conversation("a")
        messages = Message.from_openai_responses(ITEMS)
        await chat.append(*messages)
        context = await chat.context(system="You help.")

    assert [message.role for message in messages] == [
        "user",
        "assistant",
        "tool",
        "tool",
        "tool",
        "assistant",
        "system",
    ]
    sent = context.to_openai_responses()
    assert sent["instructions"] == "You help."
    assert sent["input"][: len(ITEMS)] == ITEMS
    TypeAdapter(list[ResponseInputItemParam]).validate_python(sent["input"])
    chat_calls = context.to_openai()["messages"][2]["tool_calls"]
    assert [call["id"] for call in chat_calls] == ["call_1", "call_2", "call_3"]


async def test_a_call_of_a_custom_tool_of_chat_completions_is_read_in_plain_text_too() -> None:
    custom = {"id": "c1", "type": "custom", "custom": {"name": "sql", "input": "select 1"}}
    call = {"role": "assistant", "content": None, "tool_calls": [custom]}
    async with Memory.open("sqlite:///:memory:") as memory:
        chat = memory.conversation("a")
        await chat.append(Message.from_openai(call))
        assert "[calls sql select 1]" in (await chat.context()).to_text()


def test_a_part_of_an_answer_that_is_new_to_us_goes_back_as_it_came() -> None:
    hologram = {"type": "output_hologram", "depth": 3}
    (message,) = Message.from_openai_responses([{**SAID, "content": [hologram]}])
    assert responses.render("assistant", message.content) == [
        {"role": "assistant", "content": [hologram]}
    ]


@pytest.mark.parametrize("as_dump", [False, True])
def test_a_response_object_and_its_dump_are_one_message(*, as_dump: bool) -> None:
    response = Response.model_validate(
        {
            "id": "resp_1",
            "object": "response",
            "created_at": 1,
            "model": "gpt-5-mini",
            "output": [REASONING, SAID, CALLS[0]],
            "parallel_tool_calls": True,
            "tool_choice": "auto",
            "tools": [],
        }
    )
    (message,) = Message.from_openai_responses(response.model_dump() if as_dump else response)
    assert message.text == "I look."
    assert message.tool_calls[0].arguments == '{"at": 1}'
    assert responses.render("assistant", message.content) == [REASONING, SAID, CALLS[0]]


@pytest.mark.parametrize(
    ("items", "text"),
    [
        (5, "input 5 is a int"),
        ([5], "item 5 is not an object"),
        ([{"x": 1}], "has no type"),
        ([{"role": "pirate", "content": "x"}], "role 'pirate' is unknown"),
        ([{"type": "function_call", "name": "f"}], "needs call_id, name and arguments"),
        ([{"type": "function_call_output", "output": "x"}], "has no call_id"),
        ([{"role": "user", "content": [{"type": "input_text"}]}], "needs a text"),
    ],
)
def test_malformed_items_are_refused_by_name(items: object, text: str) -> None:
    with pytest.raises(InvalidMessage, match=text):
        Message.from_openai_responses(items)


CONTENTS: list[dict[str, Any]] = [
    {"role": "user", "parts": [{"text": "Look."}]},
    {
        "role": "model",
        "parts": [
            {"text": "Hm.", "thought": True},
            {"functionCall": {"name": "look", "args": {"at": 1}}, "thoughtSignature": "c2ln"},
            {"functionCall": {"name": "look", "args": {"at": 2}}},
            {"functionCall": {"name": "find", "args": {}, "id": "f1"}},
        ],
    },
    {
        "role": "user",
        "parts": [
            {"functionResponse": {"name": "look", "response": {"output": "one"}}},
            {"functionResponse": {"name": "look", "response": {"rows": [2]}}},
            {"functionResponse": {"name": "find", "response": {"error": "none"}, "id": "f1"}},
        ],
    },
    {
        "role": "model",
        "parts": [
            {"text": "Done.", "thoughtSignature": "c2ln"},
            {"executableCode": {"code": "1", "language": "PYTHON"}},
            {"inlineData": {"mimeType": "image/png", "data": "iVBORw0K"}},
        ],
    },
    {
        "role": "user",
        "parts": [
            {"fileData": {"fileUri": "https://x.test/a.pdf", "mimeType": "application/pdf"}},
            {"inlineData": {"mimeType": "text/plain", "data": "aGk=", "displayName": "a.txt"}},
        ],
    },
]


async def test_contents_of_gemini_come_back_as_they_were() -> None:
    async with Memory.open("sqlite:///:memory:") as memory:
        chat = memory.conversation("a")
        await chat.append(*map(Message.from_gemini, CONTENTS))
        context = await chat.context(system="You help.")

    sent = context.to_gemini()
    assert sent["systemInstruction"] == {"parts": [{"text": "You help."}]}
    assert sent["contents"][:4] == CONTENTS[:4]
    assert sent["contents"][4]["parts"][:2] == CONTENTS[4]["parts"]
    results = context.to_openai()["messages"][3:6]
    assert [turn["content"] for turn in results] == [
        "one",
        '{"rows":[2]}',
        "[the tool failed]\nnone",
    ]


@pytest.mark.parametrize("content", CONTENTS)
def test_contents_of_geminis_client_and_their_dumps_are_read_alike(content: dict[str, Any]) -> None:
    model = genai.Content.model_validate(content)
    read = Message.from_gemini(content)
    for given in (model, model.model_dump(), model.model_dump(mode="json", exclude_none=True)):
        assert Message.from_gemini(given) == read
    assert gemini.render(read.role, read.content)["parts"][0].keys() == content["parts"][0].keys()


def model(*parts: dict[str, Any]) -> dict[str, Any]:
    return {"role": "model", "parts": list(parts)}


@pytest.mark.parametrize(
    ("content", "text"),
    [
        ({"role": "system", "parts": []}, "role 'system' is unknown"),
        ({"candidates": [{"content": model()}]}, r"pass response.candidates\[0\].content"),
        ({"content": model(), "finishReason": "STOP"}, "with content is not a content"),
        ({"parts": [{}]}, "is empty"),
        ({"parts": [{"text": 0}]}, "the text of a part is 0: pass a string"),
        ({"parts": [{"functionCall": {}}]}, "has the name None"),
        ({"parts": [{"inlineData": {}}]}, "is incomplete"),
        ({"parts": [{"text": "a", "functionCall": {"name": "f"}}]}, "of several kinds"),
    ],
)
def test_malformed_contents_are_refused_by_name(content: dict[str, Any], text: str) -> None:
    with pytest.raises(InvalidMessage, match=text):
        Message.from_gemini(content)


def call(name: str, id_: str | None = None) -> dict[str, Any]:
    return {"functionCall": {"name": name, "args": {}, **({"id": id_} if id_ else {})}}


def result(name: str, text: str, id_: str | None = None) -> dict[str, Any]:
    given = {"id": id_} if id_ else {}
    return {"functionResponse": {"name": name, "response": {"output": text}, **given}}


def user(*parts: dict[str, Any]) -> dict[str, Any]:
    return {"role": "user", "parts": list(parts)}


NAMELESS: dict[str, list[dict[str, Any]]] = {
    "results in another order": [
        model(call("look"), call("find"), call("look")),
        user(result("find", "f"), result("look", "a"), result("look", "b")),
    ],
    "a content for each result": [
        model(call("look"), call("look"), call("find")),
        user(result("look", "a")),
        user(result("look", "b")),
        user(result("find", "f")),
    ],
    "a content for each call": [
        model(call("look")),
        model(call("look")),
        model(call("find")),
        user(result("look", "a"), result("look", "b"), result("find", "f")),
    ],
    "calls with ids": [
        model(call("look", "l1"), call("find", "f1"), call("look", "l2")),
        user(result("look", "a"), result("look", "b"), result("find", "f")),
    ],
    "calls of which one has an id": [
        model(call("look", "l1"), call("look"), call("find")),
        user(result("look", "b"), result("look", "a", "l1"), result("find", "f")),
    ],
}


@pytest.mark.parametrize("at_once", [True, False])
@pytest.mark.parametrize("name", NAMELESS)
async def test_results_without_an_id_answer_the_calls_of_their_tool_in_order(
    name: str, at_once: bool
) -> None:
    start = {"role": "user", "parts": [{"text": "Look."}]}
    contents = [start, *NAMELESS[name], *NAMELESS[name]]
    messages = [Message.from_gemini(content) for content in contents]
    async with Memory.open("sqlite:///:memory:") as memory:
        chat = memory.conversation("a")
        for batch in [messages] if at_once else [[message] for message in messages]:
            await chat.append(*batch)
        sent = (await chat.context()).to_openai()["messages"]

    asked: dict[str, list[str]] = {}
    for turn in sent:
        for made in turn.get("tool_calls", ()):
            asked.setdefault(made["function"]["name"], []).append(made["id"])
    answers = {turn["tool_call_id"]: turn["content"] for turn in sent if turn["role"] == "tool"}
    assert [answers[id_] for id_ in asked["look"]] == ["a", "b"] * 2
    assert [answers[id_] for id_ in asked["find"]] == ["f"] * 2
    assert "late result" not in str(sent)


async def test_a_result_without_an_id_may_be_appended_again() -> None:
    asking = Message.from_gemini(model(call("look"), call("look")))
    answer = Message.from_gemini(user(result("look", "a"))).replace(id="m1")
    async with Memory.open("sqlite:///:memory:") as memory:
        chat = memory.conversation("a")
        await chat.append(Message.user("Look."), asking)
        first = await chat.append(answer)

        assert await chat.append(answer) == first


async def test_a_result_of_a_tool_that_nobody_called_is_refused() -> None:
    async with Memory.open("sqlite:///:memory:") as memory:
        chat = memory.conversation("a")
        await chat.append(Message.user("Look."), Message.from_gemini(model(call("look"))))
        with pytest.raises(InvalidMessage, match="must follow the assistant's message with its"):
            await chat.append(Message.from_gemini(user(result("find", "f"))))


def test_one_item_whose_output_is_a_list_is_no_response() -> None:
    output = [{"type": "input_text", "text": "42"}]
    [message] = responses.parse({"type": "function_call_output", "call_id": "c1", "output": output})

    assert message.role == "tool"
