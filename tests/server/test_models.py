"""Several models behind `remanence serve`, and the window that counts."""

import asyncio
from pathlib import Path

import pytest
from tests.server.process import service
from tests.wire.dialects import Reply
from tests.wire.servers import Fail, ModelServer

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
    [(("gpt-4.1",), True), (("mine",), False), (("gpt-4.1", "mine"), False)],
)
async def test_the_smallest_window_of_the_models_counts(
    tmp_path: Path, names: tuple[str, ...], whole: bool
) -> None:
    text = "gate 12 or 14, " * 40_000  # more than the 128,000 tokens of a model that nobody knows
    async with ModelServer().running() as models, asyncio.timeout(80):
        options = [f"--model=openai:{name}@{models.url}/v1" for name in names]
        async with service(tmp_path, *options) as running:
            reply = await running.http.post(CHAT, json={"text": text})
            shown = [str(received.body["messages"]) for received in models.received]

    assert reply.status_code in {200, 413}
    assert any(text.strip() in messages for messages in shown) == whole
