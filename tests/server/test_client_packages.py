"""OpenAI's client for Node and LiteLLM, unchanged, in front of the proxy.

REMANENCE_TEST_OPENAI_NODE names the folder `node_modules/openai` of `npm install openai`, and
REMANENCE_TEST_LITELLM a Python in whose environment `litellm` is installed.
"""

import asyncio
import json
import os
from asyncio.subprocess import PIPE
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from tests.server.conftest import served
from tests.server.test_real_clients import (
    POLICY,
    TURNS,
    Provider,
    observe_all,
    prompt_of,
    reply_to,
)
from tests.wire.dialects import Call, Reply
from tests.wire.servers import ModelServer

from remanence import Memory
from remanence.server.app import create_app

CLIENTS = Path(__file__).with_name("clients")
PIXEL = (
    "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk"
    "+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)
NODE = os.environ.get("REMANENCE_TEST_OPENAI_NODE")
LITELLM = os.environ.get("REMANENCE_TEST_LITELLM")
needs_node = pytest.mark.skipif(not NODE, reason="REMANENCE_TEST_OPENAI_NODE names no client")
needs_litellm = pytest.mark.skipif(not LITELLM, reason="REMANENCE_TEST_LITELLM names no Python")

pytestmark = pytest.mark.timeout(60 + 10 * TURNS)


@pytest.fixture
async def provider() -> AsyncIterator[ModelServer]:
    async with Provider().running() as server:
        yield server


@pytest.mark.parametrize(
    ("command", "api"),
    [
        pytest.param(
            ("node", CLIENTS / "openai_node.mjs", NODE),
            "openai/v1",
            marks=needs_node,
            id="openai for node",
        ),
        pytest.param(
            (LITELLM, CLIENTS / "litellm_client.py", "openai/gpt-5"),
            "openai/v1",
            marks=needs_litellm,
            id="litellm for openai",
        ),
        pytest.param(
            (LITELLM, CLIENTS / "litellm_client.py", "anthropic/claude-haiku-4-5"),
            "anthropic",
            marks=needs_litellm,
            id="litellm for anthropic",
        ),
    ],
)
async def test_a_client_talks_with_streams_tools_and_images(
    provider: ModelServer, tmp_path: Path, command: tuple[Any, ...], api: str
) -> None:
    async with Memory.open(f"sqlite:///{tmp_path}/memory.db", policy=POLICY) as memory:
        app = create_app(memory, openai_url=provider.url, anthropic_url=provider.url)
        async with served(app) as proxy:
            arguments = (*map(str, command), f"{proxy.http.base_url}/{api}")
            client = await asyncio.create_subprocess_exec(
                *arguments,
                env={**os.environ, "LITELLM_LOCAL_MODEL_COST_MAP": "True"},
                stdin=PIPE,
                stdout=PIPE,
            )
            for turn in range(TURNS):
                assert await answer_of(provider, client, turn) == reply_to(turn)
                await observe_all(memory)
            assert client.stdin is not None
            client.stdin.close()
            assert await client.wait() == 0
        await check_tape(memory)
    check_requests([received.body["messages"] for received in provider.received])


async def answer_of(provider: ModelServer, client: asyncio.subprocess.Process, turn: int) -> object:
    """The answer that a client has got to a turn; every third one calls a tool first."""
    if turn % 3 == 2:
        provider.script(Reply("", calls=(Call(f"call-{turn}", "find", {"pier": turn}),)))
    provider.script(Reply(reply_to(turn)))
    content: Any = prompt_of(turn)
    if turn % 5 == 4:
        image = {"type": "image_url", "image_url": {"url": PIXEL}}
        content = [{"type": "text", "text": content}, image]
    line = json.dumps({"content": content, "stream": turn % 2 == 1})
    assert client.stdin is not None
    assert client.stdout is not None
    client.stdin.write(f"{line}\n".encode())
    return json.loads(await client.stdout.readline())


async def check_tape(memory: Memory) -> None:
    """Each message of the client is on one tape, once."""
    (state,) = await memory.conversations()
    tape = await memory.conversation(state.ref.id, tenant=state.ref.tenant).messages()
    calls = len(range(2, TURNS, 3))
    assert [message.role for message in tape].count("assistant") == TURNS + calls
    assert [message.role for message in tape].count("user") == TURNS
    texts = "\n".join(message.text for message in tape)
    assert all(texts.count(prompt_of(turn)) == 1 for turn in range(TURNS))


def check_requests(requests: list[list[Any]]) -> None:
    """Each has the newest turn, and the last is not much longer than those before."""
    texts = [json.dumps(messages) for messages in requests]
    turns = [turn for turn in range(TURNS) for _ in range(2 if turn % 3 == 2 else 1)]
    assert all(prompt_of(turn) in text for turn, text in zip(turns, texts, strict=True))
    assert sum("image" in text for text in texts) >= len(range(4, TURNS, 5))
    whole = sum(len(prompt_of(turn)) + len(reply_to(turn)) for turn in range(TURNS))
    assert len(texts[-1]) - len(texts[0]) < whole
