"""Forwarding of requests to a provider, and of its responses as they arrive."""

import asyncio
import contextlib
import json
import logging
import re
from collections.abc import AsyncIterator, Callable, Iterator
from dataclasses import replace
from functools import partial
from itertools import islice
from typing import Final, NamedTuple, TypeAlias

import httpx2
from fastapi import Request, Response
from fastapi.responses import JSONResponse, StreamingResponse
from fastapi.sse import format_sse_event
from starlette.requests import ClientDisconnect
from starlette.types import Message, Send

from remanence.api_keys import has_key
from remanence.background import finish, start_beside
from remanence.errors import Closed, InvalidMessage
from remanence.memory import Memory
from remanence.providers.clients import no_cookies, tls_context
from remanence.runtime import DEFAULT_TENANT
from remanence.server.access import KEY_HEADER, Caller
from remanence.server.disconnect import run_while_connected
from remanence.server.grace import GracePeriod
from remanence.server.proxy.api import ProxiedAPI
from remanence.server.proxy.encoding import Decoder
from remanence.server.proxy.events import EventReader, is_error, usage_in
from remanence.server.proxy.history import Stored
from remanence.server.proxy.naming import CONVERSATION, CREDENTIALS, MEMORY, OMITTED, USER
from remanence.server.proxy.requests import Prepared, Requests, Turn
from remanence.wire.json_value import JsonObject, read_object

_log = logging.getLogger(__name__)

OPENAI: Final = "https://api.openai.com"
ANTHROPIC: Final = "https://api.anthropic.com"

_REFUSED: Final = (401, 403)
_LEFT: Final = 499
"""The logged status if the client left before the response, as nginx has it."""

_READ_SECONDS: Final = 600.0
_CONNECT_SECONDS: Final = 10.0
_LIMITS: Final = httpx2.Limits(max_connections=None, max_keepalive_connections=100)
_HOP: Final = frozenset(
    ("connection", "keep-alive", "proxy-authenticate", "proxy-authorization", "proxy-connection")
) | frozenset(("te", "trailer", "transfer-encoding", "upgrade"))
_MAX_GAPS: Final = 20
_STREAM_FACTOR: Final = 4
"""How many times as long a stream may be as a whole answer, as each piece of its text has a frame."""
_SEQUENCE_NUMBER: Final = re.compile(rb'"sequence_number": ?([0-9]+)')
_BLANK_LINE: Final = b"\n\n"
"""The end of an event, which some servers leave out after the last one."""
_BROKE_OFF: Final = "broke off its answer"
_BATCHES: Final = re.compile(r"v1/messages/batches(?:/[^/]+(?:/cancel)?)?")
_ORIGIN_OF_RESULTS: Final = re.compile(rb'(?<="results_url")(\s*:\s*")https?://[^/"]+')
_DECODED: Final = ("", "identity", "gzip", "deflate")
"""Encodings of a body that httpx2 reads without another package."""
_COOKIES: Final = ("cookie", "set-cookie")
"""Cookies of this host may be those of a login in front, and the provider sets its own for callers of
one key.
"""
_OF_ORIGIN: Final = ("alt-svc", "strict-transport-security")
_CORS: Final = "access-control-"
"""Headers that speak of the provider's origin, and would reach the client on ours."""
_NOT_RETURNED: Final = _HOP | {"date", *_COOKIES, *_OF_ORIGIN}  # the server adds its own date
_NOT_SENT: Final = _HOP | {
    *_COOKIES,
    "host",
    "content-length",
    "accept-encoding",
    "expect",
    CONVERSATION,
    USER,
    MEMORY,
    KEY_HEADER,
}


UpstreamKey: TypeAlias = str | Callable[[str], str | None] | None
"""The server's key for a provider, or a function that returns the key of a tenant."""


class Dialect(NamedTuple):
    """The form of a provider: the header with a key, and an error with a type and a message.

    *overloaded* is the type of an error after which clients try again.
    """

    provider: str
    credential: Callable[[str], tuple[str, str]]
    error: Callable[[str, str], JsonObject]
    overloaded: str


