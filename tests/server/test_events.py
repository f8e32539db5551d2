"""GET /v1/events: a stream of events that a client can leave and resume."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Literal

import httpx2
from tests.server.conftest import POLICY, Client, served

from remanence import Memory, Message
from remanence.server.access import by_key
from remanence.server.app import create_app
from remanence.testing import FixedClock

TEXT = "My flight LH 454 to San Francisco leaves on 2026-05-08 at 13:25 from gate B42. " * 4


async def talk(memory: Memory, conversation: str = "trip", *, tenant: str = "default") -> None:
    """Have turns of a conversation observed and activated."""
    chat = memory.conversation(conversation, user="ana", tenant=tenant)
    for _ in range(4):
        await chat.append(Message.user(TEXT), Message.assistant(TEXT))
        await chat.flush()
        await chat.context()


@asynccontextmanager
async def following(
    client: Client, headers: dict[str, str] | None = None, **query: str
) -> AsyncIterator[tuple[httpx2.Response, AsyncIterator[dict[str, str]]]]:
    """Yield the response, and the fields of each event of its stream; that of a comment is ``''``."""
    async with (
        asyncio.timeout(30),
        client.http.stream("GET", "/v1/events", params=query, headers=headers) as response,
    ):
        yield response, _blocks(response)


async def _blocks(response: httpx2.Response) -> AsyncIterator[dict[str, str]]:
    block: dict[str, str] = {}
    async for line in response.aiter_lines():
        if line:
            name, _, value = line.partition(": ")
            block[name.removesuffix(":")] = value
        else:
            yield block
            block = {}


async def test_events_arrive_as_they_are_committed(client: Client, memory: Memory) -> None:
    await talk(memory, "earlier")
    async with following(client) as (response, blocks):
        start = await anext(blocks)
        await talk(memory)
        first, second = await anext(blocks), await anext(blocks)

    assert response.headers["content-type"].startswith("text/event-stream")
    assert response.headers["cache-control"] == "no-cache"
    assert [first["event"], second["event"]] == ["observed", "activated"]
    assert int(second["id"]) == int(first["id"]) + 1 == int(start["id"]) + 2
    data = json.loads(first["data"])
    assert (data["conversation"], data["user"], data["data"]["first_seq"]) == ("trip", "ana", 1)
    assert "LH 454" not in first["data"]


async def test_a_client_that_connects_again_misses_nothing(client: Client, memory: Memory) -> None:
    async with following(client) as (_, blocks):
        start = await anext(blocks)
    await talk(memory)
    async with following(client, {"last-event-id": start["id"]}) as (_, blocks):
        assert await anext(blocks) == {"id": "0"}
        first = await anext(blocks)
    await talk(memory, "other")
    async with following(client, {"last-event-id": first["id"]}, after="0") as (_, blocks):
        assert await anext(blocks) == {"id": "1"}
        assert (await anext(blocks))["id"] == "2"


async def test_the_query_filters_by_conversation_and_type(client: Client, memory: Memory) -> None:
    await talk(memory)
    await talk(memory, "other")
    await memory.conversation("trip", user="ana").delete()
    query = {"after": "0", "type": "forgotten"}
    async with following(client, None, **query) as (_, blocks):
        assert await anext(blocks) == {"id": "0"}
        assert json.loads((await anext(blocks))["data"])["conversation"] == "trip"
    async with following(client, None, after="0", conversation="other") as (_, blocks):
        await anext(blocks)
        assert json.loads((await anext(blocks))["data"])["conversation"] == "other"


async def test_an_id_beyond_the_newest_event_begins_at_the_newest(
    client: Client, memory: Memory
) -> None:
    await talk(memory)
    newest = str((await memory.read_events()).last)
    async with following(client, {"last-event-id": "900"}) as (_, blocks):
        start = await anext(blocks)
        await talk(memory, "other")
        first = await anext(blocks)

    assert start == {"id": newest}
    assert json.loads(first["data"])["conversation"] == "other"


class EndAtPause(asyncio.Event):
    """The end of a server, which comes with the first pause of a stream."""

    async def wait(self) -> Literal[True]:
        task = asyncio.current_task()
        if task is not None and task.get_name() == "remanence-grace":
            return await super().wait()  # the grace period of a request is no pause
        self.set()
        return True


async def test_a_long_backlog_is_sent_without_pauses(memory: Memory) -> None:
    for number in range(120):
        await memory.facts.save(f"keeps {number} bees", user="ana")
    async with (
        served(create_app(memory, ending=EndAtPause())) as client,
        following(client, after="0") as (_, blocks),
    ):
        seen = [int(block["id"]) async for block in blocks]

    assert seen == list(range(121))


async def test_an_impossible_query_is_a_problem(client: Client) -> None:
    for query, headers in (({"type": "noted"}, {}), ({}, {"last-event-id": "x"})):
        response = await client.http.get("/v1/events", params=query, headers=headers)
        assert response.status_code == 422
        assert response.headers["content-type"] == "application/problem+json"
        (found,) = response.json()["errors"]
        assert found["pointer"] in ("#/type/0", "#/last-event-id")


async def test_a_silent_stream_is_kept_alive(memory: Memory) -> None:
    async with (
        served(create_app(memory, keep_alive_seconds=0.01)) as client,
        following(client) as (_, blocks),
    ):
        assert await anext(blocks) == {"id": "0"}
        assert await anext(blocks) == {"": "keep-alive"}


async def test_the_stream_ends_with_the_server(memory: Memory) -> None:
    ending = asyncio.Event()
    async with (
        served(create_app(memory, ending=ending)) as client,
        following(client) as (_, blocks),
    ):
        await anext(blocks)
        ending.set()
        assert [block async for block in blocks] == []


async def test_a_key_shows_the_events_of_its_tenant_alone() -> None:
    async with (
        Memory.open("sqlite:///:memory:", policy=POLICY, clock=FixedClock()) as memory,
        served(create_app(memory, auth=by_key(memory.keys))) as client,
    ):
        key = await memory.keys.create("app", tenant="rival")
        headers = {"x-remanence-key": key.token}
        await talk(memory, tenant="acme")
        await talk(memory, tenant="rival")

        async with following(client, headers, after="0") as (_, blocks):
            seen = [await anext(blocks), await anext(blocks)]
        refused = await client.http.get("/v1/events", params={"tenant": "acme"}, headers=headers)

    assert [block["id"] for block in seen] == ["0", "1"]
    assert json.loads(seen[1]["data"])["tenant"] == "rival"
    assert refused.status_code == 403
    assert "acme" not in refused.text


async def test_the_stream_ends_when_its_key_is_revoked(memory: Memory) -> None:
    app = create_app(memory, auth=by_key(memory.keys), keep_alive_seconds=0.01)
    key = await memory.keys.create("app")
    async with (
        served(app) as client,
        following(client, {"x-remanence-key": key.token}) as (_, blocks),
    ):
        assert await anext(blocks) == {"id": "0"}
        assert await anext(blocks) == {"": "keep-alive"}
        await memory.keys.revoke(key.key.id)
        await talk(memory)
        rest = [block async for block in blocks]

    assert all(block == {"": "keep-alive"} for block in rest)


async def test_no_event_is_sent_once_the_key_is_revoked(memory: Memory) -> None:
    key = await memory.keys.create("app")
    async with (
        served(create_app(memory, auth=by_key(memory.keys))) as client,
        following(client, {"x-remanence-key": key.token}) as (_, blocks),
    ):
        assert await anext(blocks) == {"id": "0"}
        await memory.keys.revoke(key.key.id)
        await talk(memory)
        rest = [block async for block in blocks]

    assert rest == []
