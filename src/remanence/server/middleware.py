"""Middleware: allowed hosts, headers and origins, body limits, caches, and the request log."""

import asyncio
import re
import uuid
from collections.abc import Callable, Collection
from typing import Final

from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from remanence.server.paths import path_of
from remanence.server.problems import problem
from remanence.telemetry import requests

LOCAL_HOSTS: Final = frozenset({"127.0.0.1", "localhost", "[::1]"})

MAX_BODY_BYTES: Final = 32 * 1024 * 1024
"""Twice the size limit of a message, as JSON is longer than the text."""

MAX_BODY_VALUES: Final = 300_000
"""About 0.1 s of parsing, in which no other thread runs; 1,000 messages have some 5,000."""

BODY_SECONDS: Final = 60.0

MAX_URL_BYTES: Final = 16 * 1024
"""Of path and query, in which a name of 500 characters has up to 6,000 bytes."""

REQUEST_ID: Final = "x-request-id"
_PRIVATE: Final = {"cache-control": "no-store", "x-content-type-options": "nosniff"}
"""Tenants have the same paths, and no cache knows the header of our own that tells them apart."""
_GIVEN: Final = re.compile(r"[\w.:-]{1,64}", re.ASCII)


class KnownHosts:
    """Rejects requests for unknown host names, such as in a DNS rebinding attack."""

    def __init__(self, app: ASGIApp, *, hosts: Collection[str]) -> None:
        self._app = app
        self._hosts = frozenset(host.lower() for host in hosts)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        host = Headers(scope=scope).get("host", "").lower()
        name, _, port = host.rpartition(":")
        if (name if port.isdigit() else host) not in self._hosts:
            detail = (
                f"this server does not accept the host {host!r:.80}, only "
                f"{', '.join(sorted(self._hosts))}: add it with --allowed-host, or with allowed_hosts of "
                "create_app; a server in front must keep the client's host, as nginx does with "
                "'proxy_set_header Host $host'"
            )
            await problem(421, "not_local", detail)(scope, receive, send)
        else:
            await self._app(scope, receive, send)