OPENAI_DIALECT: Final = Dialect(
    provider="openai",
    credential=lambda key: ("authorization", f"Bearer {key}"),
    error=lambda kind, message: {
        "error": {"message": message, "type": kind, "param": None, "code": kind}
    },
    overloaded="server_error",
)
ANTHROPIC_DIALECT: Final = Dialect(
    provider="anthropic",
    credential=lambda key: ("x-api-key", key),
    error=lambda kind, message: {"type": "error", "error": {"type": kind, "message": message}},
    overloaded="overloaded_error",
)


class Forwarder:
    """Forwards requests to the provider at *url*, and adds memory to turns of conversations.

    The URL may end with `/v1`, as clients write it. A client's own credential is forwarded; *key* is
    for clients that send only a key of ours. An answer with more than *max_answer_bytes*, or four times
    as many in a stream, is forwarded, but not stored.
    """

    def __init__(
        self,
        memory: Memory,
        url: str,
        dialect: Dialect,
        key: UpstreamKey,
        *,
        recognize: bool,
        grace: Callable[[], GracePeriod],
        max_answer_bytes: int,
    ) -> None:
        self._memory = memory
        self._max_answer_bytes = max_answer_bytes
        self._dialect = dialect
        self._key = key
        self._grace = grace
        self._url = url.rstrip("/").removesuffix("/v1")  # paths begin with /v1
        self._requests = Requests(memory, recognize=recognize)

    async def forward(self, request: Request, path: str, api: ProxiedAPI | None = None) -> Response:
        """Forward a request, which with *api* is a turn of a conversation.

        Any other body is forwarded as it arrives. The provider's call is cancelled when the client
        disconnects.
        """
        body = _Upload(request, is_read=api is not None)
        caller: Caller | None = getattr(request.state, "caller", None)
        tenant = caller.tenant if caller else None
        if api is None:
            prepared = Prepared(content=b"", reason="not a turn of a conversation")
        else:
            content = await request.body()
            prepared = await self._requests.prepare(api, request.headers, content, tenant)
        key = self._key(tenant or DEFAULT_TENANT) if callable(self._key) else self._key
        credential = self._dialect.credential(key) if key else None
        client = self._memory.connections.client(_READ_SECONDS, _open_client)
        query = f"?{request.url.query}" if request.url.query else ""
        sent = client.build_request(
            request.method,
            f"{self._url}/{path}{query}",  # `params` would encode the query anew
            headers=[*_headers_to_send(request, credential), *body.headers],
            content=body.pieces() if body.is_streamed else prepared.content,
        )
        is_batch = request.method != "HEAD" and _BATCHES.fullmatch(path) is not None
        sending = self._send(client, sent, prepared, with_paths=is_batch and caller is not None)
        response = await run_while_connected(body.receive, sending)
        if prepared.turn and (response is None or response.status_code != 200):
            self._requests.leave_unanswered(prepared.turn)
        return Response(status_code=_LEFT) if response is None else response

    def refuse(self, message: str, status: int = 400) -> Response:
        """Return an error in the provider's format for a request that is not forwarded."""
        return JSONResponse(self._dialect.error("invalid_request_error", message), status)

    async def _send(
        self,
        client: httpx2.AsyncClient,
        sent: httpx2.Request,
        prepared: Prepared,
        *,
        with_paths: bool,
    ) -> Response:
        """Return the provider's response, in which links are paths if the client has a key of ours.

        Anthropic's clients follow links to the results of batches with the key that they have.
        """
        turn = prepared.turn
        try:
            received = await client.send(sent, stream=True)
            self._warn_of_missing_key(sent, received.status_code)
            is_ok = received.status_code == 200
            if is_ok and "text/event-stream" in received.headers.get("content-type", ""):
                response: Response = self._body(self._relay_events(turn, received))
            elif is_ok and turn is not None:
                response, turn = await self._read_and_store(turn, received)
                prepared = replace(prepared, turn=turn)
            elif is_ok and with_paths and _encoding_of(received) in _DECODED:
                content = _ORIGIN_OF_RESULTS.sub(rb"\1", await received.aread())
                response = Response(content)
                received.headers.pop("content-encoding", None)
                received.headers["content-length"] = str(len(content))
            else:
                response = self._body(_relay(received), received.status_code)
        except ClientDisconnect:
            return Response(status_code=_LEFT)
        except httpx2.HTTPError as error:
            message = f"{self._failure('did not answer', error)}; {_remedy(self._dialect.provider)}"
            return JSONResponse(self._dialect.error("upstream_unreachable", message), 502)
        return _with_headers(response, received, prepared)

    async def _read_and_store(self, turn: Turn, received: httpx2.Response) -> tuple[Response, Turn]:
        """Return a non-streamed response, after storing the answer if that is not too long.

        The turn that is returned has the tape of the answer.
        """
        pieces = _relay(received)
        content = bytearray()
        async for piece in pieces:
            content += piece
            if len(content) > self._max_answer_bytes:
                with _log_failure(turn):
                    raise _too_long(self._max_answer_bytes)
                return self._body(_chain(bytes(content), pieces), received.status_code), turn
        # A client that leaves meanwhile has seen none of the answer, but it is paid for.
        storing = self._store(turn, bytes(content), Decoder(_encoding_of(received)))
        stored = await finish(start_beside(storing, name="remanence-keep"))
        return Response(bytes(content)), replace(turn, stored=stored)

    async def _store(self, turn: Turn, content: bytes, decoder: Decoder) -> Stored:
        """Store and count an answer, and return its tape; failures are logged."""
        stored, answer, body = turn.stored, turn.api.answer(), None
        with _log_failure(turn):
            content = await asyncio.to_thread(decoder.decode, content, self._max_answer_bytes)
            if len(content) > self._max_answer_bytes:
                raise _too_long(self._max_answer_bytes)
            body = await asyncio.to_thread(read_object, content)
            with _reading():
                if body is None:
                    raise ValueError("the answer is not a JSON object")
                answer.take(body)
            if answer.objects:
                stored = await self._requests.keep(turn, answer.objects)
        with _log_failure(turn, "counted"), _reading():
            await self._requests.record(turn, usage_in(body or {}))
        return stored

    def _body(self, pieces: AsyncIterator[bytes], status: int = 200) -> Response:
        return _Body(pieces, status, failed=partial(self._failure, _BROKE_OFF))

    async def _relay_events(
        self, turn: Turn | None, response: httpx2.Response
    ) -> AsyncIterator[bytes]:
        """Yield a stream as it arrives, and store the answer to a turn before sending its end.

        An answer that breaks off, or has an unreadable event, is not stored: the client's next
        request shows what the client kept of it. A stream that is still open when the grace period
        ends has an event `error` as its last.
        """
        max_bytes = _STREAM_FACTOR * self._max_answer_bytes
        decoder = Decoder(_encoding_of(response))
        recorder: _AnswerRecorder | None = None
        if turn is not None:
            recorder = _AnswerRecorder(turn, self._requests, decoder, max_bytes)
        pieces = response.aiter_raw()
        number: bytes | None = None
        outcome = "cancelled"
        try:
            async with self._grace() as grace, contextlib.aclosing(response):
                while (piece := await grace.wait_for(anext(pieces, None))) is not None:
                    if recorder is not None:
                        await recorder.add(piece)
                    number = next(reversed(_SEQUENCE_NUMBER.findall(piece)), number)
                    yield piece
                if recorder is not None:
                    await recorder.end()
            outcome = "ok"
        except httpx2.HTTPError:
            outcome = "connection"
            raise
        except Closed as error:
            yield _error_event(self._dialect.error(self._dialect.overloaded, str(error)), number)
        finally:
            if recorder is not None:
                await recorder.close(outcome)

    def _warn_of_missing_key(self, sent: httpx2.Request, status: int) -> None:
        """Log which key to set if the provider refused a request that was sent without one."""
        if status in _REFUSED and not any(name in sent.headers for name in CREDENTIALS):
            _log.warning(
                "%s refused a request without a key (HTTP %d): let the client send its own provider "
                "key, or start the server with --keys and %s, or create_app with such a key",
                self._url,
                status,
                f"{self._dialect.provider.upper()}_API_KEY",
            )

    def _failure(self, what: str, error: httpx2.HTTPError) -> str:
        """Log what the provider did, and return it for the client, without the address."""
        kind = type(error).__name__
        _log.warning("%s %s: %s: %s", self._url, what, kind, error)
        return f"the upstream of /{self._dialect.provider}/v1 {what}: {kind}"


