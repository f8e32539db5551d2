"""HTTP clients that stay open between calls."""

from collections.abc import Callable
from contextlib import AsyncExitStack
from typing import Any, Protocol, TypeVar


class Client(Protocol):
    """An HTTP client, such as `httpx2.AsyncClient`, which is slow to import."""

    async def aclose(self) -> None: ...


ClientT = TypeVar("ClientT", bound=Client)


class Connections(AsyncExitStack):
    """A pool with one client per timeout, opened on first use. Belongs to one event loop."""

    def __init__(self) -> None:
        super().__init__()
        self._clients: dict[float, Any] = {}  # all are of the caller's kind

    def client(self, timeout_seconds: float, open_client: Callable[[float], ClientT]) -> ClientT:
        """Return the client for a timeout; callers must not close it."""
        if timeout_seconds not in self._clients:
            opened = self._clients[timeout_seconds] = open_client(timeout_seconds)
            self.push_async_callback(opened.aclose)
            self.callback(self._clients.pop, timeout_seconds)
        client: ClientT = self._clients[timeout_seconds]
        return client
