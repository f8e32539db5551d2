"""The application: its routes and middleware."""

import asyncio
from collections.abc import Collection
from functools import cache, partial
from importlib.metadata import version
from typing import Any, Final

from fastapi import APIRouter, Depends, FastAPI
from fastapi.middleware.cors import CORSMiddleware
from fastapi.telemetry import TelemetryConfig
from starlette.routing import BaseRoute
from starlette.types import Receive, Scope, Send

from remanence.arguments import require_origins, require_provider_url
from remanence.chat import ChatSource
from remanence.memory import Memory
from remanence.server.access import (
    KEY_HEADERS,
    Access,
    Authenticate,
    KeyAuthentication,
    add_security,
)
from remanence.server.audit import Audit
from remanence.server.chats import Chats
from remanence.server.grace import GRACE_SECONDS, GracePeriod, RequestGrace
from remanence.server.middleware import (
    BODY_SECONDS,
    LOCAL_HOSTS,
    MAX_BODY_BYTES,
    BodyLimit,
    KnownHosts,
    KnownOrigins,
    RequestLog,
    SingleHeaders,
    URLLimit,
)
from remanence.server.paths import with_encoded_names
from remanence.server.problems import OF_ALL, add_components, declare, handle_problems
from remanence.server.proxy.forwarding import (
    ANTHROPIC,
    ANTHROPIC_DIALECT,
    OPENAI,
    OPENAI_DIALECT,
    Forwarder,
    UpstreamKey,
)
from remanence.server.proxy.naming import NAMING_HEADERS
from remanence.server.rate_limit import RateLimit, StreamLimit
from remanence.server.routes import (
    chat,
    conversations,
    dashboard,
    events,
    facts,
    health,
    memory as memory_routes,
    proxy,
    require_known_query,
    require_short_names,
    usage,
    users,
)
from remanence.server.turn_response import KEEP_ALIVE_SECONDS

_TELEMETRY: Final[TelemetryConfig] = {"tracing": False, "logs": False}
"""Only metrics, as FastAPI's spans have queries and its logs have errors, which may be private."""


class _Application(FastAPI):
    """An application whose OpenAPI document describes problems and API keys.

    It serves HTTP only: other protocols have no routes.
    """

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            await super().__call__(with_encoded_names(scope), receive, send)
        else:
            await self.router(scope, receive, send)

    def openapi(self) -> dict[str, Any]:  # JSON
        if self.openapi_schema is not None:
            return self.openapi_schema
        document = super().openapi()
        # Answers have all their fields; generators of clients take one with a default as optional.
        for schema in document["components"]["schemas"].values():
            if "properties" in schema and schema.get("additionalProperties") is not False:
                schema["required"] = [*schema["properties"]]
        add_components(document)
        if isinstance(self.state.auth, KeyAuthentication):
            add_security(document)
        return document


