"""A stranger cannot see, guess or infer what another tenant or user has, on any route of the service.

The routes are those of the application, so that a new one is tested without being named here.
"""

import re
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from datetime import timedelta
from itertools import chain, product
from random import Random
from typing import Any, NamedTuple

import pytest
from fastapi import FastAPI
from fastapi.routing import iter_route_contexts
from tests.server.conftest import POLICY, Client, Speaker, served
from tests.slow import slow_except
from tests.wire.servers import ModelServer

from remanence import Memory, Message
from remanence.server.access import by_key
from remanence.server.app import create_app
from remanence.settings import Settings
from remanence.testing import FixedClock
from remanence.testing.clock import START
from remanence.testing.store_contract.samples import usage
from remanence.types import Scope

OPEN = {"/", "/healthz", "/readyz", "/openapi.json"}
WHOLE_TENANT = {"/v1/conversations", "/v1/events"}
"""They show a tenant's client the conversations of all its users."""

SCOPES: tuple[Scope, ...] = ("read", "write", "erase")
OWNER, TRIP = "ana-of-lisbon", "trip"
SECRETS = ("blue painting", OWNER, "acme-tours")
NAMES = {
    "{id}": (TRIP, "gone"),
    "{user}": (OWNER, "eve"),
    "{path:path}": ("models", "messages/count_tokens", "files/file-1"),
}
QUERIES = (
    {"query": "safe painting"},
    {"limit": "1"},
    {"after": "0"},
    {"after": TRIP},
    {"type": "observed"},
    {"conversation": TRIP},
    {"history": "true"},
    {"format": "anthropic"},
)
BODIES: dict[str, tuple[dict[str, Any], ...]] = {
    "conversations": ({"id": TRIP}, {}),
    "messages": (
        {"messages": [{"role": "user", "content": "Which safe?", "id": "m-1"}]},
        {"model": "m", "max_tokens": 99, "messages": [{"role": "user", "content": "Which safe?"}]},
    ),
    "context": ({"recall": "safe"}, {"format": "text"}),
    "forget": ({"message_ids": ["m-1"]}, {"query": "safe"}, {"facts": ["fact_00000001"]}),
    "facts": ({"summary": "Eve likes safes."},),
    "chat": ({"text": "Which safe?"}, {"text": "Which safe?", "tenant": "acme-tours"}, {}),
    "completions": ({"model": "m", "messages": [{"role": "user", "content": "Which safe?"}]},),
    "responses": ({"model": "m", "input": "Which safe?"},),
}
HEADERS: tuple[dict[str, str], ...] = (
    {},
    {"x-remanence-conversation": TRIP},
    {"x-remanence-conversation": TRIP, "x-remanence-user": OWNER},
    {"idempotency-key": "m-1"},
)
CHANGING = re.compile(r"_\d{8}|\.000001|\"(digest|salt|kept)\": ?\"[0-9a-f]+\"")
"""Ids that count up, the microsecond that tells two services apart, and what depends on a salt."""


class Endpoint(NamedTuple):
    """A method and a path with names in braces."""

    method: str
    path: str


class Call(NamedTuple):
    """A request to an endpoint."""

    method: str
    path: str
    query: dict[str, str]
    body: dict[str, Any] | None
    headers: dict[str, str]


def endpoints(app: FastAPI) -> list[Endpoint]:
    """All that a client with a key may call."""
    routes = [route for route in iter_route_contexts(app.routes) if route.path not in OPEN]
    return sorted(
        Endpoint(way, route.path or "") for route in routes for way in route.methods or ()
    )


def calls(endpoint: Endpoint, random: Random, *, user: str) -> Iterator[Call]:
    """Three requests for names that are and that are not in use, one without options of some routes."""
    for more in ({}, *random.choices(QUERIES, k=2)):
        path = endpoint.path
        for name, values in NAMES.items():
            path = path.replace(name, random.choice(values))
        assert "{" not in path, f"{path}: give NAMES an example of it"
        query = {**more, "user": user}
        if path.endswith("/recall"):
            query["query"] = "safe"
        if random.random() < 0.3:
            query["tenant"] = "acme-tours"
        bodies = BODIES.get(path.rpartition("/")[2], ({},))
        body = random.choice(bodies) if endpoint.method in ("POST", "PUT", "PATCH") else None
        yield Call(endpoint.method, path, query, body, random.choice(HEADERS))


@dataclass(frozen=True, kw_only=True)
class Service:
    """A service, its application and its provider."""

    app: FastAPI
    client: Client
    memory: Memory
    upstream: ModelServer

    async def key(self, tenant: str, **more: Any) -> dict[str, str]:
        new = await self.memory.keys.create("app", tenant=tenant, scopes=SCOPES, **more)
        return {"x-remanence-key": new.token}

    async def answer(self, call: Call, key: dict[str, str]) -> str:
        """All that a client gets, without what changes; of a stream its first piece."""
        request: Any = {"params": call.query, "json": call.body, "headers": {**key, **call.headers}}
        async with self.client.http.stream(call.method, call.path, **request) as response:
            pieces = [b""]
            async for piece in response.aiter_bytes():
                pieces.append(piece)
                if call.path == "/v1/events":
                    break
        own = sorted((k, v) for k, v in response.headers.items() if k.startswith("x-remanence"))
        text = f"{response.status_code} {own} {b''.join(pieces).decode()}"
        return CHANGING.sub("", text)


