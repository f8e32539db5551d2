"""A server on loopback that speaks the protocols of model providers and fails on demand."""

import asyncio
import gzip
import json
import socket
import struct
import zlib
from collections import deque
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias, assert_never

from tests.wire.dialects import (
    Anthropic,
    Dialect,
    OpenAI,
    OpenAIEmbeddings,
    OpenAIResponses,
    Reply,
)

Body: TypeAlias = dict[str, Any]  # a request as JSON


@dataclass(frozen=True, slots=True, kw_only=True)
class Received:
    """A request as it arrived; header names are in lower case."""

    path: str
    headers: dict[str, str]
    body: Body
    raw: bytes = b""
    method: str = "POST"
    query: str = ""


@dataclass(frozen=True, slots=True)
class Fail:
    """Answer with an error; `{key}` in the message becomes the key that was sent."""

    status: int
    message: str = "it went wrong"
    kind: str = "some_error"
    headers: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Held:
    """Answer when the gate is opened; a stream has given its first pieces by then."""

    reply: Reply = field(default_factory=Reply)
    reached: asyncio.Event = field(default_factory=asyncio.Event)
    gate: asyncio.Event = field(default_factory=asyncio.Event)


Trouble: TypeAlias = Literal[
    "reset",
    "slow header",
    "stall",
    "drip",
    "flood",
    "garbage",
    "no json",
    "other protocol",
    "late start",
    "unknown block",
    "broken off",
    "ends early",
    "error event",
]


@dataclass(frozen=True, slots=True)
class Compressed:
    """Answer with a body that is compressed by `encoding`, whatever was asked for."""

    encoding: Literal["gzip", "deflate", "br"] = "gzip"
    reply: Reply = field(default_factory=Reply)
    padding_bytes: int = 0
    is_broken: bool = False


@dataclass(frozen=True, slots=True)
class Raw:
    """Documents as they are: the answer, or the events of a stream.

    A surrogate such as "\\udcff" stands for a byte that is not UTF-8. Without `is_ended`, a stream
    has neither `[DONE]` nor a blank line after its last event.
    """

    documents: tuple[str, ...]
    is_ended: bool = True


Step: TypeAlias = Reply | Fail | Held | Compressed | Raw | Trouble


class ModelServer:
    """Answers as scripted, and with a short note when the script has run out."""

    def __init__(self, *, cache_minimum: int = 0) -> None:
        self.received: list[Received] = []
        self.most_at_once = 0
        self._script: deque[Step] = deque()
        self.dialects: dict[str, Dialect] = {
            "/v1/messages": Anthropic(cache_minimum=cache_minimum),
            "/v1/chat/completions": OpenAI(),
            "/v1/responses": OpenAIResponses(),
            "/v1/embeddings": OpenAIEmbeddings(),
        }
        self._handlers: set[asyncio.Task[None]] = set()
        self.at_once = 0
        self.port = 0

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def script(self, *steps: Step) -> None:
        """What the next requests meet, one step each."""
        self._script.extend(steps)

    @asynccontextmanager
    async def running(self) -> AsyncIterator["ModelServer"]:
        server = await asyncio.start_server(self._connected, "127.0.0.1", 0)
        self.port = server.sockets[0].getsockname()[1]
        try:
            yield self
        finally:
            server.close()
            for handler in self._handlers:
                handler.cancel()
            if self._handlers:
                await asyncio.wait(self._handlers)

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        handler = asyncio.current_task()
        assert handler is not None
        self._handlers.add(handler)
        try:
            await self._serve(reader, writer)
        except (asyncio.CancelledError, asyncio.IncompleteReadError, ConnectionError):
            pass  # the test is over, or the client went away
        finally:
            writer.close()
            with suppress(ConnectionError, asyncio.CancelledError):
                await writer.wait_closed()
            self._handlers.discard(handler)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        request = await _read(reader)
        self.received.append(request)
        self.at_once += 1
        self.most_at_once = max(self.most_at_once, self.at_once)
        await asyncio.sleep(0)  # others that are called at the same time arrive now
        try:
            await self.respond(request, writer)
        finally:
            self.at_once -= 1

    async def respond(self, request: Received, writer: asyncio.StreamWriter) -> None:
        """Answer a request by the next step of the script."""
        dialect = self.dialects.get(request.path)
        if dialect is None:
            return _send(writer, 404, {"error": {"message": f"no such path {request.path}"}})
        if request.method != "POST":
            return _send(writer, 405, dialect.error("method", "use POST"), {"allow": "POST"})
        try:
            problem = dialect.problem(request.body)
        except (TypeError, LookupError, AttributeError):
            problem = "the request is of another shape"
        if problem:
            return _send(writer, 400, dialect.error("invalid_request_error", problem))
        step = self._script.popleft() if self._script else Reply()
        if isinstance(step, Reply):
            return _answer(writer, request, dialect, step)
        if isinstance(step, Compressed):
            return _answer_compressed(writer, request, dialect, step)
        if isinstance(step, Raw):
            return _answer_raw(writer, request, step)
        if isinstance(step, Held):
            return await _answer_held(writer, request, dialect, step)
        if isinstance(step, Fail):
            message = step.message.replace("{key}", _key(request))
            error = dialect.error(step.kind, message)
            return _send(writer, step.status, error, step.headers)
        return await _trouble(writer, request, dialect, step)


