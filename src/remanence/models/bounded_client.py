"""An HTTP client whose requests end: each has a deadline and a bound on the size of its answer."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import httpx2

MAX_ANSWER_BYTES = 16 * 1024 * 1024
"""The longest answers of today's models have half a megabyte of text, streamed in small events."""


class AnswerTooLarge(httpx2.TransportError):
    """An answer has more bytes than a client takes."""


def size_error(error: BaseException | None) -> AnswerTooLarge | None:
    """The `AnswerTooLarge` that led to *error*, whatever a provider's client made of it."""
    while error is not None and not isinstance(error, AnswerTooLarge):
        error = error.__cause__ or error.__context__
    return error


class BoundedClient(httpx2.AsyncClient):
    """Fails a request that is not answered in full within `request_seconds`, or too large.

    The timeouts of httpx are those of single reads: a server that sends a byte a second never
    meets them.
    """

    request_seconds: float
    max_answer_bytes: int = MAX_ANSWER_BYTES

    async def send(
        self, request: httpx2.Request, *, stream: bool = False, **options: Any
    ) -> httpx2.Response:  # the options are httpx's
        deadline = asyncio.get_running_loop().time() + self.request_seconds
        request.headers["accept-encoding"] = "identity"  # a compressed answer hides its size
        try:
            async with asyncio.timeout_at(deadline):
                response = await super().send(request, stream=True, **options)
        except TimeoutError as error:
            raise _too_late(self.request_seconds, request) from error
        assert isinstance(response.stream, httpx2.AsyncByteStream)
        response.stream = _BoundedStream(response.stream, self, deadline, request)
        if not stream:
            try:
                await response.aread()
            finally:
                await response.aclose()
        return response


class _BoundedStream(httpx2.AsyncByteStream):
    """The bytes of an answer, up to the bounds of its client."""

    def __init__(
        self,
        stream: httpx2.AsyncByteStream,
        client: BoundedClient,
        deadline: float,
        request: httpx2.Request,
    ) -> None:
        self._stream = stream
        self._client = client
        self._deadline = deadline
        self._request = request

    async def __aiter__(self) -> AsyncIterator[bytes]:
        size, chunks = 0, aiter(self._stream)
        while True:
            try:
                async with asyncio.timeout_at(self._deadline):
                    chunk = await anext(chunks, None)
            except TimeoutError as error:
                raise _too_late(self._client.request_seconds, self._request) from error
            if chunk is None:
                return
            size += len(chunk)
            if size > self._client.max_answer_bytes:
                raise AnswerTooLarge(
                    f"the answer has more than {self._client.max_answer_bytes:,} bytes",
                    request=self._request,
                )
            yield chunk

    async def aclose(self) -> None:
        await self._stream.aclose()


def _too_late(seconds: float, request: httpx2.Request) -> httpx2.ReadTimeout:
    return httpx2.ReadTimeout(f"no whole answer within {seconds:g} s", request=request)
