"""Rate limits on requests."""

import asyncio
import math
from collections import Counter
from typing import Final

from starlette.responses import Response
from starlette.types import ASGIApp, Receive, Scope, Send

from remanence.recent import Recent
from remanence.server.open_files import max_connections
from remanence.server.paths import path_of
from remanence.server.problems import problem

PROBES: Final = frozenset({"/healthz", "/readyz"})
"""Paths without a limit, as a supervisor restarts a process whose probes are refused."""
_MAX_SENDERS: Final = 10_000
EVENTS: Final = "/v1/events"
MAX_STREAMS: Final = 200
"""Event streams of a sender; each reads the store twice a second."""


class Rate:
    """A limit of requests per minute and sender, with bursts of up to a minute's requests."""

    def __init__(self, per_minute: int) -> None:
        self._per_minute = per_minute
        self._left: Recent[object, tuple[float, float]] = Recent(_MAX_SENDERS)

    def take(self, sender: object) -> None:
        """Count a request of the sender; the least recent senders are forgotten."""
        left = self._left_of(sender)
        self._left[sender] = (left - 1, asyncio.get_running_loop().time())

    def refusal(self, sender: object) -> Response | None:
        """Return a 429 response if the sender has no request left, otherwise None."""
        wait_seconds = math.ceil((1 - self._left_of(sender)) * 60 / self._per_minute)
        if wait_seconds <= 0:
            return None
        detail = f"more than {self._per_minute:,} requests a minute: wait {wait_seconds} s"
        headers = {"retry-after": str(wait_seconds)}
        return problem(429, "too_many_requests", detail, headers=headers)

    def _left_of(self, sender: object) -> float:
        now = asyncio.get_running_loop().time()
        left, at = self._left.get(sender, (float(self._per_minute), now))
        return min(self._per_minute, left + (now - at) * self._per_minute / 60)


class RateLimit:
    """Rejects requests beyond a rate per key or caller, or else per address, except for probes.

    Each process counts separately.
    """

    def __init__(self, app: ASGIApp, *, per_minute: int) -> None:
        self._app = app
        self._rate = Rate(per_minute)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if path_of(scope) in PROBES:
            await self._app(scope, receive, send)
            return
        sender = _sender(scope)
        if refusal := self._rate.refusal(sender):
            await refusal(scope, receive, send)
            return
        self._rate.take(sender)
        await self._app(scope, receive, send)


class StreamLimit:
    """Rejects event streams beyond a number per key or caller, or else per address.

    They last as long as the client likes: a sender has at most a quarter of the connections, and
    all senders together half of them.
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app
        self._open: Counter[object] = Counter()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if path_of(scope) != EVENTS:
            await self._app(scope, receive, send)
            return
        sender = _sender(scope)
        if (refusal := self._refusal(sender)) is not None:
            await problem(429, "too_many_requests", refusal)(scope, receive, send)
            return
        self._open[sender] += 1
        try:
            await self._app(scope, receive, send)
        finally:
            self._open[sender] -= 1
            if not self._open[sender]:
                del self._open[sender]

    def _refusal(self, sender: object) -> str | None:
        connections = max_connections()
        if self._open[sender] >= (most := min(MAX_STREAMS, connections // 4)):
            return (
                f"too many open event streams, at most {most} of a client: close some, or follow all "
                "conversations in one"
            )
        if self._open.total() >= (most := connections // 2):
            return (
                f"other clients have all {most:,} event streams of the service: try later, or raise its "
                "limit of open files"
            )
        return None


def address_of(scope: Scope) -> str:
    """Return the client address of a request."""
    host: str = (scope.get("client") or ("",))[0]
    return host


def _sender(scope: Scope) -> object:
    caller = scope.get("state", {}).get("caller")
    if caller is None:
        return address_of(scope)
    return caller.tenant, caller.name, caller.key_id
