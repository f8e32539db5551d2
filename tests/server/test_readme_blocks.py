"""The ways into a service that README.md shows: through the proxy, and over HTTP."""

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest
from tests.server.conftest import served
from tests.wire.dialects import Reply
from tests.wire.servers import ModelServer

from remanence import Memory
from remanence.server.app import create_app


def function(name: str) -> Any:
    """A function of the README, by its name."""
    blocks = (Path(__file__).parents[2] / "README.md").read_text().split("```python\n")[1:]
    (block,) = [
        code for code in (block.split("```")[0] for block in blocks) if f"def {name}(" in code
    ]
    names: dict[str, Any] = {}
    exec(block, names)
    return names[name]


async def test_a_client_of_openai_talks_through_the_proxy(
    memory: Memory, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "a-key")
    async with ModelServer().running() as provider:
        provider.script(Reply("Gate B42."), Reply("At noon."))
        async with served(create_app(memory, openai_url=provider.url)) as proxy:
            url = f"{proxy.http.base_url}/openai/v1"
            history = await function("talk")("Which gate?", "And when?", base_url=url)

    (state,) = await memory.conversations()
    assert [message["content"] for message in history[1::2]] == ["Gate B42.", "At noon."]
    assert (state.ref.id, state.last_seq) == ("trip-3", len(history))


async def test_a_program_keeps_a_message_over_http(memory: Memory) -> None:
    async with served(create_app(memory)) as service:
        request = await asyncio.to_thread(
            function("keep"), "My flight is LH 454.", str(service.http.base_url)
        )

    assert "LH 454" in json.dumps(request["messages"])