def _remedy(provider: str) -> str:
    """Return where the upstream is set; its address, which may be an internal one, is in the log."""
    return f"check --{provider}-url or create_app({provider}_url=…), whose address is in the log"


class _Upload:
    """The body of a request, which is forwarded as it arrives unless it has none or *is_read*."""

    def __init__(self, request: Request, *, is_read: bool) -> None:
        self._request = request
        self._is_sent = asyncio.Event()
        is_chunked, length = _is_chunked(request), request.headers.get("content-length", "0")
        self.is_streamed = not is_read and (is_chunked or length != "0")
        is_counted = self.is_streamed and not is_chunked
        self.headers = [(b"content-length", length.encode())] if is_counted else []
        if not self.is_streamed:
            self._is_sent.set()

    async def pieces(self) -> AsyncIterator[bytes]:
        """Yield the body as it arrives; raise `ClientDisconnect` if the client leaves within it."""
        try:
            async for piece in self._request.stream():
                yield piece
        finally:
            self._is_sent.set()

    async def receive(self) -> Message:
        """Return what the client sends after the body, or in place of the rest."""
        await self._is_sent.wait()
        return await self._request.receive()


def _is_chunked(request: Request) -> bool:
    """Return whether a body may follow whose length is not known; HTTP/2 has no header for it."""
    if request.scope["http_version"].startswith("1"):
        return "transfer-encoding" in request.headers
    return "content-length" not in request.headers and request.method not in ("GET", "HEAD")


