"""Authentication and authorization of requests to the service."""

import re
from collections.abc import Awaitable, Callable
from typing import Final, NamedTuple, TypeAlias

from starlette.datastructures import Headers
from starlette.requests import HTTPConnection
from starlette.responses import Response
from starlette.types import ASGIApp, Receive, Scope as ASGIScope, Send

from remanence.api_keys import KEY_PREFIX, APIKeys
from remanence.errors import RemanenceError
from remanence.recent import Recent
from remanence.server.paths import PROXIES, path_of
from remanence.server.problems import problem, response_to
from remanence.server.rate_limit import PROBES, Rate, address_of
from remanence.types import Scope
from remanence.wire.json_value import JsonObject

KEY_HEADER: Final = "x-remanence-key"
KEY_HEADERS: Final = (KEY_HEADER, "authorization", "x-api-key")
_CREDENTIALS: Final = (*KEY_HEADERS, "cookie")
ADDRESS_FACTOR: Final = 10
"""How many more failed attempts an address may make than one set of credentials."""
_MAX_ACCEPTED: Final = 10_000

_OPEN: Final = frozenset({"/", "/openapi.json"}) | PROBES
_BEARER: Final = re.compile(r"^bearer +", re.IGNORECASE)


class Caller(NamedTuple):
    """An authenticated client: its tenant, its scopes, and its key if it has one."""

    name: str
    tenant: str
    scopes: tuple[Scope, ...]
    key_id: str | None = None


Authenticate: TypeAlias = Callable[[HTTPConnection], Awaitable[Caller | None]]
"""Returns the caller of a request, or None to reject the request with status 401."""


class KeyAuthentication:
    """Authentication by API keys of a memory; the OpenAPI document describes it."""

    def __init__(self, keys: APIKeys) -> None:
        self._keys = keys

    async def __call__(self, request: HTTPConnection) -> Caller | None:
        values = (request.headers.get(name, "") for name in KEY_HEADERS)
        token = next(filter(None, map(token_in, values)), None)
        key = None if token is None else await self._keys.verify(token)
        return None if key is None else Caller(key.name, key.tenant, key.scopes, key.id)


def by_key(keys: APIKeys) -> Authenticate:
    """Return an authentication by API keys of a memory.

    The key may be in `X-Remanence-Key`, in `X-Api-Key`, or a bearer token.
    """
    return KeyAuthentication(keys)


def add_security(documentation: JsonObject) -> None:
    """Describe the key headers, except for public routes."""
    documentation["components"]["securitySchemes"] = {
        "key": {"type": "apiKey", "in": "header", "name": KEY_HEADER},
        "bearer": {"type": "http", "scheme": "bearer"},
    }
    documentation["security"] = [{"key": []}, {"bearer": []}]
    for path in _OPEN & documentation["paths"].keys():
        for operation in documentation["paths"][path].values():
            operation["security"] = []


def without_scheme(value: str) -> str:
    """Return the key in the value of a header, with or without the word `Bearer`."""
    return _BEARER.sub("", value)


def token_in(value: str) -> str | None:
    """Return the key in the value of a header if it is one of ours."""
    token = without_scheme(value)
    return token if token.startswith(KEY_PREFIX) else None


class _FailedAttempts:
    """Limits failed attempts: per address and credentials, and ten times as many per address.

    Credentials that lately succeeded from an address are still accepted there beyond the second
    limit, so that clients behind the same proxy do not lock each other out.
    """

    def __init__(self, per_minute: int) -> None:
        self._same = Rate(per_minute)
        self._any = Rate(per_minute * ADDRESS_FACTOR)
        self._accepted: Recent[int, None] = Recent(_MAX_ACCEPTED)

    def refusal(self, scope: ASGIScope) -> Response | None:
        """Return a response if the request is to be rejected without reading its credentials."""
        sender = _sender(scope)
        if (refusal := self._same.refusal(sender)) or sender in self._accepted:
            return refusal
        return self._any.refusal(address_of(scope))

    def record(self, scope: ASGIScope, caller: Caller | None) -> None:
        """Record whether a request's credentials were accepted."""
        sender = _sender(scope)
        if caller is not None:
            self._accepted[sender] = None
            return
        self._accepted.pop(sender, None)
        self._same.take(sender)
        self._any.take(address_of(scope))


class Access:
    """Rejects requests of unknown callers, and requests that a caller's scopes do not allow.

    The dashboard, health and the OpenAPI document are public. After *per_minute* failed attempts in
    a minute, the same credentials from the same address are rejected unchecked; after ten times as
    many, so are all new credentials from that address.
    """

    def __init__(
        self, app: ASGIApp, *, authenticate: Authenticate, per_minute: int | None = None
    ) -> None:
        self._app = app
        self._authenticate = authenticate
        self._failed_attempts = None if per_minute is None else _FailedAttempts(per_minute)

    async def __call__(self, scope: ASGIScope, receive: Receive, send: Send) -> None:
        if path_of(scope) in _OPEN:
            await self._app(scope, receive, send)
            return
        if self._failed_attempts is not None and (refusal := self._failed_attempts.refusal(scope)):
            await refusal(scope, receive, send)
            return
        try:
            caller = await self._authenticate(HTTPConnection(scope))
        except RemanenceError as error:  # such as an outage of the database with the keys
            await response_to(error)(scope, receive, send)
            return
        if self._failed_attempts is not None:
            self._failed_attempts.record(scope, caller)
        if caller is None:
            detail = f"no valid key: send one in {KEY_HEADER} or x-api-key, or as a bearer token"
            headers = {"www-authenticate": "Bearer"}
            await problem(401, "no_key", detail, headers=headers)(scope, receive, send)
            return
        scope.setdefault("state", {})["caller"] = caller
        needed = scope_of(scope["method"], path_of(scope))
        if needed not in caller.scopes:
            detail = f"this request needs a key with the scope {needed!r}: use one that has it"
            await problem(403, "not_allowed", detail)(scope, receive, send)
            return
        scope["state"]["authenticate"] = self._authenticate
        await self._app(scope, receive, send)


def _sender(scope: ASGIScope) -> int:
    """Return a hash of a request's address and credentials."""
    return hash((address_of(scope), *map(Headers(scope=scope).get, _CREDENTIALS)))


def scope_of(method: str, path: str) -> Scope:
    """Return the scope that a request needs."""
    if path == "/metrics":
        return "metrics"
    if method == "DELETE" or path.endswith("/forget") or path.startswith("/v1/users/"):
        return "erase"
    if path.startswith(PROXIES):
        return "write"
    is_read = method in ("GET", "HEAD") or path.endswith(("/context", "/recall"))
    return "read" if is_read else "write"