@asynccontextmanager
async def service(*, has_owner: bool) -> AsyncIterator[Service]:
    """A service that does nothing by itself, with a conversation of `ana` of `acme-tours`, or empty."""
    async with AsyncExitStack() as stack:
        # A microsecond tells the conversations of two services apart, for those who check prefixes.
        clock = FixedClock(START + timedelta(microseconds=not has_owner))
        settings = Settings(url="sqlite:///:memory:", workers=0)
        memory = await stack.enter_async_context(
            Memory.open(settings=settings, policy=POLICY, clock=clock)
        )
        upstream = await stack.enter_async_context(ModelServer().running())
        app = create_app(
            memory,
            model=Speaker(),
            auth=by_key(memory.keys),
            openai_url=upstream.url,
            anthropic_url=upstream.url,
        )
        if has_owner:
            await own(memory)
        client = await stack.enter_async_context(served(app))
        yield Service(app=app, client=client, memory=memory, upstream=upstream)


async def own(memory: Memory) -> None:
    """Messages, notes, a fact, and a conversation by the proxy's name for it."""
    trip = memory.conversation(TRIP, tenant="acme-tours", user=OWNER)
    text = "The safe is behind the blue painting, its code is 4711 and it opens at 9:30."
    await trip.append(*(Message.user(f"{text} ({n})", id=f"m-{n}") for n in range(1, 20)))
    await memory.facts.save(
        "Has a safe, behind the blue painting.", user=OWNER, tenant="acme-tours"
    )
    await trip.record_call(usage(model="model-for-the-painting", user=OWNER, at=memory.clock.now()))
    await trip.flush(everything=True)
    assert await trip.observations()


async def belongings(memory: Memory) -> tuple[object, ...]:
    trip = memory.conversation(TRIP, tenant="acme-tours", user=OWNER)
    facts = await memory.facts.list(user=OWNER, tenant="acme-tours")
    events = await memory.read_events(tenant="acme-tours", after=0)
    assert (await trip.usage())[0].calls == 1
    return await trip.snapshot(), await trip.messages(), facts, events


@pytest.mark.parametrize("seed", slow_except(range(8), [0]))
async def test_another_tenant_gets_the_answers_of_a_service_without_the_owner(seed: int) -> None:
    async with service(has_owner=True) as full, service(has_owner=False) as empty:
        before = await belongings(full.memory)
        keys = [await each.key("rival") for each in (full, empty)]
        random = Random(seed)
        every = [
            calls(one, random, user=user)
            for one, user in product(endpoints(full.app), (OWNER, "eve"))
        ]
        wanted = [*chain.from_iterable(every)]
        random.shuffle(wanted)
        for call in wanted:
            if call.path == "/metrics":
                continue  # it needs a scope of its own, and shows the whole process
            seen, guessed = [
                await each.answer(call, key) for each, key in zip((full, empty), keys, strict=True)
            ]
            assert seen == guessed, call
        sent = [
            [CHANGING.sub("", request.raw.decode()) for request in each.upstream.received]
            for each in (full, empty)
        ]
        assert sent[0] == sent[1]
        assert sent[0]
        assert await belongings(full.memory) == before


async def test_no_route_answers_without_a_valid_key() -> None:
    async with service(has_owner=True) as here:
        before = await belongings(here.memory)
        revoked = await here.memory.keys.create("old", tenant="acme-tours", scopes=SCOPES)
        await here.memory.keys.revoke(revoked.key.id)
        past = here.memory.clock.now() - timedelta(seconds=1)
        good = await here.key("acme-tours")
        changed = good["x-remanence-key"]
        bad: tuple[dict[str, str], ...] = (
            {},
            {"authorization": "Bearer x"},
            {"x-api-key": "rk_"},
            {"x-remanence-key": f"{changed[:-1]}{'a' if changed[-1] != 'a' else 'b'}"},
            {"authorization": f"Bearer {revoked.token}"},
            await here.key("acme-tours", expires_at=past),
        )
        random = Random(0)
        for endpoint, key in product(endpoints(here.app), bad):
            call = next(calls(endpoint, random, user=OWNER))
            answer = await here.answer(call, key)
            assert answer.startswith("401 "), (call, key)
            assert not any(secret in answer for secret in SECRETS), call
        assert here.upstream.received == []
        assert await belongings(here.memory) == before


async def test_no_route_shows_another_user_of_the_tenant_the_owner() -> None:
    async with service(has_owner=True) as here:
        key = await here.key("acme-tours")
        before = await belongings(here.memory)
        random = Random(0)
        for endpoint in endpoints(here.app):
            for call in calls(endpoint, random, user="eve"):
                path = call.path.replace(OWNER, "eve")
                if path in WHOLE_TENANT or path == "/metrics":
                    continue
                headers = {**call.headers, "x-remanence-user": "eve"}
                answer = await here.answer(call._replace(path=path, headers=headers), key)
                assert OWNER not in answer, call
                assert "painting" not in answer, call
        assert not any(b"painting" in request.raw for request in here.upstream.received)
        snapshot, tape, facts, _ = before
        assert (await belongings(here.memory))[:3] == (snapshot, tape, facts)
