"""The HTTP client for providers."""

import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import cache

import httpx2

from remanence.providers.bounded_client import BoundedClient
from remanence.providers.options import ModelOptions

_CONNECT_SECONDS = 10.0
_KEPT = httpx2.Limits(max_keepalive_connections=20, keepalive_expiry=60.0)

# None connects directly: a proxy from the environment is for other machines.
_DIRECT: dict[str, httpx2.AsyncBaseTransport | None] = {
    "all://localhost": None,
    "all://127.0.0.1": None,
    "all://[::1]": None,
}


@asynccontextmanager
async def call_client(options: ModelOptions) -> AsyncIterator[httpx2.AsyncClient]:
    """Yield the client for a call: one of the kept ones, or one that is closed after the call."""
    if options.connections is not None:
        yield options.connections.client(options.call_seconds, http_client)
        return
    async with http_client(options.call_seconds) as client:
        yield client


def http_client(timeout_seconds: float) -> httpx2.AsyncClient:
    """Return a client with a timeout for whole requests; the caller closes it."""
    connect = min(timeout_seconds, _CONNECT_SECONDS)
    client = BoundedClient(
        timeout=httpx2.Timeout(timeout_seconds, connect=connect),
        verify=_tls(),
        mounts=_DIRECT,
        limits=_KEPT,
    )
    client.request_seconds = timeout_seconds
    return client


@cache
def _tls() -> ssl.SSLContext:
    """Load the certificates once: that takes longer than opening a connection."""
    return httpx2.create_ssl_context()
