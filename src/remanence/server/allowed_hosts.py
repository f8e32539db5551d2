"""Host names that a server accepts: by default only those of this machine."""

from collections.abc import Collection
from typing import Final

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Receive, Scope, Send

from remanence.server.problems import problem

LOCAL_HOSTS: Final = frozenset({"127.0.0.1", "localhost", "[::1]"})


class KnownHosts:
    """Rejects requests for unknown host names, such as those of a DNS rebinding attack."""

    def __init__(self, app: ASGIApp, *, hosts: Collection[str]) -> None:
        self._app = app
        self._hosts = frozenset(host.lower() for host in hosts)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http" and not self._knows(Headers(scope=scope).get("host", "")):
            detail = (
                f"this server answers to {', '.join(sorted(self._hosts))} alone: name others with "
                "--allowed-host, or in a program of your own with allowed_hosts of create_app"
            )
            await problem(421, "not_local", detail)(scope, receive, send)
            return
        await self._app(scope, receive, send)

    def _knows(self, host: str) -> bool:
        name, _, port = host.lower().rpartition(":")
        return (name if port.isdigit() else host.lower()) in self._hosts
