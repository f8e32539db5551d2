"""The response of a turn: JSON at its end, or server-sent events while it runs."""

import asyncio
import json
from collections.abc import AsyncGenerator, Mapping
from contextlib import aclosing
from dataclasses import asdict
from typing import Any, Final, TypeAlias, assert_never
from urllib.parse import quote

from fastapi.responses import JSONResponse
from fastapi.sse import format_sse_event
from starlette.datastructures import MutableHeaders
from starlette.responses import Response
from starlette.types import Message, Receive, Scope, Send

from remanence.chat import ChatEvent, Done, Reply, TextDelta, ToolCalled, ToolReturned
from remanence.errors import Closed
from remanence.http.documents import (
    EVENT,
    ReplyDocument,
    TextDocument,
    ToolCallDocument,
    ToolResultDocument,
)
from remanence.server.disconnect import run_while_connected
from remanence.server.problems import document, response_to
from remanence.types import Event

KEEP_ALIVE_SECONDS: Final = 10.0
"""Proxies close a connection that is silent for longer, often after 30 or 60 seconds."""

HEADER: Final = "x-conversation-id"
_ENDING: Final = "the server is shutting down: the message is stored, send it again for an answer"
KEEP_ALIVE: Final = b": keep-alive\n\n"
STREAM_HEADERS: Final = {
    "cache-control": "no-cache",
    "content-type": "text/event-stream; charset=utf-8",
    "x-accel-buffering": "no",
}


def stream_of(*names: str) -> dict[int | str, dict[str, Any]]:  # FastAPI's type
    """Return the declaration of server-sent events with these names."""
    event = {
        "type": "object",
        "properties": {
            "id": {"type": "string"},
            "event": {"type": "string", "enum": [*names]},
            "data": {"type": "string", "contentMediaType": "application/json"},
        },
    }
    return {200: {"content": {"text/event-stream": {"itemSchema": event}}}}


TurnEvent: TypeAlias = ChatEvent | Event
Piece: TypeAlias = TurnEvent | Exception


class TurnResponse(Response):
    """Runs a turn and sends its reply or its events.

    The turn is cancelled when the client disconnects, and at shutdown, which the last event reports.
    The stream begins with the first event of the turn, or after `keep_alive_seconds` with a comment,
    which is repeated; an error before that gets its own status. Every response names its
    conversation in the header `X-Conversation-Id`.
    """

    def __init__(
        self,
        events: AsyncGenerator[TurnEvent, None],
        *,
        conversation_id: str,
        stream: bool,
        ending: asyncio.Event,
        keep_alive_seconds: float,
    ) -> None:
        super().__init__()
        self._events = events
        self._conversation_id = conversation_id
        self._stream = stream
        self._ending = ending
        self._keep_alive_seconds = keep_alive_seconds

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async def send_named(message: Message) -> None:
            if message["type"] == "http.response.start":
                MutableHeaders(scope=message)[HEADER] = quote(self._conversation_id)
            await send(message)

        await run_while_connected(receive, self._answer(scope, receive, send_named))

    async def _answer(self, scope: Scope, receive: Receive, send: Send) -> None:
        pieces: asyncio.Queue[Piece] = asyncio.Queue()
        async with asyncio.TaskGroup() as group:
            turn = group.create_task(_run(self._events, pieces), name="remanence-turn")
            watch = group.create_task(_end_at(self._ending, turn, pieces))
            try:
                await self._send(pieces, scope, receive, send)
            finally:
                turn.cancel()
                watch.cancel()

    async def _send(
        self, pieces: asyncio.Queue[Piece], scope: Scope, receive: Receive, send: Send
    ) -> None:
        piece = await self._next(pieces)
        if isinstance(piece, Exception):
            return await response_to(piece)(scope, receive, send)
        if isinstance(piece, Done) and not self._stream:
            return await JSONResponse(self._done_event(piece.reply))(scope, receive, send)
        headers = [(name.encode(), value.encode()) for name, value in STREAM_HEADERS.items()]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        while True:
            last = isinstance(piece, Done | Exception)
            body = KEEP_ALIVE if piece is None else self._encode(piece)
            await send({"type": "http.response.body", "body": body, "more_body": not last})
            if last:
                return None
            piece = await self._next(pieces)

    async def _next(self, pieces: asyncio.Queue[Piece]) -> Piece | None:
        """Return the next piece; None if a stream has none for `keep_alive_seconds`."""
        try:
            async with asyncio.timeout(self._keep_alive_seconds if self._stream else None):
                return await pieces.get()
        except TimeoutError:
            return None

    def _encode(self, piece: TurnEvent | Exception) -> bytes:
        match piece:
            case TextDelta(text=text):
                return _event("text", TextDocument(text=text).model_dump())
            case ToolCalled(call_id=id_, name=name, arguments=arguments):
                call = ToolCallDocument(id=id_, name=name, arguments=arguments)
                return _event("tool_call", call.model_dump())
            case ToolReturned(call_id=id_, text=text, is_error=is_error):
                result = ToolResultDocument(id=id_, text=text, is_error=is_error)
                return _event("tool_result", result.model_dump())
            case Event():
                return format_sse_event(event="memory", data_str=EVENT.dump_json(piece).decode())
            case Done():
                return _event("done", self._done_event(piece.reply))
            case Exception():
                return _event("error", document(piece))
            case _:
                assert_never(piece)

    def _done_event(self, reply: Reply) -> dict[str, object]:
        return ReplyDocument(conversation=self._conversation_id, **asdict(reply)).model_dump()


async def _run(events: AsyncGenerator[TurnEvent, None], pieces: asyncio.Queue[Piece]) -> None:
    """Put the events of a turn, or its error, into the sender's queue."""
    try:
        async with aclosing(events):
            async for event in events:
                pieces.put_nowait(event)
    except Exception as error:  # noqa: BLE001 - it becomes a problem, whatever it is
        pieces.put_nowait(error)


async def _end_at(
    ending: asyncio.Event, turn: asyncio.Task[None], pieces: asyncio.Queue[Piece]
) -> None:
    """End the turn with an error when the server begins to shut down."""
    await ending.wait()
    turn.cancel()
    pieces.put_nowait(Closed(_ENDING))


def _event(name: str, data: Mapping[str, object]) -> bytes:
    return format_sse_event(event=name, data_str=json.dumps(data, ensure_ascii=False))