class URLLimit:
    """Rejects a request whose path and query are too long."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        path = scope.get("raw_path") or scope["path"]
        if len(path) + len(scope["query_string"]) > MAX_URL_BYTES:
            detail = f"path and query have more than {MAX_URL_BYTES:,} bytes: use shorter names"
            await problem(414, "url_too_long", detail)(scope, receive, send)
        else:
            await self._app(scope, receive, send)


class SingleHeaders:
    """Rejects requests that repeat a header, as a server in front may have checked another value."""

    def __init__(self, app: ASGIApp, *, names: Collection[str]) -> None:
        self._app = app
        self._names = names

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        headers = Headers(scope=scope)
        repeated = next((name for name in self._names if len(headers.getlist(name)) > 1), None)
        if repeated is None:
            await self._app(scope, receive, send)
        else:
            detail = f"the header {repeated} is repeated: send it once"
            await problem(422, "invalid_request", detail)(scope, receive, send)


class KnownOrigins:
    """Rejects cross-site requests from browsers, except those that open the dashboard."""

    def __init__(self, app: ASGIApp, *, origins: Collection[str]) -> None:
        self._app = app
        self._origins = frozenset(origins)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        headers = Headers(scope=scope)
        origin = headers.get("origin")
        own = origin is not None and origin.partition("://")[2] == headers.get("host")
        if own or origin in self._origins or (origin is None and not _is_foreign(scope, headers)):
            await self._app(scope, receive, send)
        else:
            detail = (
                "links and images of other sites get nothing but the dashboard at /"
                if origin is None
                else f"pages of {origin!r:.80} may not use this server: allow the origin with "
                "--allowed-origin, or with allowed_origins of create_app"
            )
            await problem(403, "foreign_origin", detail)(scope, receive, send)


def _is_foreign(scope: Scope, headers: Headers) -> bool:
    """Return whether a page of another site, whose browser sends no `Origin`, asks for data.

    Such are images and links.
    """
    opens_dashboard = path_of(scope) == "/" and headers.get("sec-fetch-mode") == "navigate"
    return headers.get("sec-fetch-site") == "cross-site" and not opens_dashboard


class BodyLimit:
    """Rejects a body that is too large, has too many values, or does not arrive in time.

    A body that *is_streamed* has no limit, and its time is that of each piece.
    """

    def __init__(
        self,
        app: ASGIApp,
        *,
        max_bytes: int,
        seconds: float,
        is_streamed: Callable[[Scope], bool],
    ) -> None:
        self._app = app
        self._max_bytes = max_bytes
        self._seconds = seconds
        self._is_streamed = is_streamed

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if self._is_streamed(scope):
            await self._stream(scope, receive, send)
            return
        length = Headers(scope=scope).get("content-length", "0")
        announced = int(length) if length.isdecimal() else 0
        try:
            async with asyncio.timeout(self._seconds):
                body = await self._read(Request(scope, receive), announced)
        except ClientDisconnect:
            return
        except TimeoutError:
            await self._refuse_late(scope, receive, send)
            return
        if excess := await self._excess(body):
            await _refusal(413, "body_too_large", excess)(scope, receive, send)
            return
        assert body is not None
        whole: list[Message] = [{"type": "http.request", "body": body, "more_body": False}]

        async def receive_whole() -> Message:
            return whole.pop() if whole else await receive()

        await self._app(scope, receive_whole, send)

    async def _excess(self, body: bytes | None) -> str | None:
        """Return the detail for a body of too many bytes (None) or values; None for any other."""
        if body is None:
            return (
                f"the body has more than {self._max_bytes:,} bytes: store large content "
                "elsewhere and send a reference to it"
            )
        is_long = len(body) > MAX_BODY_VALUES
        if is_long and await asyncio.to_thread(_has_more_values, body, MAX_BODY_VALUES):
            return f"the body has more than {MAX_BODY_VALUES:,} JSON values: send it in parts"
        return None

    async def _stream(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the body on piece by piece; if one is late, the request ends as if the client had left."""
        is_whole = is_late = has_begun = False

        async def receive_in_time() -> Message:
            nonlocal is_whole, is_late
            try:
                async with asyncio.timeout(None if is_whole else self._seconds):
                    message = await receive()
            except TimeoutError:
                is_late = not has_begun
                return {"type": "http.disconnect"}
            is_whole = is_whole or not message.get("more_body")
            return message

        async def send_unless_late(message: Message) -> None:
            nonlocal has_begun
            if not is_late:
                has_begun = True
                await send(message)

        await self._app(scope, receive_in_time, send_unless_late)
        if is_late:
            await self._refuse_late(scope, receive, send)

    async def _refuse_late(self, scope: Scope, receive: Receive, send: Send) -> None:
        detail = f"the body did not arrive within {self._seconds:g} s: send it at once"
        await _refusal(408, "body_timeout", detail)(scope, receive, send)

    async def _read(self, request: Request, announced: int) -> bytes | None:
        """Read the body; None if it is too large.

        Discards up to as much again, as clients do not see a response while they are sending.
        """
        body = bytearray()
        size, is_large = 0, announced > self._max_bytes
        async for chunk in request.stream():
            size += len(chunk)
            is_large = is_large or size > self._max_bytes
            if is_large:
                body.clear()
            else:
                body += chunk
            if size > 2 * self._max_bytes:
                break
        return None if is_large else bytes(body)


class RequestLog:
    """Traces each request, and logs its method, path, status, duration and id.

    The id comes from the header `X-Request-Id`, or is new; the response repeats it, unless the
    provider behind a proxy set one. Queries are not logged, as they may name a user. Other default
    headers keep responses out of caches, and browsers from guessing their type.
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        given = Headers(scope=scope).get(REQUEST_ID, "")
        name = given if _GIVEN.fullmatch(given) else uuid.uuid4().hex[:12]
        request = requests.Request(name, scope["method"], scope["path"], Headers(scope=scope))
        scope.setdefault("state", {})["request"] = request

        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                request.status = message["status"]
                request.route = getattr(scope.get("route"), "path", "")
                headers = MutableHeaders(scope=message)
                for header, value in {REQUEST_ID: name, **_PRIVATE}.items():
                    headers.setdefault(header, value)
            await send(message)

        with requests.handle(request):
            await self._app(scope, receive, send_with_headers)


def _has_more_values(body: bytes, most: int) -> bool:
    """Return whether JSON text has more than about *most* values, without parsing it."""
    pieces = body.replace(rb"\\", b"").replace(rb"\"", b"").split(b'"', 2 * most)
    # Every other piece is a string; in UTF-16, with its zeros, the quotes cannot be told apart.
    outside = body if b"\0" in body else b"".join(pieces[::2])
    return len(pieces) > 2 * most or sum(map(outside.count, (b",", b"[", b"{"))) > most


def _refusal(status: int, code: str, detail: str) -> JSONResponse:
    return problem(status, code, detail, headers={"connection": "close"})
