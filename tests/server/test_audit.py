"""The audit log: who read, exported or erased what, without a text or a key."""

import asyncio
import json
import logging
import signal
from collections.abc import AsyncGenerator, AsyncIterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.builders import chat_answer
from tests.server.conftest import POLICY, Client, served
from tests.server.process import service

from remanence import Memory, Message
from remanence.chat import ChatAnswer, ChatRequest
from remanence.server.access import by_key
from remanence.server.app import create_app
from remanence.testing import FixedClock
from remanence.types import Scope, ToolCallPart

SECRET = "The safe is behind the blue painting."
CONVERSATION = "/v1/conversations/trip"


@pytest.fixture
async def memory() -> AsyncIterator[Memory]:
    async with Memory.open("sqlite:///:memory:", policy=POLICY, clock=FixedClock()) as memory:
        await memory.conversation("trip", tenant="acme", user="ana").append(Message.user(SECRET))
        yield memory


@pytest.fixture
async def client(memory: Memory) -> AsyncIterator[Client]:
    async with served(create_app(memory, auth=by_key(memory.keys))) as client:
        yield client


def entries(caplog: pytest.LogCaptureFixture) -> list[dict[str, Any]]:
    records = [record for record in caplog.records if record.name == "remanence.audit"]
    return [json.loads(record.getMessage()) for record in records]


async def test_reads_exports_and_erasures_are_logged_with_caller_and_subject(
    client: Client, memory: Memory, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "remanence.audit")
    key = await memory.keys.create("app", tenant="acme", scopes=("read", "write", "erase"))
    headers = {"x-remanence-key": key.token, "x-request-id": "r-1"}
    for method, path, body in (
        ("GET", f"{CONVERSATION}/messages", None),
        ("POST", f"{CONVERSATION}/context", {"system": "Be brief."}),
        ("GET", f"{CONVERSATION}/recall", None),
        ("GET", "/v1/recall", None),
        ("GET", "/v1/users/ana/export", None),
        ("POST", f"{CONVERSATION}/forget", {"query": "blue"}),
        ("DELETE", "/v1/users/ana", None),
    ):
        query = {} if path.startswith("/v1/users/") else {"user": "ana"}
        if path.endswith("/recall"):
            query["query"] = "blue painting"
        response = await client.http.request(method, path, params=query, json=body, headers=headers)
        assert response.is_success, response.text

    found = entries(caplog)
    assert [(entry["action"], entry["conversation"]) for entry in found] == [
        ("read", "trip"),
        ("read", "trip"),
        ("read", "trip"),
        ("read", None),
        ("export", None),
        ("erase", "trip"),
        ("erase", None),
    ]
    assert found[-1] == {
        "at": memory.clock.now().isoformat(timespec="milliseconds"),
        "request": "r-1",
        "action": "erase",
        "caller": "app",
        "key": key.key.id,
        "tenant": "acme",
        "method": "DELETE",
        "path": "/v1/users/ana",
        "conversation": None,
        "user": "ana",
        "status": 200,
    }
    assert {entry["user"] for entry in found} == {"ana"}
    assert "blue" not in str(found)
    assert key.token not in str(found)


async def test_a_name_with_a_slash_is_logged_as_it_is(
    memory: Memory, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "remanence.audit")
    async with served(create_app(memory)) as client:
        await client.get("/v1/conversations/C1%2F17.2/messages")
        await client.get("/v1/users/a%2525%2Fb/export")

    read, exported = entries(caplog)
    assert (read["conversation"], exported["user"]) == ("C1/17.2", "a%25/b")
    assert exported["action"] == "export"


async def test_a_refused_request_is_logged_with_its_status(
    client: Client, memory: Memory, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "remanence.audit")
    reader = await memory.keys.create("reader", tenant="rival", scopes=("read",))
    await client.get(CONVERSATION)
    await client.http.delete(CONVERSATION, headers={"x-remanence-key": reader.token})

    assert [(e["action"], e["caller"], e["tenant"], e["status"]) for e in entries(caplog)] == [
        ("read", None, "default", 401),
        ("erase", "reader", "rival", 403),
    ]


