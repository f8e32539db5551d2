"""Access to the service: who calls, for which tenant, and what the caller may do."""

import re
from collections.abc import Awaitable, Callable
from typing import Final, NamedTuple, TypeAlias

from starlette.requests import HTTPConnection
from starlette.types import ASGIApp, Receive, Scope as ASGIScope, Send

from remanence.api_keys import APIKeys
from remanence.server.problems import problem
from remanence.types import Scope

KEY_HEADER: Final = "x-remanence-key"
KEY_PREFIX: Final = "rk_"

_OPEN: Final = frozenset({"/healthz", "/readyz", "/openapi.json"})
_READS: Final = re.compile(r".*/(context|recall)")
_ERASES: Final = re.compile(r".*/forget|/v1/users/.*")


class Caller(NamedTuple):
    """A client that was recognised: its tenant, and what it may do there."""

    name: str
    tenant: str
    scopes: tuple[Scope, ...]


Authenticate: TypeAlias = Callable[[HTTPConnection], Awaitable[Caller | None]]
"""Returns the caller of a request, or None to reject it with status 401."""


def by_key(keys: APIKeys) -> Authenticate:
    """Return the authentication by keys of a memory.

    A key is the value of `X-Remanence-Key`, a bearer token, or the value of `X-Api-Key`.
    """

    async def authenticate(request: HTTPConnection) -> Caller | None:
        bearer = request.headers.get("authorization", "")
        tokens = (
            request.headers.get(KEY_HEADER, ""),
            bearer[7:] if bearer[:7].lower() == "bearer " else "",
            request.headers.get("x-api-key", ""),
        )
        ours = [token for token in tokens if token.startswith(KEY_PREFIX)]
        key = await keys.verify(ours[0]) if ours else None
        return None if key is None else Caller(key.name, key.tenant, key.scopes)

    return authenticate


class Access:
    """Rejects requests of unknown callers, and those that a caller may not make.

    Health and the OpenAPI document are open to all.
    """

    def __init__(self, app: ASGIApp, *, authenticate: Authenticate) -> None:
        self._app = app
        self._authenticate = authenticate

    async def __call__(self, scope: ASGIScope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or scope["path"] in _OPEN:
            await self._app(scope, receive, send)
            return
        caller = await self._authenticate(HTTPConnection(scope))
        if caller is None:
            detail = f"no valid key: send one in {KEY_HEADER}, or as a bearer token"
            headers = {"www-authenticate": "Bearer"}
            await problem(401, "no_key", detail, headers=headers)(scope, receive, send)
            return
        needed = _scope_of(scope["method"], scope["path"])
        if needed not in caller.scopes:
            detail = f"this key may not {needed}: use one with the scope {needed!r}"
            await problem(403, "not_allowed", detail)(scope, receive, send)
            return
        scope.setdefault("state", {})["caller"] = caller
        await self._app(scope, receive, send)


def _scope_of(method: str, path: str) -> Scope:
    if method == "DELETE" or _ERASES.fullmatch(path):
        return "erase"
    return "read" if method in ("GET", "HEAD") or _READS.fullmatch(path) else "write"
