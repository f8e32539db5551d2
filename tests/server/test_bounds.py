"""Requests that are too large, too slow, or that never come."""

import asyncio
import logging
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import suppress
from pathlib import Path
from subprocess import CompletedProcess
from typing import Any

import pytest
from fastapi import FastAPI
from fastapi.responses import StreamingResponse
from tests.server.conftest import Client, Speaker, served

from remanence import Memory
from remanence.server.access import by_key
from remanence.server.app import create_app
from remanence.server.rate_limit import Rate
from remanence.server.run import PatientProtocol, listen, serve

Cli = Callable[..., CompletedProcess[str]]


async def test_a_body_over_the_limit_is_refused_with_the_limit(
    memory: Memory, speaker: Speaker
) -> None:
    async with served(create_app(memory, model=speaker, max_body_bytes=1_000)) as client:
        small = await client.post("/v1/conversations/a/chat", text="Which gate?")
        large = await client.post("/v1/conversations/a/chat", text="x" * 2_000)
        in_chunks = await client.http.post("/v1/conversations/a/chat", content=_chunks())

    assert small.status_code == 200
    for refused in (large, in_chunks):
        assert refused.status_code == 413
        assert refused.headers["content-type"] == "application/problem+json"
        assert "1,000 bytes" in refused.json()["detail"]
    assert len(speaker.requests) == 1


@pytest.mark.parametrize(
    "values",
    [
        "[]," * 300_000,
        '"",' * 300_000,
        '{"role":"user","content":"a"},' * 100_000,
        '"\\"",' * 300_000,
        '{"\\\\":1},' * 150_000,
    ],
    ids=["arrays", "strings", "messages", "quotes", "backslashes"],
)
@pytest.mark.parametrize("encoding", ["utf-8", "utf-16"])
async def test_a_body_of_too_many_values_is_refused_before_it_is_parsed(
    client: Client, values: str, encoding: str
) -> None:
    body = f'{{"messages":[{values}1]'.encode(encoding)  # without its end, which a parser misses
    refused = await client.http.post("/v1/conversations/a/messages", content=body)

    assert refused.status_code == 413
    assert "300,000 JSON values" in refused.json()["detail"]


async def test_a_long_text_has_any_number_of_brackets_and_commas(client: Client) -> None:
    text = '[{"a": "\\", 1}], ' * 50_000
    stored = await client.post(
        "/v1/conversations/a/messages", messages=[{"role": "user", "content": text}]
    )

    assert stored.status_code == 201


@pytest.mark.parametrize("method", ["GET", "X" * 20_000])
@pytest.mark.parametrize(
    "path",
    ["/v1/facts", "/v1/" + "a" * 16_000, "/v1/facts?user=" + "a" * 30_000, "/" + "a" * 30_000],
)
async def test_the_log_shows_the_beginning_of_a_long_path(
    client: Client, caplog: pytest.LogCaptureFixture, method: str, path: str
) -> None:
    with caplog.at_level(logging.INFO):
        response = await client.http.request(method, path)

    lines = [each.getMessage() for each in caplog.records if each.name.startswith("remanence")]
    assert (response.status_code == 414) == (len(path) > 16_384)
    assert lines
    assert all(len(line) < 17_000 for line in lines)
    assert all(len(line) < 1_100 for line in lines if line.startswith(method[:1_000]))


async def test_a_path_has_room_for_a_name_of_500_characters_of_any_script(client: Client) -> None:
    found = await client.get(f"/v1/conversations/{'%F0%9F%8C%B1' * 500}")

    assert found.status_code == 404
    assert found.json()["type"].endswith(":not_found")


