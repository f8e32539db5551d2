"""Requests sent on to a provider, and its responses sent back as they arrive."""

import contextlib
import json
import logging
from collections.abc import AsyncIterator, Callable, Iterator
from typing import Final, TypeAlias

import httpx2
from fastapi import Request, Response
from fastapi.responses import JSONResponse, StreamingResponse

from remanence.memory import Memory
from remanence.runtime import DEFAULT_TENANT
from remanence.server.access import KEY_HEADER, Caller, token_in
from remanence.server.disconnect import run_while_connected
from remanence.server.proxy.api import ProxiedAPI
from remanence.server.proxy.events import EventReader
from remanence.server.proxy.naming import CONVERSATION, CREDENTIALS, MEMORY, USER
from remanence.server.proxy.requests import Prepared, Requests, Turn

_log = logging.getLogger(__name__)

OPENAI: Final = "https://api.openai.com"
ANTHROPIC: Final = "https://api.anthropic.com"

_LEFT: Final = 499
"""The status in logs where the client left before the answer, as in those of nginx."""

_READ_SECONDS: Final = 600.0
_CONNECT_SECONDS: Final = 10.0
_KEPT: Final = httpx2.Limits(max_connections=None, max_keepalive_connections=100)
_HOP: Final = frozenset(
    ("connection", "keep-alive", "proxy-authenticate", "proxy-authorization", "proxy-connection")
) | frozenset(("te", "trailer", "transfer-encoding", "upgrade"))
_NOT_RETURNED: Final = _HOP | {"date"}  # the server adds its own
_NOT_SENT: Final = _HOP | {
    "host",
    "content-length",
    "accept-encoding",
    "expect",
    CONVERSATION,
    USER,
    MEMORY,
    KEY_HEADER,
}


Credential: TypeAlias = tuple[str, str]
"""A header with the server's own key for a provider."""

UpstreamKey: TypeAlias = str | Callable[[str], str | None] | None
"""The server's key for a provider, or a function that returns the key of a tenant."""


def bearer(key: str) -> Credential:
    """Return the header of a key for OpenAI."""
    return "authorization", f"Bearer {key}"


def api_key(key: str) -> Credential:
    """Return the header of a key for Anthropic."""
    return "x-api-key", key


