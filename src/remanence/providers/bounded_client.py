"""An HTTP client with a deadline and a maximum answer size for each request."""

import asyncio
import zlib
from collections.abc import AsyncIterator, Iterator
from typing import Any, Final

import httpx2

MAX_ANSWER_BYTES = 16 * 1024 * 1024
"""Room for half a megabyte of text, the most of today's models, streamed in small events."""


_PIECE_BYTES: Final = 64 * 1024
_COMPRESSED: Final = frozenset({"gzip", "x-gzip", "deflate"})


class UnreadableBody(httpx2.TransportError):
    """The body of an answer is too large, or compressed in an unknown or broken way."""


def body_error(error: BaseException | None) -> UnreadableBody | None:
    """Return the `UnreadableBody` among the causes of *error*, if any."""
    while error is not None and not isinstance(error, UnreadableBody):
        error = error.__cause__ or error.__context__
    return error


class BoundedClient(httpx2.AsyncClient):
    """Fails a request whose answer is incomplete after `request_seconds`, or too large.

    The timeouts of httpx apply to single reads: a server that sends a byte a second never exceeds
    them. The client requests no compression; if a server compresses anyway, the maximum applies to
    the decompressed size.
    """

    request_seconds: float
    max_answer_bytes: int = MAX_ANSWER_BYTES

    async def send(
        self, request: httpx2.Request, *, stream: bool = False, **options: Any
    ) -> httpx2.Response:  # as in httpx
        deadline = asyncio.get_running_loop().time() + self.request_seconds
        request.headers["accept-encoding"] = "identity"
        try:
            async with asyncio.timeout_at(deadline):
                response = await super().send(request, stream=True, **options)
        except TimeoutError as error:
            raise _too_late(self.request_seconds, request) from error
        assert isinstance(response.stream, httpx2.AsyncByteStream)
        encoding = response.headers.pop("content-encoding", "identity").strip().lower()
        response.stream = _BoundedStream(response.stream, self, deadline, request, encoding)
        if not stream:
            try:
                await response.aread()
            finally:
                await response.aclose()
        return response


class _BoundedStream(httpx2.AsyncByteStream):
    """The decompressed bytes of an answer, within the limits of its client."""

    def __init__(
        self,
        stream: httpx2.AsyncByteStream,
        client: BoundedClient,
        deadline: float,
        request: httpx2.Request,
        encoding: str,
    ) -> None:
        self._stream = stream
        self._client = client
        self._deadline = deadline
        self._request = request
        self._encoding = encoding

    async def __aiter__(self) -> AsyncIterator[bytes]:
        size, chunks, decoder = 0, aiter(self._stream), self._decoder()
        while True:
            try:
                async with asyncio.timeout_at(self._deadline):
                    chunk = await anext(chunks, None)
            except TimeoutError as error:
                raise _too_late(self._client.request_seconds, self._request) from error
            if chunk is None:
                return
            for piece in self._decode(chunk, decoder):
                size += len(piece)
                if size > self._client.max_answer_bytes:
                    raise self._unreadable(f"has more than {self._client.max_answer_bytes:,} bytes")
                yield piece

    async def aclose(self) -> None:
        await self._stream.aclose()

    def _decoder(self) -> "zlib._Decompress | None":
        if self._encoding == "identity":
            return None
        if self._encoding not in _COMPRESSED:
            raise self._unreadable(
                f"has the content-encoding {self._encoding!r:.80}, which was not requested: have "
                "the server send it uncompressed"
            )
        return zlib.decompressobj(zlib.MAX_WBITS | 32)  # gzip and deflate by their own headers

    def _decode(self, chunk: bytes, decoder: "zlib._Decompress | None") -> Iterator[bytes]:
        """Yield a decompressed chunk in pieces, so that a small one cannot grow to gigabytes."""
        if decoder is None:
            yield chunk
            return
        try:
            while piece := decoder.decompress(chunk, _PIECE_BYTES):
                yield piece
                chunk = decoder.unconsumed_tail
        except zlib.error as error:
            raise self._unreadable(f"is not {self._encoding}: {error}") from error

    def _unreadable(self, problem: str) -> UnreadableBody:
        return UnreadableBody(problem, request=self._request)


def _too_late(seconds: float, request: httpx2.Request) -> httpx2.ReadTimeout:
    return httpx2.ReadTimeout(f"no whole answer within {seconds:g} s", request=request)
