"""A log line for each request, and a request id in every line logged during it."""

import asyncio
import re
import uuid
from typing import Final

from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from remanence import telemetry

HEADER: Final = "x-request-id"
_GIVEN: Final = re.compile(r"[\w.:-]{1,64}", re.ASCII)


class RequestLog:
    """Logs method, path, status and time of each request with its id.

    The id comes from the header `X-Request-Id`, or is new; the response repeats it. Queries are
    not logged: they may name a user.
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        given = Headers(scope=scope).get(HEADER, "")
        name = given if _GIVEN.fullmatch(given) else uuid.uuid4().hex[:12]
        status = 0  # the client left before a response

        async def send_with_id(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                MutableHeaders(scope=message)[HEADER] = name
            await send(message)

        loop = asyncio.get_running_loop()
        started = loop.time()
        with telemetry.request(name):
            try:
                await self._app(scope, receive, send_with_id)
            finally:
                telemetry.request_ended(
                    scope["method"], scope["path"], status, loop.time() - started
                )
