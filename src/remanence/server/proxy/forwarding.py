"""Requests sent on to a provider, and its responses sent back as they arrive."""

import contextlib
import json
import logging
from collections.abc import AsyncIterator, Iterator, Mapping
from typing import Final, TypeAlias

import httpx2
from fastapi import Request, Response
from fastapi.responses import JSONResponse, StreamingResponse

from remanence.errors import RemanenceError
from remanence.memory import Memory
from remanence.server.access import KEY_HEADER, KEY_PREFIX, Caller
from remanence.server.proxy.api import ProxiedAPI
from remanence.server.proxy.events import EventReader
from remanence.server.proxy.naming import CONVERSATION, CREDENTIALS, MEMORY, USER
from remanence.server.proxy.requests import Prepared, Requests

_log = logging.getLogger(__name__)

OPENAI: Final = "https://api.openai.com"
ANTHROPIC: Final = "https://api.anthropic.com"

_READ_SECONDS: Final = 600.0
_CONNECT_SECONDS: Final = 10.0
_KEPT: Final = httpx2.Limits(max_connections=None, max_keepalive_connections=100)
_HOP: Final = frozenset(
    ("connection", "keep-alive", "proxy-authenticate", "proxy-authorization", "proxy-connection")
) | frozenset(("te", "trailer", "transfer-encoding", "upgrade", "content-length"))
_NOT_SENT: Final = _HOP | {
    "host",
    "accept-encoding",
    "expect",
    CONVERSATION,
    USER,
    MEMORY,
    KEY_HEADER,
}


Credential: TypeAlias = tuple[str, str]
"""A header with the server's own key for a provider."""


def bearer(key: str | None) -> Credential | None:
    """Return the header of a key for OpenAI."""
    return ("authorization", f"Bearer {key}") if key else None


def api_key(key: str | None) -> Credential | None:
    """Return the header of a key for Anthropic."""
    return ("x-api-key", key) if key else None


class Forwarder:
    """Sends requests to the provider at *url*, those of conversations with their memory.

    A client's own credential is sent on; *credential* is for those that send none but ours.
    """

    def __init__(self, memory: Memory, url: str, credential: Credential | None = None) -> None:
        self._memory = memory
        self._credential = credential
        self._url = url.rstrip("/")
        self._requests = Requests(memory)

    async def forward(self, request: Request, path: str, api: ProxiedAPI | None = None) -> Response:
        """Send a request on; with *api* it is a turn of a conversation."""
        prepared = Prepared(content=await request.body(), reason="not a turn of a conversation")
        if api is not None:
            caller: Caller | None = getattr(request.state, "caller", None)
            tenant = caller.tenant if caller else None
            prepared = await self._requests.prepare(
                api, request.headers, prepared.content, tenant=tenant
            )
        client = self._memory.connections.client(_READ_SECONDS, _open_client)
        sent = client.build_request(
            request.method,
            f"{self._url}/{path}",
            params=request.url.query or None,
            headers=_headers_to_send(request, self._credential),
            content=prepared.content,
        )
        try:
            response = await client.send(sent, stream=True)
        except httpx2.HTTPError as error:
            return _unreachable(self._url, error)
        headers = {**_headers_to_return(response), **_about(prepared)}
        if api is None or not prepared.tape or response.status_code != 200:
            relayed = _relay(response)
        elif "text/event-stream" in response.headers.get("content-type", ""):
            relayed = self._relay_events(api, prepared, response)
        else:
            return await self._whole(api, prepared, response, headers)
        return StreamingResponse(relayed, response.status_code, headers)

    async def _whole(
        self,
        api: ProxiedAPI,
        prepared: Prepared,
        response: httpx2.Response,
        headers: Mapping[str, str],
    ) -> Response:
        """Return a response without a stream, after its answer was stored."""
        try:
            async with contextlib.aclosing(response):
                content = b"".join([piece async for piece in response.aiter_raw()])
        except httpx2.HTTPError as error:
            return _unreachable(self._url, error)
        answer = api.answer()
        with _failure_logged():
            answer.take(json.loads(content))
            if answer.objects:
                await self._requests.keep(api, prepared, answer.objects)
        return Response(content, response.status_code, dict(headers))

    async def _relay_events(
        self, api: ProxiedAPI, prepared: Prepared, response: httpx2.Response
    ) -> AsyncIterator[bytes]:
        """Yield a stream as it arrives; its answer is stored before its end is sent.

        An answer that breaks off is not stored: the client's next request shows what it made of it.
        """
        answer, reader, is_kept = api.answer(), EventReader(), False
        async with contextlib.aclosing(response):
            async for piece in response.aiter_raw():
                if not is_kept:
                    with _failure_logged():
                        for event in reader.feed(piece):
                            answer.feed(event)
                        if answer.objects:
                            is_kept = True
                            await self._requests.keep(api, prepared, answer.objects)
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
    except (RemanenceError, ValueError, LookupError, TypeError, AttributeError) as error:
        _log.warning("an answer was not stored: %s: %s", type(error).__name__, error)


def _open_client(seconds: float) -> httpx2.AsyncClient:
    timeout = httpx2.Timeout(seconds, connect=_CONNECT_SECONDS)
    return httpx2.AsyncClient(timeout=timeout, limits=_KEPT, follow_redirects=False)


def _headers_to_send(request: Request, credential: Credential | None) -> list[tuple[str, str]]:
    """Return the client's headers for the provider, without keys of ours."""
    kept = [
        (name, value)
        for name, value in request.headers.items()
        if name not in _NOT_SENT
        and not (name in CREDENTIALS and value.removeprefix("Bearer ").startswith(KEY_PREFIX))
    ]
    if credential is not None and not any(name in CREDENTIALS for name, _ in kept):
        kept.append(credential)
    return [*kept, ("accept-encoding", "identity")]


def _headers_to_return(response: httpx2.Response) -> dict[str, str]:
    return {name: value for name, value in response.headers.items() if name not in _HOP}


def _about(prepared: Prepared) -> dict[str, str]:
    """Return headers that say if the request had its memory, and why not."""
    if not prepared.tape:
        reason = prepared.reason.encode("ascii", "backslashreplace").decode()
        return {MEMORY: " ".join(f"off; {reason}".split())[:300]}
    return {MEMORY: "on", CONVERSATION: prepared.tape}


def _unreachable(url: str, error: Exception) -> JSONResponse:
    message = f"{url} did not answer: {type(error).__name__}: {error}"
    problem = {"type": "upstream_unreachable", "message": message}
    return JSONResponse({"type": "error", "error": problem}, 502)
