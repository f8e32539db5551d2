"""Chats with servers that speak Chat Completions in their own way."""

import json
from typing import Any

import pytest
from tests.wire.dialects import Body
from tests.wire.reach import KEY
from tests.wire.servers import Fail, ModelServer, Raw
from tests.wire.talking import ONE_TRY, conversing

from remanence import Chat, Tool
from remanence.chat import Done
from remanence.errors import ModelError
from remanence.protocols import ModelRequest
from remanence.providers import ModelOptions, open_model

FRAME = {"id": "c", "created": 1, "model": "m"}
OSLO, ROME = '{"city":"Oslo"}', '{"city":"Rome"}'


async def forecast(arguments: dict[str, Any]) -> str:
    return f"sun in {arguments['city']}"


WEATHER = Tool(
    name="weather", description="Forecasts.", parameters={"type": "object"}, handler=forecast
)


def call(arguments: str, **fields: Any) -> Body:
    return {"function": {"name": "weather", "arguments": arguments}, "type": "function"} | fields


def whole(message: Body, finish: str = "stop") -> Raw:
    choice = {"index": 0, "message": {"role": "assistant", **message}, "finish_reason": finish}
    return Raw((json.dumps({**FRAME, "object": "chat.completion", "choices": [choice]}),))


def stream(*deltas: Body, finish: str = "stop") -> Raw:
    choices: list[Body] = [{"index": 0, "delta": delta} for delta in deltas]
    choices.append({"index": 0, "delta": {}, "finish_reason": finish})
    frame = {**FRAME, "object": "chat.completion.chunk"}
    return Raw(tuple(json.dumps({**frame, "choices": [choice]}) for choice in choices))


async def second_request(server: ModelServer, *answers: Raw, streamed: bool) -> list[Body]:
    """The messages of the request that follows the first answer."""
    server.script(*answers)
    async with conversing() as conversation:
        chat = Chat(
            conversation, model=f"openai:m@{server.url}/v1", tools=[WEATHER], options=ONE_TRY
        )
        if streamed:
            events = [event async for event in chat.stream("The weather?")]
            assert isinstance(events[-1], Done)
        else:
            await chat.send("The weather?")
    messages: list[Body] = server.received[1].body["messages"]
    return messages


def results(messages: list[Body]) -> list[str]:
    return [message["content"] for message in messages if message["role"] == "tool"]


@pytest.mark.parametrize("index", [{"index": 0}, {}], ids=["the same index", "no index"])
async def test_streamed_calls_are_told_apart_by_their_ids(server: ModelServer, index: Body) -> None:
    pieces = [
        {"tool_calls": [call(ROME, id="a", **index)]},
        {"tool_calls": [call(OSLO[:6], id="b", **index)]},
        {"tool_calls": [{"function": {"arguments": OSLO[6:]}, **index}]},
    ]

    messages = await second_request(
        server, stream(*pieces, finish="tool_calls"), stream({"content": "Sun."}), streamed=True
    )

    assert results(messages) == ["sun in Rome", "sun in Oslo"]


@pytest.mark.parametrize(
    "calls",
    [
        [call(ROME, id=""), call(OSLO, id=None)],
        [call(ROME, id="a"), call(OSLO, id="a")],
        [call(ROME, id="a", type=None), call(OSLO, id="b", type=None)],
    ],
    ids=["no ids", "the same id", "no type"],
)
async def test_calls_without_an_id_or_a_type_of_their_own_are_run(
    server: ModelServer, calls: list[Body]
) -> None:
    answer = whole({"content": None, "tool_calls": calls}, "tool_calls")

    messages = await second_request(server, answer, whole({"content": "Sun."}), streamed=False)

    assert results(messages) == ["sun in Rome", "sun in Oslo"]
    assert len({made["id"] for made in messages[-3]["tool_calls"]}) == 2


