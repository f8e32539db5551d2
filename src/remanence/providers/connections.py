"""HTTP clients that stay open between calls."""

from collections.abc import Callable
from types import TracebackType
from typing import TYPE_CHECKING, Self

if TYPE_CHECKING:
    from httpx2 import AsyncClient


class Connections:
    """A client for each kind and timeout, opened when first used. Belongs to one event loop."""

    def __init__(self) -> None:
        self._clients: dict[tuple[Callable[[float], AsyncClient], float], AsyncClient] = {}

    def client(
        self, timeout_seconds: float, open_client: "Callable[[float], AsyncClient]"
    ) -> "AsyncClient":
        """Return the client for a timeout; callers leave it open."""
        kind = (open_client, timeout_seconds)
        if kind not in self._clients:
            self._clients[kind] = open_client(timeout_seconds)
        return self._clients[kind]

    async def aclose(self) -> None:
        """Close the clients."""
        while self._clients:
            _, client = self._clients.popitem()
            await client.aclose()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.aclose()
