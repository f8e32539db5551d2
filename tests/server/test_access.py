"""Keys: each client reaches the memory of its tenant, and may do what its key says."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx2
import pytest
from starlette.applications import Starlette
from starlette.requests import HTTPConnection
from starlette.routing import Mount
from tests.server.conftest import POLICY, Client, served
from tests.wire.servers import Fail, ModelServer

from remanence import Memory, Message
from remanence.api_keys import NewKey
from remanence.errors import StoreUnavailable
from remanence.server.access import Caller, by_key
from remanence.server.app import create_app
from remanence.testing import FixedClock
from remanence.types import Scope

ALL: tuple[Scope, ...] = ("read", "write", "erase")
CONVERSATION = "/v1/conversations/trip"
SECRET = "The safe is behind the blue painting."


@pytest.fixture
async def memory() -> AsyncIterator[Memory]:
    clock = FixedClock()
    async with Memory.open("sqlite:///:memory:", policy=POLICY, clock=clock) as memory:
        chat = memory.conversation("trip", tenant="acme", user="ana")
        await chat.append(Message.user(SECRET, id="m-1"))
        await memory.facts.save("Ana lives in Lisbon.", user="ana", tenant="acme")
        yield memory


@pytest.fixture
async def client(memory: Memory, upstream: ModelServer) -> AsyncIterator[Client]:
    app = create_app(
        memory,
        auth=by_key(memory.keys),
        openai_url=upstream.url,
        anthropic_url=upstream.url,
        openai_key="key-of-the-server",
    )
    async with served(app) as client:
        yield client


def header(key: NewKey) -> dict[str, str]:
    return {"authorization": f"Bearer {key.token}"}


BODIES: dict[str, Any] = {
    "messages": {"messages": [{"role": "user", "content": "Hi."}]},
    "context": {},
    "forget": {"message_ids": ["m-1"]},
    "chat": {"text": "Hi."},
    "fork": {"id": "trip-2", "last_seq": 1},
}


async def call(
    client: Client, method: str, path: str, headers: dict[str, str], **query: str
) -> Any:
    body = BODIES.get(path.rsplit("/", 1)[-1], {}) if method == "POST" else None
    if not path.startswith("/v1/users/"):
        query = {"user": "ana", **query}
    if path.endswith("/recall"):
        query = {"query": "safe", **query}
    return await client.http.request(method, path, json=body, params=query, headers=headers)


async def test_a_key_opens_its_tenant_without_naming_it(client: Client, memory: Memory) -> None:
    key = header(await memory.keys.create("app", tenant="acme"))
    response = await call(client, "GET", f"{CONVERSATION}/messages", key)
    assert response.json()["messages"][0]["text"] == SECRET
    named = await call(client, "GET", f"{CONVERSATION}/messages", key, tenant="acme")
    assert named.json() == response.json()


@pytest.mark.parametrize(
    ("scope", "method", "path"),
    [
        ("read", "GET", f"{CONVERSATION}/messages"),
        ("read", "POST", f"{CONVERSATION}/context"),
        ("write", "POST", f"{CONVERSATION}/messages"),
        ("write", "POST", f"{CONVERSATION}/end"),
        ("write", "POST", f"{CONVERSATION}/flush"),
        ("write", "POST", f"{CONVERSATION}/fork"),
        ("erase", "POST", f"{CONVERSATION}/forget"),
        ("erase", "DELETE", CONVERSATION),
        ("erase", "GET", "/v1/users/ana/export"),
        ("erase", "DELETE", "/v1/users/ana"),
        ("erase", "GET", "/v1/users/ana%0A/export"),
    ],
)
async def test_a_key_may_do_what_its_scopes_say(
    client: Client, memory: Memory, scope: str, method: str, path: str
) -> None:
    others: Any = [name for name in ALL if name != scope]
    without = header(await memory.keys.create("no", tenant="acme", scopes=others))
    only: Any = [scope]
    granted = header(await memory.keys.create("yes", tenant="acme", scopes=only))
    refused = await call(client, method, path, without)
    assert refused.status_code == 403
    assert f"the scope '{scope}'" in refused.json()["detail"]
    allowed = await call(client, method, path, granted)
    assert allowed.is_success or allowed.status_code == 422  # no user has a line break


@pytest.mark.parametrize("path", ["/v1/conversations", "/openai/v1/models"])
async def test_without_the_database_of_the_keys_a_request_is_to_be_tried_again(
    memory: Memory, path: str
) -> None:
    async def fail(_: HTTPConnection) -> Caller:
        raise StoreUnavailable("host.example: no answer", public="the database did not answer")

    # It raises what a server would log as an error of the application.
    transport = httpx2.ASGITransport(create_app(memory, auth=fail))
    async with httpx2.AsyncClient(transport=transport, base_url="http://localhost") as client:
        response = await client.get(path)

    assert response.status_code == 503
    assert response.headers["retry-after"] == "2"
    assert response.json()["detail"] == "the database did not answer"


async def test_refusals_have_codes_by_which_a_client_tells_them_apart(
    client: Client, memory: Memory
) -> None:
    reader = header(await memory.keys.create("reader", tenant="acme", scopes=("read",)))
    scope = await call(client, "DELETE", "/v1/users/ana", reader)
    tenant = await call(client, "GET", "/v1/facts", reader, tenant="other")
    path = await call(client, "GET", "/v1/nowhere", reader)
    conversation = await call(client, "GET", "/v1/conversations/nothing", reader)
    codes = [
        (response.status_code, response.json()["type"].rpartition(":")[2])
        for response in (scope, tenant, path, conversation)
    ]

    assert codes == [
        (403, "not_allowed"),
        (403, "wrong_tenant"),
        (404, "unknown_path"),
        (404, "not_found"),
    ]


@pytest.mark.parametrize(
    "name",
    [
        "X-Remanence-Key",
        "Authorization",
        "X-Api-Key",
        "Api-Key",
        "X-Remanence-User",
        "X-OpenWebUI-User-Id",
        "X-Remanence-Conversation",
        "X-OpenWebUI-Chat-Id",
    ],
)
async def test_a_repeated_header_that_identifies_a_request_is_refused(
    name: str, client: Client, memory: Memory, upstream: ModelServer
) -> None:
    key = await memory.keys.create("app", tenant="acme", scopes=ALL)
    values = [key.token, key.token] if name in ("X-Remanence-Key", "X-Api-Key") else ["ana", "bo"]
    headers = [*header(key).items(), *((name, value) for value in values)]

    path = "/openai/v1/chat/completions"
    response = await client.http.post(path, json={"messages": []}, headers=headers)

    assert (response.status_code, response.json()["type"][-15:]) == (422, "invalid_request")
    assert response.json()["detail"] == f"the header {name.lower()} is repeated: send it once"
    assert upstream.received == []


async def test_a_key_that_may_only_read_reaches_no_provider(
    client: Client, memory: Memory, upstream: ModelServer
) -> None:
    reader = header(await memory.keys.create("reader", tenant="acme", scopes=("read",)))
    for path in ("/openai/v1/files", "/anthropic/v1/context"):
        assert (await client.get(path, **reader)).status_code == 403
    assert upstream.received == []


async def test_the_proxy_sends_no_key_of_ours_on(
    client: Client, memory: Memory, upstream: ModelServer
) -> None:
    key = await memory.keys.create("app", tenant="acme")
    path, body = "openai/v1/chat/completions", {"model": "m"}
    messages = [{"role": "user", "content": "Which gate?"}]
    named = {"x-remanence-conversation": "proxied"}
    for headers in (
        header(key),
        {"authorization": f"bearer {key.token}"},
        {"x-api-key": key.token},
        {"x-remanence-key": key.token, "authorization": "Bearer own"},
    ):
        response = await client.http.post(
            path, json={**body, "messages": messages}, headers={**headers, **named}
        )
        assert response.status_code == 200
    assert [received.headers["authorization"] for received in upstream.received] == [
        *["Bearer key-of-the-server"] * 3,
        "Bearer own",
    ]
    assert all(key.token not in str(received.headers) for received in upstream.received)
    assert (await memory.conversation("proxied", tenant="acme").state()).last_seq


async def test_health_needs_no_key(client: Client) -> None:
    for path in ("/healthz", "/readyz", "/openapi.json"):
        assert (await client.get(path)).status_code == 200


async def test_the_openapi_document_says_which_requests_need_a_key_and_where_it_goes(
    client: Client, memory: Memory
) -> None:
    document = (await client.get("/openapi.json")).json()
    schemes = document["components"]["securitySchemes"]
    opened = [
        path
        for path, item in document["paths"].items()
        for operation in item.values()
        if operation.get("security") == []
    ]
    async with served(create_app(memory)) as other:
        without_keys = (await other.get("/openapi.json")).json()

    assert document["security"] == [{name: []} for name in schemes]
    assert (schemes["key"]["in"], schemes["key"]["name"]) == ("header", "x-remanence-key")
    assert schemes["bearer"] == {"type": "http", "scheme": "bearer"}
    assert sorted(opened) == ["/healthz", "/readyz"]
    assert "security" not in without_keys


async def test_metrics_need_a_key_with_a_scope_of_their_own(client: Client, memory: Memory) -> None:
    app = header(await memory.keys.create("app", tenant="acme", scopes=ALL))
    prometheus = header(await memory.keys.create("prometheus", scopes=["metrics"]))
    statuses = [
        (await client.get(path, **headers)).status_code
        for headers in ({}, app, prometheus)
        for path in ("/metrics", "/v1/conversations")
    ]
    assert statuses == [401, 401, 403, 200, 200, 403]


async def test_a_token_is_in_no_file(tmp_path: Path) -> None:
    async with Memory.open(f"sqlite:///{tmp_path}/memory.db") as memory:
        key = await memory.keys.create("app")
        assert await memory.keys.verify(key.token) == key.key
        assert key.token.split("_", 2)[2] not in repr(key.key)
    secret = key.token.split("_", 2)[2].encode()
    assert secret not in (tmp_path / "memory.db").read_bytes()


async def test_each_tenant_may_have_a_key_of_its_own_for_the_provider(
    memory: Memory, upstream: ModelServer
) -> None:
    keys = {"acme": "key-of-acme"}
    app = create_app(memory, auth=by_key(memory.keys), openai_url=upstream.url, openai_key=keys.get)
    async with served(app) as client:
        for tenant in ("acme", "other"):
            await client.http.get(
                "/openai/v1/models", headers=header(await memory.keys.create("a", tenant=tenant))
            )

    sent = [request.headers.get("authorization") for request in upstream.received]
    assert sent == ["Bearer key-of-acme", None]


async def test_the_log_names_the_variable_that_a_refused_request_without_a_key_lacks(
    memory: Memory, upstream: ModelServer, caplog: pytest.LogCaptureFixture
) -> None:
    app = create_app(memory, auth=by_key(memory.keys), openai_url=upstream.url)
    key = header(await memory.keys.create("a"))
    async with served(app) as client:
        for own in ({}, {"x-api-key": "wrong"}):
            upstream.script(Fail(401))
            response = await client.http.post(
                "/openai/v1/chat/completions",
                json={"model": "m", "messages": [{"role": "user", "content": "Hi."}]},
                headers=key | own,
            )
            assert response.status_code == 401

    warnings = [text for text in caplog.messages if "without a key" in text]
    assert len(warnings) == 1
    assert "OPENAI_API_KEY" in warnings[0]


async def test_scopes_hold_where_a_host_program_mounts_the_service(memory: Memory) -> None:
    reader = await memory.keys.create("reader", tenant="acme", scopes=("read",))
    app = Starlette(routes=[Mount("/mem", create_app(memory, auth=by_key(memory.keys)))])
    headers = {"x-remanence-key": reader.token}
    async with served(app) as client:
        for path, status in (
            ("/v1/conversations", 200),
            ("/v1/users/ana/export", 403),
            ("/metrics", 403),
        ):
            answer = await client.http.get(f"/mem{path}", headers=headers)
            assert answer.status_code == status
        assert (await client.get("/mem/healthz")).status_code == 200


async def test_no_cache_keeps_what_one_tenant_got_for_another(
    memory: Memory, upstream: ModelServer
) -> None:
    app = create_app(memory, auth=by_key(memory.keys), openai_url=upstream.url)
    key = header(await memory.keys.create("app", scopes=("read", "write", "erase")))
    async with served(app) as client:
        for path in ("/v1/facts?user=ana", "/v1/users/ana/export", "/openai/v1/models", "/v1/gone"):
            response = await client.http.get(path, headers=key)
            assert response.headers["cache-control"] == "no-store"
            assert response.headers["x-content-type-options"] == "nosniff"
        assert (await client.get("/")).headers["cache-control"] == "no-cache"


@pytest.mark.parametrize("path", ["openai/v1/chat/completions", "anthropic/v1/messages"])
async def test_a_refusal_of_a_proxy_has_its_text_where_clients_of_the_provider_read_it(
    memory: Memory, upstream: ModelServer, path: str
) -> None:
    reading = await memory.keys.create("reader", tenant="acme", scopes=("read",))
    writing = await memory.keys.create("writer", tenant="acme", scopes=("write",))
    app = create_app(memory, auth=by_key(memory.keys), requests_per_minute=1, max_body_bytes=100)
    async with served(app) as client:
        refused = [
            await client.http.post(path, content=b" " * 200, headers=headers)
            for headers in ({}, header(reading), header(writing), header(writing))
        ]
        elsewhere = await client.http.get("/v1/facts")

    assert [response.status_code for response in refused] == [401, 403, 413, 429]
    for problem in (response.json() for response in refused):
        code = problem["type"].rpartition(":")[2]
        assert problem["error"] == {"message": problem["detail"], "type": code, "code": code}
    assert "error" not in elsewhere.json()