async def test_a_request_that_fails_is_logged_as_failed(
    memory: Memory, caplog: pytest.LogCaptureFixture
) -> None:
    async def fail() -> None:
        raise KeyError("private text")

    caplog.set_level(logging.INFO, "remanence")
    app = create_app(memory)
    app.add_api_route("/v1/broken", fail, include_in_schema=False)
    async with served(app) as client:
        assert (await client.get("/v1/broken")).status_code == 500

    (line,) = [record for record in caplog.records if record.name == "remanence"]
    assert (line.levelname, line.getMessage().split(" in ")[0]) == ("ERROR", "GET /v1/broken: 500")
    assert [entry["status"] for entry in entries(caplog)] == [500]


async def test_writes_and_probes_are_not_logged(
    client: Client, memory: Memory, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "remanence.audit")
    key = await memory.keys.create("app", tenant="acme")
    body = {"messages": [{"role": "user", "content": "Hi."}]}
    query = {"user": "ana"}
    appended = await client.http.post(
        f"{CONVERSATION}/messages",
        json=body,
        params=query,
        headers={"x-remanence-key": key.token},
    )
    for path in ("/healthz", "/readyz", "/openapi.json"):
        await client.get(path)

    assert appended.status_code == 201
    assert entries(caplog) == []


@pytest.mark.timeout(60)
async def test_the_server_appends_the_lines_to_a_file_of_its_own(tmp_path: Path) -> None:
    file = tmp_path / "audit.jsonl"
    async with service(tmp_path, "--audit-log", str(file)) as running:
        await running.http.get(f"{CONVERSATION}/messages", params={"user": "bob"})
        while not file.stat().st_size:  # noqa: ASYNC110 - a line is written after its answer
            await asyncio.sleep(0.01)
        file.rename(tmp_path / "audit.old")
        await running.http.get(f"{CONVERSATION}/messages", params={"user": "ana"})
        assert await running.end(signal.SIGTERM) == 0
        log = "\n".join(running.log)

    assert json.loads((tmp_path / "audit.old").read_text())["user"] == "bob"
    (line,) = file.read_text().splitlines()
    assert (json.loads(line)["user"], json.loads(line)["status"]) == ("ana", 200)
    assert file.stat().st_mode & 0o777 == 0o600
    assert "ana" not in log


class Eraser:
    """A chat model that erases the message `m1` of the conversation `trip` if it may."""

    name = "eraser"

    def __init__(self) -> None:
        self.offered: list[set[str]] = []

    async def complete(self, request: ChatRequest) -> ChatAnswer:
        pieces = [piece async for piece in self.stream(request)]
        assert isinstance(pieces[-1], ChatAnswer)
        return pieces[-1]

    async def stream(self, request: ChatRequest) -> AsyncGenerator[str | ChatAnswer, None]:
        self.offered.append({tool.name for tool in request.tools})
        if request.context.messages[-1].role == "tool":
            yield chat_answer(request, "Done.")
            return
        arguments = json.dumps({"messages": ["m1"], "conversation": "trip"})
        call = ToolCallPart(id="k", name="memory_forget", arguments=arguments)
        yield replace(chat_answer(request, ""), content=(call,))


@pytest.mark.parametrize("may_erase", [False, True])
async def test_a_model_erases_only_for_a_caller_that_may_and_with_a_line_in_the_log(
    memory: Memory, caplog: pytest.LogCaptureFixture, may_erase: bool
) -> None:
    caplog.set_level(logging.INFO, "remanence.audit")
    trip = memory.conversation("trip", tenant="acme", user="ana")
    await trip.append(Message.user("The notice is 30 days.", id="m1"))
    scopes: tuple[Scope, ...] = ("read", "write", "erase") if may_erase else ("read", "write")
    key = await memory.keys.create("app", tenant="acme", scopes=scopes)
    eraser = Eraser()
    app = create_app(memory, model=eraser, auth=by_key(memory.keys), tools=True)
    async with served(app) as client:
        response = await client.http.post(
            "/v1/conversations/other/chat",
            json={"text": "Forget the notice.", "user": "ana"},
            headers={"x-remanence-key": key.token},
        )

    assert response.status_code == 200, response.text
    assert ("memory_forget" in eraser.offered[0]) is may_erase
    assert ((await trip.messages())[1].text == "The notice is 30 days.") is not may_erase
    expected = [("erase", "app", "acme", "trip", "ana", "memory_forget", 200)] if may_erase else []
    fields = ("action", "caller", "tenant", "conversation", "user", "tool", "status")
    assert [tuple(entry[field] for field in fields) for entry in entries(caplog)] == expected
