"""The HTTP client that providers are reached with."""

import ssl
from functools import cache
from typing import TypeVar

import httpx2

from remanence.providers.bounded_client import BoundedClient

Client = TypeVar("Client", bound=BoundedClient)

OLLAMA_URL = "http://localhost:11434/v1"
"""Where Ollama listens by default."""

_CONNECT_SECONDS = 10.0

# A proxy set in the environment is for other machines. None: connect without one.
_DIRECT: dict[str, httpx2.AsyncBaseTransport | None] = {
    "all://localhost": None,
    "all://127.0.0.1": None,
    "all://[::1]": None,
}


def http_client(timeout_seconds: float) -> httpx2.AsyncClient:
    """A client whose requests take at most so long; whoever makes it closes it."""
    return client_of_kind(BoundedClient, timeout_seconds)


def client_of_kind(kind: type[Client], timeout_seconds: float) -> Client:
    """The same, of a class derived from httpx's."""
    connect = min(timeout_seconds, _CONNECT_SECONDS)
    client = kind(
        timeout=httpx2.Timeout(timeout_seconds, connect=connect), verify=_tls(), mounts=_DIRECT
    )
    client.request_seconds = timeout_seconds
    return client


@cache
def _tls() -> ssl.SSLContext:
    """The certificates of this machine: reading them takes longer than opening a connection."""
    return httpx2.create_ssl_context()