class _AnswerRecorder:
    """Reads the answer to a turn from its stream, and stores it once it is complete."""

    def __init__(self, turn: Turn, requests: Requests, decoder: Decoder, max_bytes: int) -> None:
        self._turn = turn
        self._requests = requests
        self._decoder = decoder
        self._max_bytes = self._left_bytes = max_bytes
        self._answer = turn.api.answer()
        self._reader = EventReader()
        self._usage: JsonObject = {}
        self._has_failed = self._is_broken = False

    async def add(self, piece: bytes) -> None:
        """Read a piece of the stream; ignores everything after an error."""
        await self._read(lambda: self._decoder.decode(piece, self._left_bytes))

    async def end(self) -> None:
        """Read the last event, if the stream has no blank line after it."""
        await self._read(lambda: _BLANK_LINE)

    async def _read(self, decode: Callable[[], bytes]) -> None:
        if self._is_broken:
            return
        self._is_broken, was_whole = True, bool(self._answer.objects)
        with _log_failure(self._turn, "counted in full" if was_whole else "stored"):
            piece = decode()
            self._left_bytes -= len(piece)
            if self._left_bytes < 0:
                raise _too_long(self._max_bytes)
            with _reading():
                for event in self._reader.feed(piece):
                    if not self._answer.objects:
                        self._answer.feed(event)
                    self._has_failed |= is_error(event)
                    self._usage |= usage_in(event)
            self._is_broken = False
            if self._answer.objects and not was_whole:
                keep = self._requests.keep(self._turn, self._answer.objects)
                await finish(start_beside(keep, name="remanence-keep"))

    async def close(self, outcome: str) -> None:
        """Record the call, which may have reported its usage after the answer.

        *outcome* is that of the stream; a whole answer is `ok`, however the stream ended, and an error that
        the provider reports is `server`.
        """
        if self._answer.objects:
            outcome = "ok"
        elif self._has_failed:
            outcome = "server"
        if self._usage or self._answer.objects:
            with _log_failure(self._turn, "counted"), _reading():
                await self._requests.record(self._turn, self._usage, outcome=outcome)


class _Body(StreamingResponse):
    """The body of a provider's response; if it breaks off, so does the client's connection."""

    def __init__(
        self,
        pieces: AsyncIterator[bytes],
        status: int,
        *,
        failed: Callable[[httpx2.HTTPError], object],
    ) -> None:
        super().__init__(pieces, status)
        self._failed = failed

    async def stream_response(self, send: Send) -> None:
        try:
            await super().stream_response(send)
        except httpx2.HTTPError as error:  # uvicorn closes the connection of an incomplete body
            self._failed(error)