def create_app(
    memory: Memory,
    *,
    model: ChatSource | None = None,
    system: str = "",
    identity: str = "",
    tools: bool = False,
    auth: Authenticate | None = None,
    allowed_hosts: Collection[str] | None = LOCAL_HOSTS,
    allowed_origins: Collection[str] = (),
    requests_per_minute: int | None = None,
    openai_url: str = OPENAI,
    anthropic_url: str = ANTHROPIC,
    openai_key: UpstreamKey = None,
    anthropic_key: UpstreamKey = None,
    recognize: bool = False,
    proxies: bool = True,
    ending: asyncio.Event | None = None,
    grace_seconds: float = GRACE_SECONDS,
    keep_alive_seconds: float = KEEP_ALIVE_SECONDS,
    max_body_bytes: int = MAX_BODY_BYTES,
    body_seconds: float = BODY_SECONDS,
) -> FastAPI:
    """Create an application over an open memory, which it does not close.

    Args:
        memory: the memory to serve.
        model: the model for chats; without one, a chat is an error.
        system: the base system prompt of a chat.
        identity: a separate block before the system prompt, which some kinds of access require.
        tools: whether the model may search and save facts of the user, if a turn names one.
        auth: authenticates the caller of a request, such as `by_key(memory.keys)` or the login of a
            host program; without it, a client may act for any tenant.
        allowed_hosts: accepted host names, without a port; None accepts any.
        allowed_origins: sites whose pages may use the service from a browser, such as
            `https://app.example.com`; other pages get status 403.
        requests_per_minute: the limit of requests per caller, or per address without callers, and of
            failed attempts with the same credentials; beyond it requests get status 429. Each
            process counts separately.
        openai_url: the upstream for requests to `/openai/v1`, with or without `/v1`.
        anthropic_url: the upstream for requests to `/anthropic/v1`.
        openai_key: the OpenAI key for clients that send only a key of this server; or a function
            that returns the key of a tenant, such as from a secret store.
        anthropic_key: the same for Anthropic.
        recognize: whether the proxies recognise a conversation without a name by its messages.
        proxies: whether there are proxies: they pass on any request, with a key of the server for
            clients that send only a key of this server.
        ending: set when the server begins to shut down; open turns then end with an error event,
            and event streams end.
        grace_seconds: the time that other open requests then have, before they end with status 503
            or an error event.
        keep_alive_seconds: the silence of a stream after which a comment is sent.
        max_body_bytes: the maximum size of a request body; a larger one, or one of more than 300,000
            JSON values, gets status 413. Bodies that the proxies forward unread, such as uploads of
            files, have no limit, and a longer answer of a provider (four times as long if it is
            streamed) is forwarded, but not stored.
        body_seconds: the timeout for a request body, or for the next piece of such an upload; a slower
            one gets status 408.

    Raises:
        ModelError: *model* is unknown, or has no key.
        InvalidArgument: an origin is malformed, or a URL, or one has a password.
    """
    require_origins(allowed_origin=allowed_origins)
    require_provider_url(openai_url=openai_url, anthropic_url=anthropic_url)
    app = _Application(
        title="remanence",
        summary="Memory for LLM agents",
        version=version("remanence"),
        telemetry=_TELEMETRY,
        docs_url=None,  # these pages load scripts from other hosts
        redoc_url=None,
        routes=_routes(proxies=proxies),
        redirect_slashes=False,
    )
    app.state.memory, app.state.auth = memory, auth
    app.state.chats = Chats(memory, model=model, system=system, identity=identity, tools=tools)
    app.state.ending = ending = ending or asyncio.Event()
    grace = partial(GracePeriod, ending, grace_seconds)
    forwarder = partial(
        Forwarder, memory, recognize=recognize, grace=grace, max_answer_bytes=max_body_bytes
    )
    app.state.openai = forwarder(openai_url, OPENAI_DIALECT, openai_key)
    app.state.anthropic = forwarder(anthropic_url, ANTHROPIC_DIALECT, anthropic_key)
    app.state.has_proxies = proxies
    app.state.keep_alive_seconds = keep_alive_seconds
    app.add_middleware(
        BodyLimit, max_bytes=max_body_bytes, seconds=body_seconds, is_streamed=proxy.is_streamed
    )
    app.add_middleware(StreamLimit)
    if requests_per_minute is not None:
        app.add_middleware(RateLimit, per_minute=requests_per_minute)
    if auth is not None:
        app.add_middleware(Access, authenticate=auth, per_minute=requests_per_minute)
    app.add_middleware(SingleHeaders, names={*KEY_HEADERS, *NAMING_HEADERS})
    app.add_middleware(Audit, clock=memory.clock)
    app.add_middleware(
        CORSMiddleware,
        allow_origins=[*allowed_origins],
        allow_methods=["*"],
        allow_headers=["*"],
        expose_headers=["*"],
    )
    app.add_middleware(KnownOrigins, origins=allowed_origins)
    if allowed_hosts is not None:
        app.add_middleware(KnownHosts, hosts=allowed_hosts)
    app.add_middleware(RequestGrace, grace=grace)
    app.add_middleware(URLLimit)
    app.add_middleware(RequestLog)
    handle_problems(app)
    return app


@cache
def _routes(*, proxies: bool) -> list[BaseRoute]:
    """Return the routes, which all applications share, as FastAPI takes 0.1 s to build them."""
    router = APIRouter(generate_unique_id_function=lambda route: route.name)
    router.include_router(dashboard.router)
    router.include_router(health.router, responses=declare(of_all=OF_ALL))
    for routes in (conversations, memory_routes, facts, events, users, usage, chat):
        router.include_router(
            routes.router,
            responses=declare(),
            dependencies=[Depends(require_known_query), Depends(require_short_names)],
        )
    if proxies:
        router.include_router(proxy.router, responses=declare())
    return router.routes


def create_health_app(memory: Memory, ending: asyncio.Event) -> FastAPI:
    """Create an application with only `/healthz`, `/readyz` and `/metrics`."""
    app = FastAPI(
        title="remanence", telemetry=_TELEMETRY, docs_url=None, redoc_url=None, openapi_url=None
    )
    app.state.memory, app.state.ending = memory, ending
    app.include_router(health.router)
    return app
