"""Several models behind `remanence serve`, and the window that counts."""

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.server.conftest import Speaker, served
from tests.server.process import service
from tests.slow import slow_except
from tests.wire.dialects import Reply
from tests.wire.servers import Fail, ModelServer

from remanence import Memory, Settings
from remanence.chat import open_chat_model
from remanence.errors import InvalidPolicy, ModelError
from remanence.policy.presets import PolicyValue
from remanence.providers import ModelOptions, open_model
from remanence.server.app import create_app
from remanence.testing import FixedClock

CHAT = "/v1/conversations/trip/chat"


@pytest.mark.timeout(90)  # it loads the clients of providers, in a process of its own
async def test_the_next_model_of_the_command_answers_where_the_first_is_down(
    tmp_path: Path,
) -> None:
    async with ModelServer().running() as models, asyncio.timeout(80):
        models.script(Fail(401), Reply("Gate B42."))
        options = [f"--model=openai:{name}@{models.url}/v1" for name in ("first", "next")]
        async with service(tmp_path, *options) as running:
            reply = await running.http.post(CHAT, json={"text": "Which gate?", "user": "ana"})

    assert reply.json()["text"] == "Gate B42."
    assert [call["model"] for call in reply.json()["calls"]] == ["openai:next"]
    assert [received.body["model"] for received in models.received] == ["first", "next"]
    assert "memory_search" in str(models.received[1].body["tools"])


@pytest.mark.timeout(90)
@pytest.mark.parametrize(
    ("names", "whole"),
    slow_except(
        [(("gpt-4.1",), True), (("mine",), False), (("gpt-4.1", "mine"), False)],
        [(("gpt-4.1", "mine"), False)],
    ),
)
async def test_the_smallest_window_of_the_models_counts(
    tmp_path: Path, names: tuple[str, ...], whole: bool
) -> None:
    text = "gate 12 or 14, " * 25_000  # more than the 128,000 tokens of a model that nobody knows
    async with ModelServer().running() as models, asyncio.timeout(80):
        options = [f"--model=openai:{name}@{models.url}/v1" for name in names]
        async with service(tmp_path, *options) as running:
            reply = await running.http.post(CHAT, json={"text": text})
            shown = [str(received.body["messages"]) for received in models.received]

    assert reply.status_code in {200, 413}
    assert any(text.strip() in messages for messages in shown) == whole


SMALL: dict[str, PolicyValue] = {
    "observe_tokens": 100,
    "tail_tokens": 300,
    "tail_keep_tokens": 50,
    "keep_last": 0,
    "reflect_tokens": (20, 400),
    "note_language": "Klingon",
}


async def test_observer_and_reflector_behind_the_service_have_models_and_keys_of_their_own(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    monkeypatch.setenv("OBSERVER_ACCESS", "zz-observer-0123456789")
    monkeypatch.setenv("REFLECTOR_ACCESS", "zz-reflector-0123456789")
    note = Reply("#1 [IMPORTANT Fact] user: lives in Lisbon, by the sea, with a cat and two dogs")
    async with ModelServer().running() as observers, ModelServer().running() as reflectors:
        observers.script(*[note] * 20)
        reflectors.script(*[note] * 20)
        settings = Settings(
            url="sqlite:///:memory:",
            observer_model=f"openai:observer@{observers.url}/v1",
            observer_key_variable="OBSERVER_ACCESS",
            reflector_model=f"openai:reflector@{reflectors.url}/v1",
            reflector_key_variable="REFLECTOR_ACCESS",
            policy=SMALL,
        )
        async with (
            Memory.open(settings=settings) as memory,
            served(create_app(memory, model=Speaker())) as client,
        ):
            for number in range(6):
                text = f"On day {number} " + "I walk to the harbour and back. " * 20
                await client.post(CHAT, text=text, user="ana")
            await memory.conversation("trip", user="ana").flush()
        keys = [
            {received.headers["authorization"] for received in server.received}
            for server in (observers, reflectors)
        ]
        prompts = [
            str(received.body["messages"])
            for server in (observers, reflectors)
            for received in server.received
        ]

    assert keys == [{"Bearer zz-observer-0123456789"}, {"Bearer zz-reflector-0123456789"}]
    assert all("Write them in Klingon." in prompt for prompt in prompts)


async def test_a_key_that_the_provider_repeats_is_not_told_whatever_its_variable(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("MY_ACCESS", "zz-observer-0123456789")
    async with ModelServer().running() as models:
        models.script(Fail(401, "the key {key} is wrong", "authentication_error"))
        options = ModelOptions(key_variable="MY_ACCESS", attempts=1)
        model = open_chat_model(f"openai:mine@{models.url}/v1", clock=FixedClock(), options=options)
        async with (
            Memory.open("sqlite:///:memory:") as memory,
            served(create_app(memory, model=model)) as client,
        ):
            reply = await client.post(CHAT, text="Which gate?")

    assert models.received[0].headers["authorization"] == "Bearer zz-observer-0123456789"
    assert reply.json()["reason"] == "auth"
    assert "zz-observer" not in reply.text


@pytest.mark.parametrize("provider", ["anthropic", "openai", "ollama"])
async def test_a_variable_that_is_not_set_is_named_when_the_model_is_opened(provider: str) -> None:
    options = ModelOptions(key_variable="NOT_SET_HERE")
    for opened in (open_model, open_chat_model):
        with pytest.raises(ModelError, match="set NOT_SET_HERE") as caught:
            opened(f"{provider}:mine", clock=FixedClock(), options=options)
        assert caught.value.reason == "auth"


@pytest.mark.parametrize("opened", [open_model, open_chat_model])
@pytest.mark.parametrize(
    "chain", ["anthropic:one, openai:two", ["anthropic:one", ["openai:two", "anthropic:three"]]]
)
def test_a_chain_gives_the_own_key_of_its_first_model_to_no_other_provider(
    monkeypatch: pytest.MonkeyPatch, opened: Callable[..., object], chain: str | list[object]
) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    monkeypatch.setenv("ANTHROPIC_ACCESS", "zz-anthropic-0123456789")
    options = ModelOptions(key_variable="ANTHROPIC_ACCESS")

    with pytest.raises(ModelError, match="openai:two needs a key: set OPENAI_API_KEY"):
        opened(chain, clock=FixedClock(), options=options)


@pytest.mark.parametrize("key", ["sk-ant-0123456789", "AIzaSyD0123456789", ""])
def test_a_key_in_place_of_its_variable_is_refused_and_not_repeated(key: str) -> None:
    for name in ("model_key_variable", "observer_key_variable", "reflector_key_variable"):
        changes: dict[str, Any] = {name: key}
        with pytest.raises(InvalidPolicy, match=f"{name} is not the name of") as caught:
            Settings(**changes)
        assert not key or key not in str(caught.value)
