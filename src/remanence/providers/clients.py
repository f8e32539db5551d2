"""The HTTP client for providers, with a deadline and a maximum response size per request."""

import asyncio
import ssl
import zlib
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import cache
from http.cookiejar import CookieJar, DefaultCookiePolicy
from typing import Any, Final

import httpx2

from remanence.providers.options import ModelOptions

MAX_ANSWER_BYTES = 16 * 1024 * 1024
"""Enough for half a megabyte of text, more than current models write, streamed in small events."""


_PIECE_BYTES: Final = 64 * 1024
_COMPRESSED: Final = frozenset({"gzip", "x-gzip", "deflate"})

_CONNECT_SECONDS = 10.0
_LIMITS = httpx2.Limits(max_keepalive_connections=20, keepalive_expiry=60.0)

# None means a direct connection: a proxy from the environment is for other machines.
_DIRECT: dict[str, httpx2.AsyncBaseTransport | None] = {
    "all://localhost": None,
    "all://127.0.0.1": None,
    "all://[::1]": None,
}


@asynccontextmanager
async def call_client(options: ModelOptions) -> AsyncIterator[httpx2.AsyncClient]:
    """Yield the client for a call: a pooled one, or a new one that is closed afterwards."""
    if options.connections is not None:
        yield options.connections.client(options.call_seconds, BoundedClient)
        return
    async with BoundedClient(options.call_seconds) as client:
        yield client


@cache
def tls_context() -> ssl.SSLContext:
    """Return the TLS context; cached, as loading certificates takes longer than connecting."""
    return httpx2.create_ssl_context()


def no_cookies() -> CookieJar:
    """Return a jar that stays empty, as a cookie of one caller must not go with another's request."""
    return CookieJar(DefaultCookiePolicy(allowed_domains=()))


class UnreadableBody(httpx2.TransportError):
    """A response body is too large, or its compression is unknown or broken."""

    reason = "bad_answer"


class WebPage(UnreadableBody):
    """A success whose body is a page, as of a gateway or a login: no model was reached."""

    reason = "server"


def body_error(error: BaseException | None) -> UnreadableBody | None:
    """Return the `UnreadableBody` among the causes of *error*, if any."""
    while error is not None and not isinstance(error, UnreadableBody):
        error = error.__cause__ or error.__context__
    return error


class BoundedClient(httpx2.AsyncClient):
    """Fails a request whose whole response takes longer than *seconds*, or is too large.

    Timeouts of httpx apply to single reads, and never end a response that trickles in. The client
    requests no compression; if a server compresses anyway, the maximum applies to the decompressed
    size.
    """

    def __init__(self, seconds: float) -> None:
        timeout = httpx2.Timeout(seconds, connect=min(seconds, _CONNECT_SECONDS))
        super().__init__(
            timeout=timeout,
            verify=tls_context(),
            mounts=_DIRECT,
            limits=_LIMITS,
            cookies=no_cookies(),
        )
        self._seconds = seconds

    async def send(
        self, request: httpx2.Request, *, stream: bool = False, **options: Any
    ) -> httpx2.Response:  # as in httpx
        deadline = asyncio.get_running_loop().time() + self._seconds
        request.headers["accept-encoding"] = "identity"
        try:
            async with asyncio.timeout_at(deadline):
                response = await super().send(request, stream=True, **options)
        except TimeoutError as error:
            raise _too_late(self._seconds, request) from error
        assert isinstance(response.stream, httpx2.AsyncByteStream)
        encoding = response.headers.pop("content-encoding", "identity").strip().lower()
        kind = response.headers.get("content-type", "").lower()
        may_be_page = response.is_success and kind.startswith("text/html")
        response.stream = _BoundedStream(
            response.stream, request, encoding, deadline, self._seconds, may_be_page
        )
        if not stream:
            try:
                await response.aread()
            finally:
                await response.aclose()
        return response


@dataclass(frozen=True, slots=True)
class _BoundedStream(httpx2.AsyncByteStream):
    """The decompressed bytes of a response, within the client's limits."""

    stream: httpx2.AsyncByteStream
    request: httpx2.Request
    encoding: str
    deadline: float
    seconds: float
    may_be_page: bool

    async def __aiter__(self) -> AsyncIterator[bytes]:
        size, chunks, decoder = 0, aiter(self.stream), self._decoder()
        while True:
            try:
                async with asyncio.timeout_at(self.deadline):
                    chunk = await anext(chunks, None)
            except TimeoutError as error:
                raise _too_late(self.seconds, self.request) from error
            if chunk is None:
                return
            for piece in self._decode(chunk, decoder):
                if self.may_be_page and not size and piece.lstrip().startswith(b"<"):
                    raise WebPage("is a web page: check the address", request=self.request)
                size += len(piece)
                if size > MAX_ANSWER_BYTES:
                    raise self._unreadable(f"has more than {MAX_ANSWER_BYTES:,} bytes")
                yield piece

    async def aclose(self) -> None:
        await self.stream.aclose()

    def _decoder(self) -> "zlib._Decompress | None":
        if self.encoding == "identity":
            return None
        if self.encoding not in _COMPRESSED:
            raise self._unreadable(
                f"has the content-encoding {self.encoding!r:.80}, which was not requested: turn off "
                "compression on the server"
            )
        return zlib.decompressobj(zlib.MAX_WBITS | 32)  # detects gzip or deflate by the header

    def _decode(self, chunk: bytes, decoder: "zlib._Decompress | None") -> Iterator[bytes]:
        """Yield a decompressed chunk in pieces, so that a small chunk cannot grow to gigabytes."""
        if decoder is None:
            yield chunk
            return
        try:
            while piece := decoder.decompress(chunk, _PIECE_BYTES):
                yield piece
                chunk = decoder.unconsumed_tail
        except zlib.error as error:
            raise self._unreadable(f"is not {self.encoding}: {error}") from error

    def _unreadable(self, problem: str) -> UnreadableBody:
        return UnreadableBody(problem, request=self.request)


def _too_late(seconds: float, request: httpx2.Request) -> httpx2.ReadTimeout:
    return httpx2.ReadTimeout(f"no whole answer within {seconds:g} s", request=request)
