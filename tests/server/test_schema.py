"""The service answers as its OpenAPI document says: schemathesis, where a variable names it.

REMANENCE_TEST_SCHEMATHESIS names the program `st` of an environment with `schemathesis`. All
operations are called: chats with a model, and the proxies with a provider, on loopback. A stream of
events ends after its first piece.
"""

import asyncio
import os
from asyncio.subprocess import PIPE
from pathlib import Path

import pytest
from starlette.types import ASGIApp, Message, Receive, Scope, Send
from tests.server.conftest import POLICY, Speaker, served
from tests.wire.servers import ModelServer

from remanence import Memory
from remanence.server.app import create_app

PROGRAM = os.environ.get("REMANENCE_TEST_SCHEMATHESIS", "")
LEFT_OUT = "positive_data_acceptance,use_after_free"
"""A schema does not say what is a name, or a message of a provider; and a conversation without
messages, such as one that was deleted, can be read."""

CONFIGURATION = """
[[operations]]
include-path-regex = "^/(openai|anthropic)/"
checks.allow_header_conformance.enabled = false  # a proxy takes any method, for its provider
"""


class EndedStreams:
    """An application whose streams of events end after their first piece."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        has_begun, is_asked = asyncio.Event(), False

        async def send_noted(message: Message) -> None:
            await send(message)
            if message["type"] == "http.response.body":
                has_begun.set()

        async def receive_once() -> Message:
            nonlocal is_asked
            if is_asked:
                await has_begun.wait()
                return {"type": "http.disconnect"}
            is_asked = True
            return await receive()

        if scope["type"] == "http" and scope["path"] == "/v1/events":
            await self._app(scope, receive_once, send_noted)
            await send({"type": "http.response.body"})
        else:
            await self._app(scope, receive, send)


@pytest.mark.skipif(not PROGRAM, reason="REMANENCE_TEST_SCHEMATHESIS names no program")
@pytest.mark.timeout(900)
async def test_generated_requests_are_answered_as_the_document_says(tmp_path: Path) -> None:
    (tmp_path / "schemathesis.toml").write_text(CONFIGURATION)
    async with (
        ModelServer().running() as provider,
        Memory.open(f"sqlite:///{tmp_path}/memory.db", policy=POLICY) as memory,
    ):
        url = provider.url
        app = create_app(memory, model=Speaker(), openai_url=url, anthropic_url=url)
        async with served(EndedStreams(app)) as client:
            process = await asyncio.create_subprocess_exec(
                *(PROGRAM, "run", f"{client.http.base_url}/openapi.json", "--no-color"),
                *("--max-examples", "40", "--exclude-checks", LEFT_OUT),
                cwd=tmp_path,
                stdout=PIPE,
            )
            output, _ = await process.communicate()

    print(output.decode())  # noqa: T201 - the figures of a run
    assert process.returncode == 0
