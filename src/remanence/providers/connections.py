"""HTTP clients that stay open between calls."""

from collections.abc import Callable
from contextlib import AsyncExitStack
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from httpx2 import AsyncClient


class Connections(AsyncExitStack):
    """A pool with one client per timeout, opened on first use. Belongs to one event loop."""

    def __init__(self) -> None:
        super().__init__()
        self._clients: dict[float, AsyncClient] = {}

    def client(
        self, timeout_seconds: float, open_client: "Callable[[float], AsyncClient]"
    ) -> "AsyncClient":
        """Return the client for a timeout; callers must not close it."""
        if timeout_seconds not in self._clients:
            client = self._clients[timeout_seconds] = open_client(timeout_seconds)
            self.push_async_callback(client.aclose)
            self.callback(self._clients.pop, timeout_seconds)
        return self._clients[timeout_seconds]
