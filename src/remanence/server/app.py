"""The application: its routes and middleware."""

import asyncio
from collections.abc import Collection
from importlib.metadata import version

from fastapi import FastAPI

from remanence.chat import ChatSource
from remanence.memory import Memory
from remanence.server.access import Access, Authenticate
from remanence.server.chats import Chats
from remanence.server.middleware import (
    BODY_SECONDS,
    LOCAL_HOSTS,
    MAX_BODY_BYTES,
    BodyLimit,
    KnownHosts,
    RequestLog,
)
from remanence.server.problems import DECLARED, handle_problems
from remanence.server.proxy.forwarding import ANTHROPIC, OPENAI, Forwarder, api_key, bearer
from remanence.server.routes import (
    chat,
    conversations,
    facts,
    health,
    memory as memory_routes,
    proxy,
    users,
)
from remanence.server.turn_response import KEEP_ALIVE_SECONDS


def create_app(
    memory: Memory,
    *,
    model: "ChatSource | None" = None,
    system: str = "",
    identity: str = "",
    tools: bool = False,
    auth: Authenticate | None = None,
    allowed_hosts: Collection[str] | None = LOCAL_HOSTS,
    openai_url: str = OPENAI,
    anthropic_url: str = ANTHROPIC,
    openai_key: str | None = None,
    anthropic_key: str | None = None,
    ending: asyncio.Event | None = None,
    keep_alive_seconds: float = KEEP_ALIVE_SECONDS,
    max_body_bytes: int = MAX_BODY_BYTES,
    body_seconds: float = BODY_SECONDS,
) -> FastAPI:
    """Create an application over an open memory, which it does not close.

    Args:
        memory: the memory to serve.
        model: the model of chats; without one, a chat is an error.
        system: the base system prompt of a chat.
        identity: a separate block before the system prompt, which some kinds of access require.
        tools: whether the model may search and keep facts of the user, where a turn names one.
        auth: recognises the caller of a request and its tenant, such as `by_key(memory.keys)` or the
            login of a host program; without it a client may act for any tenant.
        allowed_hosts: accepted host names, without a port; None accepts any.
        openai_url: where requests to `/openai/v1` are sent on to, without `/v1`.
        anthropic_url: where those to `/anthropic/v1` are sent on to.
        openai_key: for OpenAI, where a client sends a key of this server alone.
        anthropic_key: the same for Anthropic.
        ending: set when the server begins to shut down; open turns then end with an error event.
        keep_alive_seconds: the silence of a stream after which a comment is sent.
        max_body_bytes: the maximum size of a request body; a larger one gets status 413.
        body_seconds: the timeout for a request body; a slower one gets status 408.

    Raises:
        ModelError: *model* is unknown, or has no key.
    """
    app = FastAPI(
        title="remanence",
        summary="Memory for LLM agents",
        version=version("remanence"),
        docs_url=None,  # these pages load scripts from elsewhere
        redoc_url=None,
        responses=DECLARED,
        generate_unique_id_function=lambda route: route.name,
    )
    app.state.memory = memory
    app.state.chats = Chats(memory, model=model, system=system, identity=identity, tools=tools)
    app.state.openai = Forwarder(memory, openai_url, bearer(openai_key))
    app.state.anthropic = Forwarder(memory, anthropic_url, api_key(anthropic_key))
    app.state.ending = ending or asyncio.Event()
    app.state.keep_alive_seconds = keep_alive_seconds
    app.add_middleware(BodyLimit, max_bytes=max_body_bytes, seconds=body_seconds)
    if auth is not None:
        app.add_middleware(Access, authenticate=auth)
    if allowed_hosts is not None:
        app.add_middleware(KnownHosts, hosts=allowed_hosts)
    app.add_middleware(RequestLog)
    handle_problems(app)
    for routes in (health, conversations, memory_routes, facts, users, chat, proxy):
        app.include_router(routes.router)
    return app


def create_health_app(memory: Memory, ending: asyncio.Event) -> FastAPI:
    """Create an application that answers `/healthz` and `/readyz` alone."""
    app = FastAPI(title="remanence", docs_url=None, redoc_url=None, openapi_url=None)
    app.state.memory, app.state.ending = memory, ending
    app.include_router(health.router)
    return app