@pytest.mark.parametrize("streamed", [False, True])
async def test_fields_that_only_the_server_knows_go_back_to_it(
    server: ModelServer, *, streamed: bool
) -> None:
    signed = call(ROME, id="a", index=0, extra_content={"google": {"thought_signature": "s"}})
    rest = {"index": 0, "function": {"arguments": ""}, "extra_content": None}
    answers = (
        (
            stream(
                {"reasoning_content": "Which "},
                {"reasoning_content": "city?"},
                {"reasoning_content": None, "tool_calls": [signed]},  # as DeepSeek and vLLM write
                {"reasoning_content": None, "tool_calls": [rest]},
                finish="tool_calls",
            ),
            stream({"content": "Sun."}),
        )
        if streamed
        else (
            whole({"reasoning_content": "Which city?", "tool_calls": [signed]}, "tool_calls"),
            whole({"content": "Sun."}),
        )
    )

    messages = await second_request(server, *answers, streamed=streamed)

    answered = messages[-2]
    assert answered["reasoning_content"] == "Which city?"
    assert answered["tool_calls"][0]["extra_content"] == {"google": {"thought_signature": "s"}}


@pytest.mark.parametrize(
    ("error", "reason", "text"),
    [
        ({"message": "Provider returned error", "code": 502}, "server", "HTTP 502"),
        ({"message": "Insufficient credits", "code": 402}, "quota", "Insufficient credits"),
        ({"message": "It broke.", "code": None}, "server", "failed"),
    ],
)
@pytest.mark.parametrize("streamed", [False, True], ids=["whole", "stream"])
async def test_an_error_with_status_200_has_the_reason_of_its_code(
    server: ModelServer, ask: ModelRequest, error: Body, reason: str, text: str, *, streamed: bool
) -> None:
    server.script(Raw((json.dumps({"error": error}),)))
    options = ModelOptions(attempts=1, stream=streamed)

    with pytest.raises(ModelError, match=text) as caught:
        await open_model(f"openai:m@{server.url}/v1", options=options).complete(ask)

    assert caught.value.reason == reason


async def test_a_filter_that_refuses_a_request_is_a_refusal(
    server: ModelServer, ask: ModelRequest
) -> None:
    server.script(Fail(400, "The prompt was filtered.", "content_filter"))

    with pytest.raises(ModelError) as caught:
        await open_model(f"openai:m@{server.url}/v1").complete(ask)

    assert caught.value.reason == "refused"


async def test_what_openai_wrote_to_its_cache_is_counted(
    server: ModelServer, ask: ModelRequest
) -> None:
    message = {"role": "assistant", "content": "- ok"}
    choice = {"index": 0, "message": message, "finish_reason": "stop"}
    details = {"cached_tokens": 10, "cache_write_tokens": 80}
    tokens = {"prompt_tokens": 100, "completion_tokens": 2, "total_tokens": 102}
    usage = {**tokens, "prompt_tokens_details": details}
    answer = {**FRAME, "object": "chat.completion", "choices": [choice], "usage": usage}
    server.script(Raw((json.dumps(answer),)))

    answered = await open_model(f"openai:m@{server.url}/v1").complete(ask)

    assert answered.usage.cache_read_tokens == 10
    assert answered.usage.cache_write_tokens == 80


@pytest.mark.parametrize(
    ("model", "limit"),
    [
        ("openai:mistral-large@{url}/v1", "max_tokens"),
        ("openai:openai/gpt-5.6@{url}/v1", "max_completion_tokens"),
        ("ollama:llama3.2@{url}/v1", "max_tokens"),
        ("openai:gpt-5.6", "max_completion_tokens"),
    ],
)
async def test_the_output_limit_is_named_as_the_server_knows_it(
    server: ModelServer, monkeypatch: pytest.MonkeyPatch, model: str, limit: str, ask: ModelRequest
) -> None:
    monkeypatch.setenv("OPENAI_BASE_URL", f"{server.url}/v1")
    monkeypatch.setenv("OPENAI_API_KEY", KEY)

    await open_model(model.format(url=server.url)).complete(ask)

    assert {"max_tokens", "max_completion_tokens"} & server.received[0].body.keys() == {limit}