async def test_a_body_that_does_not_arrive_is_refused_and_its_connection_closed(
    memory: Memory, speaker: Speaker
) -> None:
    app = create_app(memory, model=speaker, body_seconds=0.1)
    async with served(app) as client:
        reader, writer = await _connect(client)
        writer.write(b"POST /v1/conversations/a/chat HTTP/1.1\r\nhost: localhost\r\n")
        writer.write(b"content-type: application/json\r\ncontent-length: 100\r\n\r\n{")
        answer = await asyncio.wait_for(reader.read(), 5)
        writer.close()

    assert answer.startswith(b"HTTP/1.1 408")
    assert b"0.1 s" in answer


async def test_a_page_of_another_site_may_use_the_service_only_if_it_is_named(
    memory: Memory,
) -> None:
    named = "https://app.example.com"
    async with served(create_app(memory, allowed_origins=[named])) as client:
        host = f"http://{client.http.base_url.host}:{client.http.base_url.port}"
        answers = {
            origin: await client.get("/v1/conversations", origin=origin)
            for origin in (named, host, "https://evil.example.com", "null")
        }
        preflight = await client.http.options(
            "/v1/conversations",
            headers={"origin": named, "access-control-request-method": "POST"},
        )

    statuses = [answer.status_code for answer in answers.values()]
    assert statuses == [200, 200, 403, 403]
    assert answers[named].headers["access-control-allow-origin"] == named
    assert "--allowed-origin" in answers["null"].json()["detail"]
    assert preflight.headers["access-control-allow-origin"] == named


@pytest.mark.parametrize(
    ("path", "site", "mode", "status"),
    [
        ("/v1/conversations", "cross-site", "no-cors", 403),
        ("/v1/conversations", "cross-site", "navigate", 403),
        ("/v1/conversations", "same-origin", "cors", 200),
        ("/v1/conversations", "none", "navigate", 200),
        ("/", "cross-site", "navigate", 200),
        ("/", "cross-site", "no-cors", 403),
    ],
)
async def test_an_image_or_a_link_of_another_site_gets_no_more_than_the_dashboard(
    client: Client, path: str, site: str, mode: str, status: int
) -> None:
    headers = {"sec-fetch-site": site, "sec-fetch-mode": mode}
    response = await client.http.get(path, headers=headers)

    assert response.status_code == status
    assert (status == 403) == ("nothing but the dashboard" in response.text)


@pytest.mark.parametrize(
    "origin", ["foo", "*", "null", "app.example.com", "https://App.example.com", "https://a.b/"]
)
def test_what_no_browser_sends_as_an_origin_is_refused(origin: str, cli: Cli) -> None:
    run = cli("serve", "--allowed-origin", origin, "--db", "sqlite:///new.db")

    assert run.returncode == 1
    assert f"--allowed-origin='{origin}' is impossible: use scheme://host" in run.stderr
    assert not Path("new.db").exists()


@pytest.mark.parametrize(
    "host", ["https://a.example.com", "a.example.com:443", "a.example.com/", "*", "", "[::1]:80"]
)
def test_what_is_no_host_name_is_refused(host: str, cli: Cli) -> None:
    run = cli("serve", "--allowed-host", host, "--db", "sqlite:///new.db")

    assert run.returncode == 1
    assert f"--allowed-host='{host}' is impossible: use a host name without scheme" in run.stderr
    assert not Path("new.db").exists()


async def test_requests_beyond_the_rate_are_refused_with_the_time_to_wait(memory: Memory) -> None:
    async with served(create_app(memory, requests_per_minute=2)) as client:
        answers = [await client.get("/v1/conversations") for _ in range(3)]

    assert [answer.status_code for answer in answers] == [200, 200, 429]
    assert 1 <= int(answers[-1].headers["retry-after"]) <= 30
    wait = f"2 requests a minute: wait {answers[-1].headers['retry-after']} s"
    assert wait in answers[-1].json()["detail"]


@pytest.mark.parametrize("path", ["/healthz", "/readyz"])
async def test_probes_have_no_limit_and_count_for_none(path: str, memory: Memory) -> None:
    async with served(create_app(memory, requests_per_minute=1)) as client:
        answers = [await client.get(path) for _ in range(3)]
        other = await client.get("/v1/conversations")

    assert {answer.status_code for answer in (*answers, other)} == {200}


