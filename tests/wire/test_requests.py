import asyncio
from dataclasses import replace

import pytest
from tests.wire.dialects import Reply
from tests.wire.reach import KEY, Wire
from tests.wire.servers import ModelServer

from remanence.protocols import ModelRequest
from remanence.providers import open_model

STABLE = "You keep notes of a conversation."
PROMPT = "User: my flight is LH 454"


async def test_a_model_answers_with_its_text(wire: Wire, ask: ModelRequest) -> None:
    answer = await wire.open().complete(ask)

    assert answer.text == "[Fact] noted"
    assert answer.complete


@pytest.mark.req("B-38")
async def test_each_text_block_of_an_answer_begins_a_line(
    anthropic_wire: Wire, ask: ModelRequest
) -> None:
    anthropic_wire.server.script(Reply("#1 user: lives in Lisbon", more=("#2 user: has a cat",)))

    answer = await anthropic_wire.open().complete(ask)

    assert answer.text == "#1 user: lives in Lisbon\n#2 user: has a cat"


async def test_the_stable_text_goes_first_and_the_prompt_is_the_users(
    wire: Wire, ask: ModelRequest
) -> None:
    await wire.open().complete(ask)

    body = wire.server.received[0].body
    if wire.provider == "anthropic":
        system, messages = body["system"], body["messages"]
        assert [block["text"] for block in system] == [STABLE]
        assert messages == [{"role": "user", "content": [{"type": "text", "text": PROMPT}]}]
    else:
        assert body["messages"] == [
            {"role": "system", "content": STABLE},
            {"role": "user", "content": PROMPT},
        ]


async def test_only_the_stable_text_is_marked_for_caching(
    anthropic_wire: Wire, ask: ModelRequest
) -> None:
    await anthropic_wire.open().complete(ask)

    body = anthropic_wire.server.received[0].body
    assert body["system"][0]["cache_control"]["type"] == "ephemeral"
    assert str(body).count("cache_control") == 1


@pytest.mark.req("X-16")
async def test_a_request_asks_for_short_repeatable_text_and_gives_no_tools(
    wire: Wire, ask: ModelRequest
) -> None:
    await wire.open().complete(ask)

    body = wire.server.received[0].body
    assert body["temperature"] == 0
    assert body.get("max_tokens", body.get("max_completion_tokens")) == 500
    assert "tools" not in body
    assert bool(body.get("stream")) is wire.stream


async def test_a_request_without_stable_text_has_no_instructions(
    wire: Wire, ask: ModelRequest
) -> None:
    await wire.open().complete(replace(ask, stable=""))

    body = wire.server.received[0].body
    assert "system" not in body
    assert [message["role"] for message in body["messages"]] == ["user"]


@pytest.mark.parametrize("model", ["gpt-5-mini", "o3"])
async def test_a_reasoning_model_is_asked_without_temperature(
    server: ModelServer, ask: ModelRequest, model: str
) -> None:
    await open_model(f"openai:{model}@{server.url}/v1").complete(ask)

    assert "temperature" not in server.received[0].body


@pytest.mark.req("B-37")
async def test_base_url_and_key_come_from_the_providers_own_variables(
    wire: Wire, ask: ModelRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ANTHROPIC_BASE_URL", wire.server.url)
    monkeypatch.setenv("OPENAI_BASE_URL", f"{wire.server.url}/v1")

    await open_model(wire.name).complete(ask)

    assert KEY in str(wire.server.received[0].headers)


async def test_a_server_of_ones_own_needs_no_key(
    server: ModelServer, ask: ModelRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("OPENAI_API_KEY")

    answer = await open_model(f"openai:my-model@{server.url}/v1").complete(ask)

    assert answer.text == "[Fact] noted"
    assert answer.usage.cost_usd is None


async def test_ollama_is_reached_where_its_variable_says(
    server: ModelServer, ask: ModelRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OLLAMA_BASE_URL", f"{server.url}/v1")

    answer = await open_model("ollama:llama3.2").complete(ask)

    assert answer.text == "[Fact] noted"
    assert server.received[0].body["model"] == "llama3.2"


async def test_a_proxy_in_the_environment_is_not_used_for_this_machine(
    wire: Wire, ask: ModelRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("NO_PROXY", raising=False)
    monkeypatch.delenv("no_proxy", raising=False)
    for name in ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "http_proxy", "https_proxy"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")

    answer = await wire.open().complete(ask)

    assert answer.text == "[Fact] noted"


async def test_concurrent_calls_of_one_model_do_not_mix(wire: Wire, ask: ModelRequest) -> None:
    model = wire.open()
    async with asyncio.TaskGroup() as group:
        calls = [group.create_task(model.complete(ask)) for _ in range(5)]

    assert {call.result().text for call in calls} == {"[Fact] noted"}
    assert len(wire.server.received) == 5


async def test_openai_is_told_a_cache_key_that_depends_on_the_stable_text_alone(
    server: ModelServer, ask: ModelRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_BASE_URL", f"{server.url}/v1")
    model = open_model("openai:gpt-4o-mini")

    await model.complete(ask)
    await model.complete(replace(ask, prompt="User: another matter"))
    await model.complete(replace(ask, stable="Other instructions."))

    first, second, third = (received.body["prompt_cache_key"] for received in server.received)
    assert first == second != third
    assert first.startswith("remanence-")


async def test_an_openai_compatible_server_is_told_no_cache_key(
    server: ModelServer, ask: ModelRequest
) -> None:
    await open_model(f"openai:my-model@{server.url}/v1").complete(ask)

    assert "prompt_cache_key" not in server.received[0].body
