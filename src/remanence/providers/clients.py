"""The HTTP client for providers."""

import ssl
from functools import cache

import httpx2

from remanence.providers.bounded_client import BoundedClient

_CONNECT_SECONDS = 10.0

# None connects directly: a proxy from the environment is for other machines.
_DIRECT: dict[str, httpx2.AsyncBaseTransport | None] = {
    "all://localhost": None,
    "all://127.0.0.1": None,
    "all://[::1]": None,
}


def http_client(timeout_seconds: float) -> httpx2.AsyncClient:
    """Return a client with a timeout for whole requests; the caller closes it."""
    connect = min(timeout_seconds, _CONNECT_SECONDS)
    client = BoundedClient(
        timeout=httpx2.Timeout(timeout_seconds, connect=connect), verify=_tls(), mounts=_DIRECT
    )
    client.request_seconds = timeout_seconds
    return client


@cache
def _tls() -> ssl.SSLContext:
    """Load the certificates once: that takes longer than opening a connection."""
    return httpx2.create_ssl_context()