async def test_each_key_has_a_rate_of_its_own(memory: Memory) -> None:
    keys = [await memory.keys.create("app", tenant="acme") for _ in range(2)]
    app = create_app(memory, auth=by_key(memory.keys), requests_per_minute=1)
    async with served(app) as client:
        headers = [{"x-remanence-key": key.token} for key in (*keys, keys[0])]
        answers = [await client.get("/v1/conversations", **each) for each in headers]

    assert [answer.status_code for answer in answers] == [200, 200, 429]


@pytest.mark.parametrize("wrong", [{}, {"x-remanence-key": "rk_old"}, {"cookie": "session=1"}])
async def test_unknown_callers_have_a_rate_that_holds_up_no_others_of_their_address(
    memory: Memory, wrong: dict[str, str]
) -> None:
    key = await memory.keys.create("app", tenant="acme")
    app = create_app(memory, auth=by_key(memory.keys), requests_per_minute=2)
    async with served(app) as client:
        answers = [await client.get("/v1/conversations", **wrong) for _ in range(3)]
        known = await client.get("/v1/conversations", **{"x-remanence-key": key.token})
        other = await client.get("/v1/conversations", authorization="Bearer rk_other")
        health = await client.get("/healthz")

    statuses = [answer.status_code for answer in (*answers, known, other, health)]
    assert statuses == [401, 401, 429, 200, 401, 200]
    assert 1 <= int(answers[-1].headers["retry-after"]) <= 30


async def test_an_address_that_tries_many_keys_is_held_up_but_for_a_key_that_it_had(
    memory: Memory,
) -> None:
    key = await memory.keys.create("app", tenant="acme")
    app = create_app(memory, auth=by_key(memory.keys), requests_per_minute=2)
    async with served(app) as client:
        before = await client.get("/v1/conversations", **{"x-remanence-key": key.token})
        for number in range(200):
            guess = await client.get("/v1/conversations", **{"x-remanence-key": f"rk_{number}"})
            if guess.status_code != 401:
                break
        after = await client.get("/v1/conversations", **{"x-remanence-key": key.token})

    assert number >= 20
    assert guess.status_code == 429
    assert "more than 20 requests a minute" in guess.json()["detail"]
    assert (before.status_code, after.status_code) == (200, 200)


async def test_the_senders_that_a_rate_remembers_are_bounded() -> None:
    rate = Rate(1)
    rate.take("first")
    assert rate.refusal("first") is not None
    for number in range(10_000):
        rate.take(number)

    assert rate.refusal("first") is None
    assert rate.refusal(9_999) is not None


async def test_a_request_brings_a_bounded_number_of_messages(client: Client) -> None:
    messages = [{"role": "user", "content": "Hi."}] * 1_001
    refused = await client.post("/v1/conversations/a/messages", messages=messages)

    assert refused.status_code == 422
    assert "1000" in refused.json()["detail"]


class HastyProtocol(PatientProtocol):
    head_seconds = 0.1


async def test_a_web_socket_at_a_proxy_is_refused_without_advice_to_install_anything(
    memory: Memory, caplog: pytest.LogCaptureFixture
) -> None:
    ending, started = asyncio.Event(), asyncio.Queue[str]()
    asked = (
        b"GET /openai/v1/realtime?model=m HTTP/1.1\r\nhost: localhost\r\nconnection: Upgrade\r\n"
        b"upgrade: websocket\r\nsec-websocket-version: 13\r\n\r\n"
    )
    async with asyncio.TaskGroup() as group:
        app = create_app(memory, openai_url="http://127.0.0.1:9")
        group.create_task(
            serve(app, listen("127.0.0.1", 0), started=started.put_nowait, ending=ending)
        )
        port = int((await started.get()).rpartition(":")[2])
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(asked)
        answer = await asyncio.wait_for(reader.readuntil(b"}}"), 5)
        writer.close()
        ending.set()

    assert answer.startswith(b"HTTP/1.1 501")
    assert b"connect to the provider itself" in answer
    assert [
        record.getMessage() for record in caplog.records if record.name.startswith("uvicorn")
    ] == []