def _answer_raw(writer: asyncio.StreamWriter, request: Received, step: Raw) -> None:
    if request.body.get("stream"):
        if not step.is_ended:
            _head(writer, 200, {"transfer-encoding": "chunked", **_content_type(request)})
            for part in ("\n\n".join(f"data: {event}" for event in step.documents), ""):
                _chunk(writer, part)
            return
        events = [*step.documents, "[DONE]"]
        text = "".join(f"data: {event}\n\n" for event in events)
        _send_text(writer, text, "text/event-stream")
    else:
        _send_text(writer, step.documents[0], "application/json")


def _answer_compressed(
    writer: asyncio.StreamWriter, request: Received, dialect: Dialect, step: Compressed
) -> None:
    """The answer behind white space or comments, which compress to a thousandth."""
    streams = request.body.get("stream")
    body = "".join(dialect.events(request.body, step.reply))
    if not streams:
        body = json.dumps(dialect.response(request.body, step.reply))
    line = f":{'a' * 9_997}\n\n" if streams else " " * 10_000
    padding = line * (step.padding_bytes // len(line) + 1) if step.padding_bytes else ""
    pack = gzip.compress if step.encoding == "gzip" else zlib.compress
    data = pack((padding + body).encode())
    headers = {"content-encoding": step.encoding, "content-length": str(len(data))}
    _head(writer, 200, {**_content_type(request), **headers})
    writer.write(b"?" * len(data) if step.is_broken else data)


async def _answer_held(
    writer: asyncio.StreamWriter, request: Received, dialect: Dialect, step: Held
) -> None:
    step.reached.set()
    if not request.body.get("stream"):
        await step.gate.wait()
        return _send(writer, 200, dialect.response(request.body, step.reply))
    _head(writer, 200, {"transfer-encoding": "chunked", **_content_type(request)})
    events = dialect.events(request.body, step.reply)
    for event in events[:3]:
        _chunk(writer, event)
    await writer.drain()
    await step.gate.wait()
    for event in (*events[3:], ""):
        _chunk(writer, event)
    return None


async def _trouble(
    writer: asyncio.StreamWriter, request: Received, dialect: Dialect, trouble: Trouble
) -> None:
    match trouble:
        case "reset":
            _reset(writer)
        case "slow header":
            await asyncio.Event().wait()
        case "drip" | "flood":
            await _never_ending(writer, request, pause_seconds=0.05 if trouble == "drip" else 0.0)
        case "garbage":
            _send_text(writer, '{"id": "1", "content": [', "application/json")
        case "no json":
            _send_text(writer, "<html>Bad gateway</html>", "text/html")
        case "other protocol":
            _other_protocol(writer, request)
        case "late start" | "unknown block":
            _out_of_order(writer, request, dialect, trouble)
        case "stall" | "broken off" | "ends early" | "error event":
            await _part_of_an_answer(writer, request, dialect, trouble)
        case _:
            assert_never(trouble)


async def _never_ending(
    writer: asyncio.StreamWriter, request: Received, *, pause_seconds: float
) -> None:
    """White space for ever: a byte at a time, or as fast as it is read."""
    _head(writer, 200, {"transfer-encoding": "chunked", **_content_type(request)})
    streams = request.body.get("stream")
    size = 1 if pause_seconds else 100_000
    while not writer.is_closing():
        _chunk(writer, f":{'a' * size}\n" if streams else " " * size)
        await writer.drain()
        await asyncio.sleep(pause_seconds)


def _other_protocol(writer: asyncio.StreamWriter, request: Received) -> None:
    """JSON that is well formed, and nothing that a client of this protocol knows."""
    document = '{"answer": "Gate B42."}'
    if request.body.get("stream"):
        # A name that Anthropic's client passes on; OpenAI's reads the data of any event.
        _send_text(writer, f"event: message_delta\ndata: {document}\n\n", "text/event-stream")
    else:
        _send_text(writer, document, "application/json")


def _out_of_order(
    writer: asyncio.StreamWriter, request: Received, dialect: Dialect, trouble: Trouble
) -> None:
    """The events of a stream with the first, or the second one at its end."""
    events = dialect.events(request.body, Reply())
    moved = events.pop(0 if trouble == "late start" else 1)
    _send_text(writer, "".join([*events, moved]), "text/event-stream")


async def _part_of_an_answer(
    writer: asyncio.StreamWriter, request: Received, dialect: Dialect, trouble: Trouble
) -> None:
    """The beginning of an answer, and then nothing, the end of the connection, or an error."""
    events = dialect.events(request.body, Reply()) if request.body.get("stream") else ['{"id": ']
    _head(writer, 200, {"transfer-encoding": "chunked", **_content_type(request)})
    for event in events[: 1 if trouble == "stall" else 3]:
        _chunk(writer, event)
    if trouble == "stall":
        await writer.drain()
        await asyncio.Event().wait()
    if trouble == "error event":
        _chunk(writer, dialect.error_event("overloaded_error", "Overloaded"))
    if trouble != "broken off":
        _chunk(writer, "")


def _reset(writer: asyncio.StreamWriter) -> None:
    connection: socket.socket = writer.get_extra_info("socket")
    no_lingering = struct.pack("ii", 1, 0)
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, no_lingering)
    writer.transport.abort()


