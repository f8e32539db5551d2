"""Limits on the size of a request body and on the time it takes to arrive."""

import asyncio
from typing import Final

from starlette.datastructures import Headers
from starlette.requests import ClientDisconnect
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from remanence.server.problems import problem

MAX_BODY_BYTES: Final = 32 * 1024 * 1024
"""Twice the size limit of a message, as JSON is longer than its text."""

BODY_SECONDS: Final = 60.0


class BodyLimit:
    """Rejects a body that is too large, or that does not arrive in time."""

    def __init__(
        self,
        app: ASGIApp,
        max_bytes: int = MAX_BODY_BYTES,
        seconds: float = BODY_SECONDS,
    ) -> None:
        self._app = app
        self._max_bytes = max_bytes
        self._seconds = seconds

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        length = Headers(scope=scope).get("content-length", "0")
        announced = int(length) if length.isdecimal() else 0
        try:
            async with asyncio.timeout(self._seconds):
                body = await self._read(receive, announced)
        except ClientDisconnect:
            return
        except TimeoutError:
            detail = f"the body did not arrive within {self._seconds:g} s: send it at once"
            await _refusal(408, "body_timeout", detail)(scope, receive, send)
            return
        if body is None:
            detail = (
                f"the body has more than {self._max_bytes:,} bytes: store large content "
                "elsewhere and send a reference to it"
            )
            await _refusal(413, "body_too_large", detail)(scope, receive, send)
            return
        await self._app(scope, _whole(body, receive), send)

    async def _read(self, receive: Receive, announced: int) -> bytes | None:
        """Read the body; None if it is too large.

        Up to the limit again is read and discarded, as a client sees no response while it sends.
        """
        body = bytearray()
        size, is_large, more = 0, announced > self._max_bytes, True
        while more and size <= 2 * self._max_bytes:
            message = await receive()
            if message["type"] == "http.disconnect":
                raise ClientDisconnect
            chunk = message.get("body", b"")
            size += len(chunk)
            is_large = is_large or size > self._max_bytes
            if is_large:
                body.clear()
            else:
                body += chunk
            more = message.get("more_body", False)
        return None if is_large else bytes(body)


def _refusal(status: int, code: str, detail: str) -> JSONResponse:
    return problem(status, code, detail, headers={"connection": "close"})


def _whole(body: bytes, receive: Receive) -> Receive:
    """Return a `receive` with the whole body first, then the server's own messages."""
    given = False

    async def receive_whole() -> Message:
        nonlocal given
        if given:
            return await receive()
        given = True
        return {"type": "http.request", "body": body, "more_body": False}

    return receive_whole
