import asyncio
import os
import signal
import socket
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import httpx2
import pytest
from tests.server.conftest import Client, served
from tests.server.process import service
from tests.wire.dialects import Reply
from tests.wire.servers import ModelServer

from remanence import Memory
from remanence.server.app import create_app


async def test_it_tells_that_it_runs(client: Client) -> None:
    response = await client.get("/healthz")

    assert response.status_code == 200
    assert response.json()["status"] == "ok"


async def test_its_openapi_names_the_routes(client: Client) -> None:
    document = (await client.get("/openapi.json")).json()

    assert set(document["paths"]) >= {
        "/healthz",
        "/readyz",
        "/v1/chat",
        "/v1/conversations/{id}",
        "/v1/conversations/{id}/memory",
        "/v1/facts",
        "/v1/facts/{id}",
        "/v1/conversations/{id}/chat",
    }


async def test_its_openapi_requires_the_fields_that_every_answer_has(client: Client) -> None:
    document = (await client.get("/openapi.json")).json()
    schemas = document["components"]["schemas"]
    begun = (await client.post("/v1/conversations")).json()
    problem = await client.post("/v1/facts?user=ana", summary=5)

    assert schemas["ConversationDocument"]["required"] == [*begun]
    assert schemas["NewFact"]["required"] == ["summary"]
    assert {*problem.json()} <= {*schemas["Problem"]["properties"]}
    assert "reason" not in schemas["Problem"]["required"]


async def test_its_openapi_says_that_an_export_is_lines_of_json(client: Client) -> None:
    document = (await client.get("/openapi.json")).json()
    exported = document["paths"]["/v1/users/{user}/export"]["get"]["responses"]["200"]
    response = await client.get("/v1/users/ana/export")

    assert [*exported["content"]] == [response.headers["content-type"]]


@pytest.mark.parametrize("host", ["example.com", "127.0.0.1.example.com:80", "10.0.0.1:8765", ""])
async def test_a_request_to_another_name_is_refused(client: Client, host: str) -> None:
    response = await client.get("/healthz", host=host)

    assert response.status_code == 421
    assert response.headers["content-type"] == "application/problem+json"


@pytest.mark.parametrize("host", ["localhost", "127.0.0.1:8765", "[::1]:80"])
async def test_a_request_to_a_name_of_this_machine_is_answered(client: Client, host: str) -> None:
    assert (await client.get("/healthz", host=host)).status_code == 200


@pytest.mark.parametrize(
    ("allowed", "host", "status"),
    [
        (None, "memory.example.com", 200),
        (["memory.example.com"], "Memory.Example.com:443", 200),
        (["memory.example.com"], "evil.example.com", 421),
    ],
)
async def test_a_program_of_ones_own_says_to_which_names_it_answers(
    memory: Memory, allowed: list[str] | None, host: str, status: int
) -> None:
    async with served(create_app(memory, allowed_hosts=allowed)) as client:
        answer = await client.get("/healthz", host=host)

    assert answer.status_code == status
    if status == 421:
        assert "does not accept the host 'evil.example.com'" in answer.json()["detail"]
        assert "'proxy_set_header Host $host'" in answer.json()["detail"]


async def test_an_unknown_path_is_a_problem_that_names_the_base_urls_of_the_proxies(
    client: Client,
) -> None:
    response = await client.http.post("/v1/messages", json={})

    assert response.status_code == 404
    assert response.headers["content-type"] == "application/problem+json"
    said, *where = response.json()["detail"].split("; ")
    assert said == "POST /v1/messages: Not Found"
    assert where == [
        "GET /openapi.json lists the paths",
        "the base URL of a client of OpenAI ends in /openai/v1, of Anthropic in /anthropic",
    ]


@pytest.mark.parametrize("proxy", ["openai", "anthropic"])
async def test_a_base_url_without_its_version_is_a_problem_with_the_remedy(
    client: Client, proxy: str
) -> None:
    response = await client.http.post(f"/{proxy}/files", json={})

    assert response.status_code == 404
    assert response.json()["detail"].endswith(f"; the base URL ends in /{proxy}/v1")


@pytest.mark.parametrize(
    ("media_type", "body", "words"),
    [
        ("application/json", b"{bad", "the body is not JSON: Expecting property name"),
        ("text/plain", b"{}", "content-type: application/json"),
        ("application/x-www-form-urlencoded", b"{}", "content-type: application/json"),
    ],
)
async def test_a_body_that_is_not_json_is_a_problem_with_the_remedy(
    client: Client, media_type: str, body: bytes, words: str
) -> None:
    response = await client.http.post(
        "/v1/conversations/trip/messages", content=body, headers={"content-type": media_type}
    )
    assert response.status_code == 422
    (found,) = response.json()["errors"]
    assert found["pointer"] == "#"
    assert words in found["detail"]