def _answer(
    writer: asyncio.StreamWriter, request: Received, dialect: Dialect, reply: Reply
) -> None:
    if not request.body.get("stream"):
        return _send(writer, 200, dialect.response(request.body, reply))
    _head(writer, 200, {"transfer-encoding": "chunked", **_content_type(request)})
    for event in (*dialect.events(request.body, reply), ""):
        _chunk(writer, event)
    return None


async def _read(reader: asyncio.StreamReader) -> Received:
    head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
    first, *lines = head.strip().split("\r\n")
    headers = {
        name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)
    }
    raw = await reader.readexactly(int(headers.get("content-length", "0")))
    method, target, _ = first.split(" ")
    path, _, query = target.partition("?")
    return Received(
        path=path, headers=headers, body=_body(raw), raw=raw, method=method, query=query
    )


def _body(raw: bytes) -> Body:
    """Return the JSON object of a request, empty if it is none."""
    try:
        body = json.loads(raw)
    except (ValueError, RecursionError):
        return {}
    return body if isinstance(body, dict) else {}


def _key(request: Received) -> str:
    bearer = request.headers.get("authorization", "").removeprefix("Bearer ")
    return request.headers.get("x-api-key", bearer)


def _content_type(request: Received) -> dict[str, str]:
    stream = request.body.get("stream")
    return {"content-type": "text/event-stream" if stream else "application/json"}


def _send(
    writer: asyncio.StreamWriter, status: int, body: Body, headers: dict[str, str] | None = None
) -> None:
    _send_text(writer, json.dumps(body), "application/json", status, headers)


def _send_text(
    writer: asyncio.StreamWriter,
    text: str,
    content_type: str,
    status: int = 200,
    headers: dict[str, str] | None = None,
) -> None:
    data = text.encode(errors="surrogateescape")
    described = {"content-type": content_type, "content-length": str(len(data)), **(headers or {})}
    _head(writer, status, described)
    writer.write(data)


def _head(writer: asyncio.StreamWriter, status: int, headers: dict[str, str]) -> None:
    lines = [f"HTTP/1.1 {status} Status", "connection: close"]
    lines += [f"{name}: {value}" for name, value in headers.items()]
    writer.write(("\r\n".join(lines) + "\r\n\r\n").encode("latin-1"))


def _chunk(writer: asyncio.StreamWriter, text: str) -> None:
    """Write one chunk; the empty one ends the body."""
    data = text.encode()
    writer.write(f"{len(data):x}\r\n".encode() + data + b"\r\n")
