"""The service on a real socket, with a model that does as it is told."""

import asyncio
import json
import re
import socket
from collections import deque
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from typing import NamedTuple

import httpx2
import pytest
import uvicorn
from fastapi import FastAPI
from starlette.types import ASGIApp
from tests.builders import chat_answer
from tests.wire.servers import ModelServer

from remanence import Memory, Policy, Settings
from remanence.background import Background
from remanence.chat import ChatAnswer, ChatRequest
from remanence.clock import Clock
from remanence.errors import ModelError
from remanence.protocols import Store
from remanence.runtime import Runtime
from remanence.server.app import create_app
from remanence.testing import FixedClock

POLICY = Policy(observe_tokens=200, tail_tokens=400, tail_keep_tokens=100, keep_last=2)


class Speaker:
    """A chat model that gives one scripted answer a call, in two pieces; an error is raised.

    With `gate`, an answer waits before its second piece until that event is set, or, with
    `waits_first`, before its first one.
    """

    name = "speaker"

    def __init__(self) -> None:
        self.requests: list[ChatRequest] = []
        self.script: deque[str | ModelError] = deque()
        self.gate: asyncio.Event | None = None
        self.waits_first = False
        self.asked = asyncio.Event()
        self.broken_off = asyncio.Event()

    async def complete(self, request: ChatRequest) -> ChatAnswer:
        pieces = [piece async for piece in self.stream(request)]
        answer = pieces[-1]
        assert isinstance(answer, ChatAnswer)
        return answer

    async def stream(self, request: ChatRequest) -> AsyncGenerator[str | ChatAnswer, None]:
        self.requests.append(request)
        self.asked.set()
        text = self.script.popleft() if self.script else "Gate B42."
        if isinstance(text, ModelError):
            raise text
        try:
            if self.gate is not None and self.waits_first:
                await self.gate.wait()
            yield text[:4]
            if self.gate is not None:
                await self.gate.wait()
            yield text[4:]
            yield chat_answer(request, text, cache_read_tokens=80)
        except (GeneratorExit, asyncio.CancelledError):
            self.broken_off.set()
            raise


class Client:
    """Requests to the service."""

    def __init__(self, http: httpx2.AsyncClient) -> None:
        self.http = http

    async def get(self, path: str, **headers: str) -> httpx2.Response:
        return await self.http.get(path, headers=headers)

    async def post(self, path: str, **body: object) -> httpx2.Response:
        return await self.http.post(path, json=body)

    async def events(self, path: str, **body: object) -> list[tuple[str, dict[str, object]]]:
        """The names and data of the events that a request gives."""
        response = await self.post(path, **body, stream=True)
        assert response.headers["content-type"].startswith("text/event-stream")
        return [_event(block) for block in response.text.strip().split("\n\n")]


def _event(block: str) -> tuple[str, dict[str, object]]:
    name, data = block.split("\n")
    return name.removeprefix("event: "), json.loads(data.removeprefix("data: "))


class Operation(NamedTuple):
    """An operation of the OpenAPI document."""

    method: str
    path: re.Pattern[str]
    statuses: frozenset[str]


_OPERATIONS: list[Operation] = []
"""Those of the first application with proxies, as all such have the same routes."""


async def require_declared(app: FastAPI, response: httpx2.Response) -> None:
    """Fail on an answer with a status that the OpenAPI document does not declare."""
    if not _OPERATIONS and getattr(app.state, "has_proxies", False):
        _OPERATIONS.extend(
            Operation(method.upper(), re.compile(re.sub(r"{\w+}", "[^/]+", path)), statuses)
            for path, item in app.openapi()["paths"].items()
            for method, route in item.items()
            if (statuses := frozenset(route["responses"]))
        )
    path = response.request.url.raw_path.decode().partition("?")[0]
    status = str(response.status_code)
    for operation in _OPERATIONS:
        if operation.method == response.request.method and operation.path.fullmatch(path):
            declared = operation.statuses & {status, f"{status[0]}XX"}
            assert declared, f"{operation} does not declare {status}"


class Server(uvicorn.Server):
    """A server that ends as soon as its last connection is closed, without uvicorn's pauses."""

    def __init__(self, app: ASGIApp) -> None:
        super().__init__(uvicorn.Config(app, lifespan="off", log_level="warning"))
        self.ending = asyncio.Event()

    async def main_loop(self) -> None:
        await self.on_tick(0)  # sets the headers that each answer has
        await self.ending.wait()

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        for server in self.servers:
            server.close()
        for connection in list(self.server_state.connections):
            connection.shutdown()
        state = self.server_state
        while state.connections or state.tasks:  # noqa: ASYNC110 - sets, without an event
            await asyncio.sleep(0.001)


@asynccontextmanager
async def served(app: ASGIApp) -> AsyncIterator[Client]:
    """The application on a free port of loopback."""
    # With its protocol named, small answers are sent at once.
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP) as listening:
        listening.bind(("127.0.0.1", 0))
        listening.listen()
        server = Server(app)
        url = f"http://127.0.0.1:{listening.getsockname()[1]}"
        async with asyncio.TaskGroup() as group:
            group.create_task(server.serve(sockets=[listening]), name="server")
            try:
                async with httpx2.AsyncClient(base_url=url, timeout=60, verify=False) as http:
                    if isinstance(app, FastAPI) and app.openapi_url:
                        http.event_hooks["response"].append(partial(require_declared, app))
                    yield Client(http)
            finally:
                server.ending.set()


@pytest.fixture
def speaker() -> Speaker:
    return Speaker()


@pytest.fixture
async def upstream() -> AsyncIterator[ModelServer]:
    async with ModelServer().running() as server:
        yield server


@asynccontextmanager
async def memory_on(
    store: Store, clock: Clock, settings: Settings | None = None
) -> AsyncIterator[Memory]:
    """Yield a memory on a store that the test has made, and closes itself."""
    async with Background() as background:
        runtime = Runtime(
            store,
            settings=settings or Settings(),
            policy=POLICY,
            clock=clock,
            background=background,
        )
        yield Memory(runtime)


@pytest.fixture
async def memory() -> AsyncIterator[Memory]:
    async with Memory.open("sqlite:///:memory:", policy=POLICY, clock=FixedClock()) as memory:
        yield memory


@pytest.fixture
async def client(memory: Memory, speaker: Speaker) -> AsyncIterator[Client]:
    async with served(create_app(memory, model=speaker, system="You help.")) as client:
        yield client
