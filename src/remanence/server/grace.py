"""The grace period of open requests at shutdown."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Final, TypeVar

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from remanence.background import start_beside
from remanence.errors import Closed
from remanence.server.problems import response_to

T = TypeVar("T")

GRACE_SECONDS: Final = 4.0
"""Shorter than uvicorn's own timeout, after which it cancels requests without a response."""

_ENDING: Final = "the server is shutting down: send the request again"


class GracePeriod:
    """A context manager for waits that end some seconds after *ending* is set."""

    def __init__(self, ending: asyncio.Event, seconds: float) -> None:
        self._ending = ending
        self._seconds = seconds
        self._deadline: float | None = None
        self._limit: asyncio.Timeout | None = None

    async def __aenter__(self) -> "GracePeriod":
        self._watch = start_beside(self._begin(), name="remanence-grace")
        return self

    async def __aexit__(self, *_: object) -> None:
        self.lift()

    def lift(self) -> None:
        """Remove the limit, also for a wait in progress."""
        self._watch.cancel()
        self._set(None)

    async def wait_for(self, work: Awaitable[T]) -> T:
        """Return the result of *work*; cancel it and raise `Closed` when the grace period ends.

        Only one wait at a time is possible.
        """
        self._limit = limit = asyncio.timeout_at(self._deadline)
        try:
            async with limit:
                return await work
        except TimeoutError as error:
            if limit.expired():
                raise Closed(_ENDING) from error
            raise
        finally:
            self._limit = None

    async def _begin(self) -> None:
        await self._ending.wait()
        self._set(asyncio.get_running_loop().time() + self._seconds)

    def _set(self, deadline: float | None) -> None:
        self._deadline = deadline
        if self._limit is not None:
            self._limit.reschedule(deadline)


class RequestGrace:
    """Responds with status 503 to requests that have no response when the grace period ends.

    Responses that have begun end by themselves.
    """

    def __init__(self, app: ASGIApp, *, grace: Callable[[], GracePeriod]) -> None:
        self._app = app
        self._grace = grace

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async with self._grace() as grace:

            async def send_without_limit(message: Message) -> None:
                if message["type"] == "http.response.start":
                    grace.lift()
                await send(message)

            try:
                await grace.wait_for(self._app(scope, receive, send_without_limit))
            except Closed as error:
                await response_to(error)(scope, receive, send)
