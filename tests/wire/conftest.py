"""Models on real sockets: each test runs for both protocols, with and without streaming."""

import asyncio
import socket
from collections.abc import AsyncIterator, Iterator

# They take seconds to import: here, before the time of a test runs.
import genai_prices  # noqa: F401
import pydantic_ai.models.anthropic
import pydantic_ai.models.openai  # noqa: F401
import pytest
from tests.wire.reach import KEY, Wire
from tests.wire.servers import ModelServer

from remanence.protocols import ModelRequest


@pytest.fixture(autouse=True)
def only_test_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    """Keys and base URLs of this machine stay out of the tests."""
    for provider in ("ANTHROPIC", "OPENAI", "GOOGLE", "GEMINI", "OLLAMA"):
        for name in ("API_KEY", "AUTH_TOKEN", "BASE_URL"):
            monkeypatch.delenv(f"{provider}_{name}", raising=False)
    monkeypatch.setenv("ANTHROPIC_API_KEY", KEY)
    monkeypatch.setenv("OPENAI_API_KEY", KEY)


@pytest.fixture
async def server() -> AsyncIterator[ModelServer]:
    async with ModelServer().running() as server:
        yield server
    # The OpenAI SDK leaves the generators of a stream that was read to the garbage collector, and
    # the loop then closes them in tasks of its own, which end within a few turns.
    for _ in range(10):
        await asyncio.sleep(0)


@pytest.fixture(
    params=[
        pytest.param(("anthropic", False), id="anthropic"),
        pytest.param(("openai", False), id="openai", marks=pytest.mark.slow),
        pytest.param(("anthropic", True), id="anthropic-stream", marks=pytest.mark.slow),
        pytest.param(("openai", True), id="openai-stream"),
    ],
)
def wire(request: pytest.FixtureRequest, server: ModelServer) -> Wire:
    """Every way of reaching a model; the everyday run takes each protocol and each way once."""
    provider, stream = request.param
    return Wire(provider=provider, stream=stream, server=server)


@pytest.fixture(params=["anthropic", "openai"])
def whole_wire(request: pytest.FixtureRequest, server: ModelServer) -> Wire:
    """The ways whose answers come in one piece."""
    return Wire(provider=request.param, stream=False, server=server)


@pytest.fixture(params=["anthropic", "openai"])
def stream_wire(request: pytest.FixtureRequest, server: ModelServer) -> Wire:
    """The ways whose answers are streamed."""
    return Wire(provider=request.param, stream=True, server=server)


@pytest.fixture(
    params=[
        pytest.param(False, id="anthropic"),
        pytest.param(True, id="anthropic-stream", marks=pytest.mark.slow),
    ]
)
def anthropic_wire(request: pytest.FixtureRequest, server: ModelServer) -> Wire:
    """The ways of the provider that takes marks for its cache and reports what it wrote."""
    return Wire(provider="anthropic", stream=request.param, server=server)


@pytest.fixture(params=[False, True], ids=["openai", "openai-stream"])
def openai_wire(request: pytest.FixtureRequest, server: ModelServer) -> Wire:
    """The ways of the provider whose form other servers use too."""
    return Wire(provider="openai", stream=request.param, server=server)


@pytest.fixture
def refusing_port() -> Iterator[int]:
    """A port that refuses connections, and that no other test can listen on meanwhile."""
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))
        yield bound.getsockname()[1]


@pytest.fixture
def ask() -> ModelRequest:
    return ModelRequest(
        stable="You keep notes of a conversation.",
        prompt="User: my flight is LH 454",
        max_output_tokens=500,
        purpose="observe",
        conversation=None,
        user="ana",
    )