async def test_a_method_that_a_path_does_not_take_is_a_problem_with_those_it_does(
    client: Client,
) -> None:
    one = await client.post("/healthz")
    several = await client.http.put("/v1/conversations/trip")

    assert (one.status_code, one.headers["allow"]) == (405, "GET, HEAD")
    assert (several.status_code, several.headers["allow"]) == (405, "DELETE, GET")
    assert several.json()["detail"].endswith("Method Not Allowed: use DELETE, GET")


@pytest.mark.timeout(60)  # it loads the clients of providers, in a process of its own
async def test_the_command_serves_until_it_is_asked_to_end(tmp_path: Path) -> None:
    async with ModelServer().running() as models, asyncio.timeout(50):
        models.script(Reply("Gate B42."))
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "remanence", "serve", "--port", "0"),
            *("--model", f"openai:mine@{models.url}/v1", "--db", "sqlite:///memory.db"),
            cwd=tmp_path,
            env={**os.environ, "OPENAI_API_KEY": "zz-test-0123456789abcdef"},
            stdout=asyncio.subprocess.PIPE,
        )
        assert process.stdout is not None
        try:
            url = (await process.stdout.readline()).decode().split()[0]
            async with httpx2.AsyncClient(base_url=url, timeout=60, trust_env=False) as http:
                asked = {"text": "Which gate?", "user": "ana"}
                reply = await http.post("/v1/conversations/trip/chat", json=asked)
                memory = await http.get("/conversations/trip/memory?user=ana")
        finally:
            process.send_signal(signal.SIGINT)
            code = await process.wait()

    assert reply.json()["text"] == "Gate B42."
    assert "memory_search" in str(models.received[0].body["tools"])
    assert memory.json()["memoryState"]["last_seq"] == 2
    assert url.startswith("http://127.0.0.1:")
    assert code == 0


@pytest.mark.skipif(os.name != "posix", reason="a shell closes streams by POSIX")
@pytest.mark.timeout(60)
async def test_the_command_serves_with_a_closed_stdout(tmp_path: Path) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = f'exec "{sys.executable}" -m remanence serve --port {port} --db sqlite:///m.db >&-'
    process = await asyncio.create_subprocess_exec("/bin/sh", "-c", command, cwd=tmp_path)
    url = f"http://127.0.0.1:{port}/healthz"
    try:
        async with asyncio.timeout(50), httpx2.AsyncClient(trust_env=False) as http:
            while process.returncode is None:
                with suppress(httpx2.ConnectError):
                    assert (await http.get(url)).status_code == 200
                    break
                await asyncio.sleep(0.05)
    finally:
        if process.returncode is None:
            process.send_signal(signal.SIGINT)

    assert await process.wait() == 0


@pytest.mark.timeout(90)
async def test_the_command_listens_on_another_address_for_the_names_that_it_is_told(
    tmp_path: Path,
) -> None:
    everywhere = ("--host", "0.0.0.0", "--allowed-host", "memory.example.com", "--no-keys")
    async with asyncio.timeout(60), service(tmp_path, *everywhere) as running:
        statuses = [
            (await running.http.get("/healthz", headers={"host": host})).status_code
            for host in ("memory.example.com", "127.0.0.1", "evil.example.com")
        ]

    assert statuses == [200, 200, 421]


def test_an_address_for_others_is_refused_until_it_has_a_name_and_is_ours(tmp_path: Path) -> None:
    refused = {
        "--host 0.0.0.0": "--allowed-host memory.example.com",
        "--host 192.0.2.7": "--allowed-host",
        "--host 192.0.2.7 --allowed-host a.example": "--no-keys",
        "--host 192.0.2.7 --allowed-host a.example --keys": "192.0.2.7:0: ",
    }
    program = (  # one process for all, as it loads much
        "import sys; from remanence.cli import main\n"
        "for options in sys.argv[1:]: print(main(['serve', '--port', '0', *options.split()]))"
    )

    ended = subprocess.run(
        [sys.executable, "-c", program, *refused],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )

    assert ended.stdout.split() == ["1"] * len(refused)
    for line, words in zip(ended.stderr.splitlines(), refused.values(), strict=True):
        assert words in line
