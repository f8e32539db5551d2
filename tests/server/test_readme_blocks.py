"""The ways into a service that README.md and docs/ show: through the proxy, and over HTTP."""

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


def function(name: str, page: str = "README.md") -> Any:
    """A function of a page, by its name."""
    blocks = (Path(__file__).parents[2] / page).read_text().split("```python\n")[1:]
    (block,) = [
        code for code in (block.split("```")[0] for block in blocks) if f"def {name}(" in code
    ]
    names: dict[str, Any] = {}
    exec(block, names)
    return names[name]


async def test_a_client_of_openai_talks_through_the_proxy(
    memory: Memory, upstream: ModelServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "a-key")
    upstream.script(Reply("Gate B42."), Reply("At noon."))
    async with served(create_app(memory, openai_url=upstream.url)) as proxy:
        url = f"{proxy.http.base_url}/openai/v1"
        history = await function("talk")(
            "Which gate?", "And when?", conversation="trip-3", base_url=url
        )

    (state,) = await memory.conversations()
    assert [message["content"] for message in history[1::2]] == ["Gate B42.", "At noon."]
    assert (state.ref.id, state.last_seq) == ("trip-3", len(history))


async def test_a_question_in_a_later_conversation_is_answered_from_memory(
    memory: Memory, upstream: ModelServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "a-key")
    ask = function("ask", "docs/howto/proxy.md")
    upstream.script(Reply("Noted."), Reply("From Lisbon."))
    async with served(create_app(memory, openai_url=upstream.url)) as proxy:
        url = f"{proxy.http.base_url}/openai/v1"
        await ask("I live in Lisbon.", conversation="monday", base_url=url)
        (monday,) = await memory.conversations()
        await memory.conversation(monday.ref.id, tenant=monday.ref.tenant, user="ana").end()
        said = await ask("Which airport?", conversation="friday", base_url=url)

    *told, question = upstream.received[1].body["messages"]
    assert "Lisbon" in str(told)
    assert (question["content"], said) == ("Which airport?", "From Lisbon.")


async def test_a_program_keeps_a_message_over_http(memory: Memory) -> None:
    async with served(create_app(memory)) as service:
        request = await asyncio.to_thread(
            function("keep"), "My flight is LH 454.", str(service.http.base_url)
        )

    assert "LH 454" in json.dumps(request["messages"])