@pytest.mark.parametrize("sent", [b"", b"GET /healthz HTTP/1.1\r\nhost: lo", b"GET"])
async def test_a_request_that_never_begins_is_given_up(memory: Memory, sent: bytes) -> None:
    ending, started = asyncio.Event(), asyncio.Queue[str]()
    async with asyncio.TaskGroup() as group:
        app = create_app(memory)
        group.create_task(
            serve(
                app,
                listen("127.0.0.1", 0),
                started=started.put_nowait,
                ending=ending,
                protocol=HastyProtocol,
            )
        )
        port = int((await started.get()).rpartition(":")[2])
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        whole = b"GET /healthz HTTP/1.1\r\nhost: localhost\r\n\r\n"
        writer.write(whole)
        answer = await reader.readuntil(b"}")
        writer.write(sent)
        with suppress(ConnectionError):
            rest = await asyncio.wait_for(reader.read(), 5) if sent else b""
        writer.close()
        silent, other = await asyncio.open_connection("127.0.0.1", port)
        unanswered = await asyncio.wait_for(silent.read(), 5)
        other.close()
        ending.set()

    assert answer.startswith(b"HTTP/1.1 200")
    assert (rest, unanswered) == (b"", b"")


async def test_a_connection_that_fails_when_it_is_accepted_ends_no_service(memory: Memory) -> None:
    failures = iter([OSError(22, "Invalid argument")])  # as on macOS, where its client has left

    class FailingProtocol(PatientProtocol):
        def __init__(self, *args: Any, **options: Any) -> None:  # those of uvicorn
            for failure in failures:
                raise failure
            super().__init__(*args, **options)

    ending, started = asyncio.Event(), asyncio.Queue[str]()
    async with asyncio.TaskGroup() as group:
        group.create_task(
            serve(
                create_app(memory),
                listen("127.0.0.1", 0),
                started=started.put_nowait,
                ending=ending,
                protocol=FailingProtocol,
            )
        )
        port = int((await started.get()).rpartition(":")[2])
        answers = []
        whole = b"GET /healthz HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n"
        for sent in (b"", whole):
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            writer.write(sent)
            answers.append((await asyncio.wait_for(reader.read(), 5))[:12])
            writer.close()
        ending.set()

    assert answers == [b"", b"HTTP/1.1 200"]


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux has a timeout for sent data")
async def test_a_client_that_does_not_read_its_answer_is_given_up() -> None:
    ending, started, given_up = asyncio.Event(), asyncio.Queue[str](), asyncio.Event()

    async def endless() -> AsyncIterator[bytes]:
        try:
            while True:
                yield b" " * 65_536
                await asyncio.sleep(0)  # for the task that looks for the client
        finally:
            given_up.set()

    app = FastAPI()
    app.add_api_route("/", lambda: StreamingResponse(endless()))
    async with asyncio.TaskGroup() as group:
        listening = listen("127.0.0.1", 0, send_seconds=0.1)
        group.create_task(serve(app, listening, started=started.put_nowait, ending=ending))
        port = int((await started.get()).rpartition(":")[2])
        _, writer = await asyncio.open_connection("127.0.0.1", port, limit=4_096)
        writer.write(b"GET / HTTP/1.1\r\nhost: localhost\r\n\r\n")
        await asyncio.wait_for(given_up.wait(), 5)
        writer.close()
        ending.set()


async def _chunks() -> AsyncIterator[bytes]:
    for _ in range(20):
        yield b" " * 100


async def _connect(client: Client) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    url = client.http.base_url
    return await asyncio.open_connection(url.host, url.port)