class Forwarder:
    """Sends requests to the provider at *url*, those of conversations with their memory.

    The URL may end with `/v1`, as those of clients do.

    A client's own credential is sent on; *key*, in the header that *credential* makes of it, is for
    those that send none but ours.
    """

    def __init__(
        self,
        memory: Memory,
        url: str,
        credential: Callable[[str], Credential],
        key: UpstreamKey,
        *,
        recognize: bool,
    ) -> None:
        self._memory = memory
        self._credential = credential
        self._key = key
        self._url = url.rstrip("/").removesuffix("/v1")  # which the paths begin with
        self._requests = Requests(memory, recognize=recognize)

    async def forward(self, request: Request, path: str, api: ProxiedAPI | None = None) -> Response:
        """Send a request on; with *api* it is a turn of a conversation.

        The call ends when the client leaves.
        """
        prepared = Prepared(content=await request.body(), reason="not a turn of a conversation")
        caller: Caller | None = getattr(request.state, "caller", None)
        tenant = caller.tenant if caller else None
        if api is not None:
            prepared = await self._requests.prepare(api, request.headers, prepared.content, tenant)
        client = self._memory.connections.client(_READ_SECONDS, _open_client)
        sent = client.build_request(
            request.method,
            f"{self._url}/{path}",
            params=request.url.query or None,
            headers=_headers_to_send(request, self._own_credential(tenant)),
            content=prepared.content,
        )
        response = await run_while_connected(request.receive, self._send(client, sent, prepared))
        return Response(status_code=_LEFT) if response is None else response

    async def _send(
        self, client: httpx2.AsyncClient, sent: httpx2.Request, prepared: Prepared
    ) -> Response:
        turn = prepared.turn
        try:
            received = await client.send(sent, stream=True)
            if turn is None or received.status_code != 200:
                response: Response = StreamingResponse(_relay(received), received.status_code)
            elif "text/event-stream" in received.headers.get("content-type", ""):
                response = StreamingResponse(self._relay_events(turn, received))
            else:
                response = Response(await self._whole(turn, received))
        except httpx2.HTTPError as error:
            return _unreachable(self._url, error)
        return _with_headers(response, received, prepared)

    def _own_credential(self, tenant: str | None) -> Credential | None:
        key = self._key(tenant or DEFAULT_TENANT) if callable(self._key) else self._key
        return self._credential(key) if key else None

    async def _whole(self, turn: Turn, response: httpx2.Response) -> bytes:
        """Return the body of a response without a stream, after its answer was stored."""
        content = b"".join([piece async for piece in _relay(response)])
        answer = turn.api.answer()
        with _failure_logged():
            answer.take(json.loads(content))
            if answer.objects:
                await self._requests.keep(turn, answer.objects)
        return content

    async def _relay_events(self, turn: Turn, response: httpx2.Response) -> AsyncIterator[bytes]:
        """Yield a stream as it arrives; its answer is stored before its end is sent.

        An answer that breaks off, or has an event that cannot be read, is not stored: the client's
        next request shows what it made of it.
        """
        answer, reader, is_read = turn.api.answer(), EventReader(), False
        async with contextlib.aclosing(response):
            async for piece in response.aiter_raw():
                if not is_read:
                    is_read = True
                    with _failure_logged():
                        for event in reader.feed(piece):
                            answer.feed(event)
                        is_read = bool(answer.objects)
                        if is_read:
                            await self._requests.keep(turn, answer.objects)
                yield piece


async def _relay(response: httpx2.Response) -> AsyncIterator[bytes]:
    async with contextlib.aclosing(response):
        async for piece in response.aiter_raw():
            yield piece


@contextlib.contextmanager
def _failure_logged() -> Iterator[None]:
    """Log what goes wrong with an answer's copy: the client gets the answer all the same."""
    try:
        yield
    except Exception as error:  # noqa: BLE001 - the client gets its answer all the same
        _log.warning("an answer was not stored: %s: %s", type(error).__name__, error)


def _open_client(seconds: float) -> httpx2.AsyncClient:
    timeout = httpx2.Timeout(seconds, connect=_CONNECT_SECONDS)
    return httpx2.AsyncClient(timeout=timeout, limits=_KEPT, follow_redirects=False)


def _headers_to_send(request: Request, credential: Credential | None) -> list[tuple[str, str]]:
    """Return the client's headers for the provider, without keys of ours."""
    kept = [
        (name, value)
        for name, value in request.headers.items()
        if name not in _NOT_SENT and not (name in CREDENTIALS and token_in(value))
    ]
    if credential is not None and not any(name in CREDENTIALS for name, _ in kept):
        kept.append(credential)
    return [*kept, ("accept-encoding", "identity")]


def _with_headers(response: Response, received: httpx2.Response, prepared: Prepared) -> Response:
    """Give a response the provider's headers, and those that say if it had its memory."""
    about = {MEMORY: " ".join(f"off; {prepared.reason}".split())[:300]}
    if prepared.turn is not None:
        about = {MEMORY: "on", CONVERSATION: prepared.turn.tape}
    theirs = received.headers.raw
    kept = [(name, value) for name, value in theirs if name.decode().lower() not in _NOT_RETURNED]
    own = [
        (name.encode(), value.encode("ascii", "backslashreplace")) for name, value in about.items()
    ]
    response.raw_headers = [*kept, *own]
    return response


def _unreachable(url: str, error: Exception) -> JSONResponse:
    message = f"{url} did not answer: {type(error).__name__}: {error}"
    problem = {"type": "upstream_unreachable", "message": message}
    return JSONResponse({"type": "error", "error": problem}, 502)
