"""The audit log: who read, exported or erased what, as a line of JSON per request."""

import json
from contextvars import ContextVar
from typing import Any, Final
from urllib.parse import unquote

from starlette.requests import HTTPConnection
from starlette.types import ASGIApp, Receive, Scope, Send

from remanence.clock import Clock
from remanence.runtime import DEFAULT_TENANT
from remanence.server.access import Caller, scope_of
from remanence.server.paths import path_of
from remanence.telemetry.logs import audit_logger
from remanence.telemetry.requests import Request
from remanence.types import ConversationRef

_handled: Final[ContextVar[tuple[Clock, Scope] | None]] = ContextVar("_handled", default=None)


class Audit:
    """Logs each request that reads, exports or erases data, with its caller and status.

    This includes rejected requests; status 0 means that the client disconnected. Lines name tenants,
    users and conversations, but contain no queries, texts or keys.
    """

    def __init__(self, app: ASGIApp, *, clock: Clock) -> None:
        self._app = app
        self._clock = clock

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        request: Request = scope["state"]["request"]  # set by RequestLog
        token = _handled.set((self._clock, scope))
        try:
            await self._app(scope, receive, send)
        except Exception:
            # Starlette's outermost middleware responds with 500.
            request.status = request.status or 500
            raise
        finally:
            _handled.reset(token)
            if (action := _action_of(scope)) is not None:
                _log(self._clock, scope, action, status=request.status)


def log_tool_erasure(tool: str, *, ref: ConversationRef, user: str | None, status: int) -> None:
    """Log an erasure by a tool call of a model within the current request."""
    if (handled := _handled.get()) is None:
        return
    clock, scope = handled
    about = {"tenant": ref.tenant, "conversation": ref.id, "user": user, "tool": tool}
    _log(clock, scope, "erase", **about, status=status)


def _log(clock: Clock, scope: Scope, action: str, **more: object) -> None:
    request: Request = scope["state"]["request"]
    at = clock.now().isoformat(timespec="milliseconds")
    entry = {"at": at, "request": request.id, "action": action, **_about(scope)}
    audit_logger.info("%s", json.dumps(entry | more))


def _action_of(scope: Scope) -> str | None:
    """Return `read`, `export` or `erase`; None for other requests."""
    path = path_of(scope)
    if not path.startswith(("/v1/", "/conversations/")):
        return None
    needed = scope_of(scope["method"], path)
    if needed == "erase" and path.endswith("/export"):
        return "export"
    return needed if needed in ("read", "erase") else None


def _about(scope: Scope) -> dict[str, Any]:  # values of JSON
    """Return the caller and the target of a request, as far as they are known."""
    caller: Caller | None = scope.get("state", {}).get("caller")
    query = HTTPConnection(scope).query_params
    names = {key: unquote(name) for key, name in scope.get("path_params", {}).items()}
    is_conversation = "/conversations/" in scope["path"]
    return {
        "caller": caller.name if caller else None,
        "key": caller.key_id if caller else None,
        "tenant": caller.tenant if caller else query.get("tenant", DEFAULT_TENANT),
        "method": scope["method"],
        "path": scope["path"],
        "conversation": names.get("id") if is_conversation else query.get("conversation"),
        "user": names.get("user", query.get("user")),
    }
