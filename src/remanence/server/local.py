"""Requests of this machine alone."""

from typing import Final

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Receive, Scope, Send

from remanence.server.problems import problem

_NAMES: Final = frozenset({"127.0.0.1", "localhost", "[::1]"})


class LocalOnly:
    """Refuses a request that was sent to another name, as by a page that rebinds its own to us."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http" and not _is_local(Headers(scope=scope).get("host", "")):
            detail = "this server answers to 127.0.0.1 and localhost alone"
            await problem(421, "not_local", detail)(scope, receive, send)
            return
        await self._app(scope, receive, send)


def _is_local(host: str) -> bool:
    name, _, port = host.rpartition(":")
    return (name if port.isdigit() else host) in _NAMES