async def _relay(response: httpx2.Response) -> AsyncIterator[bytes]:
    async with contextlib.aclosing(response):
        async for piece in response.aiter_raw():
            yield piece


async def _chain(begun: bytes, pieces: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    yield begun
    async for piece in pieces:
        yield piece


def _too_long(max_bytes: int) -> InvalidMessage:
    return InvalidMessage(f"the provider's answer has more than {max_bytes:,} bytes")


@contextlib.contextmanager
def _log_failure(turn: Turn, action: str = "stored") -> Iterator[None]:
    """Log errors of storing or counting an answer, and suppress them."""
    try:
        yield
    except Exception as error:  # noqa: BLE001 - the client gets its answer all the same
        text = "an answer in conversation %.80r was not %s: %s: %s"
        _log.warning(text, turn.name.conversation, action, type(error).__name__, error)


@contextlib.contextmanager
def _reading() -> Iterator[None]:
    """Raise `InvalidMessage`, which quotes nothing, for an answer of another form than its API's."""
    try:
        yield
    except (AttributeError, LookupError, RecursionError, TypeError, ValueError) as error:
        raise InvalidMessage("the provider's answer is not in the form of its API") from error


def _open_client(seconds: float) -> httpx2.AsyncClient:
    timeout = httpx2.Timeout(seconds, connect=_CONNECT_SECONDS)
    return httpx2.AsyncClient(
        timeout=timeout,
        verify=tls_context(),
        limits=_LIMITS,
        follow_redirects=False,
        cookies=no_cookies(),
    )


def _headers_to_send(
    request: Request, credential: tuple[str, str] | None
) -> list[tuple[bytes, bytes]]:
    """Return the client's headers for the provider as they came, without our own keys."""
    left_out = _NOT_SENT | _named_by_connection(request.headers.getlist("connection"))
    kept = [
        (name, value)
        for name, value in request.headers.raw
        if name.decode("latin-1") not in left_out and not has_key(value.decode("latin-1"))
    ]
    if credential is not None and not any(
        name.decode("latin-1") in CREDENTIALS for name, _ in kept
    ):
        name, value = credential
        kept.append((name.encode(), value.encode()))
    return [*kept, (b"accept-encoding", b"identity")]


def _encoding_of(response: httpx2.Response) -> str:
    encoding: str = response.headers.get("content-encoding", "")
    return encoding


def _named_by_connection(values: list[str]) -> set[str]:
    """Return the headers that `Connection` limits to one hop (RFC 9110, 7.6.1)."""
    return {name.strip().lower() for value in values for name in value.split(",")}


def _with_headers(response: Response, received: httpx2.Response, prepared: Prepared) -> Response:
    """Set the provider's headers on a response, and our own that report on the memory."""
    about = {MEMORY: " ".join(f"off; {prepared.reason}".split())[:300]}
    if prepared.turn is not None:
        about = {MEMORY: "on", CONVERSATION: prepared.turn.stored.conversation.id}
    if prepared.omitted:
        gaps = (f"{gap.first_seq}-{gap.last_seq} {gap.reason}" for gap in prepared.omitted)
        about[OMITTED] = ", ".join(islice(gaps, _MAX_GAPS))
    theirs = received.headers
    left_out = _NOT_RETURNED | _named_by_connection(theirs.get_list("connection"))
    kept = [
        (name, value)
        for name, value in theirs.raw
        if (shown := name.decode().lower()) not in left_out and not shown.startswith(_CORS)
    ]
    own = [
        (name.encode(), value.encode("ascii", "backslashreplace")) for name, value in about.items()
    ]
    response.raw_headers = [*kept, *own]
    return response


def _error_event(error: JsonObject, number: bytes | None) -> bytes:
    """Return an error as the last event of a stream that may have broken off within an event.

    The Responses API, the only one to *number* its events, does not nest the error's fields; some
    of its clients read `error` all the same.
    """
    if number is not None:
        error = {**error["error"], **error, "type": "error", "sequence_number": int(number) + 1}
    return b"\n\n" + format_sse_event(event="error", data_str=json.dumps(error))
