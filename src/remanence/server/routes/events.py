"""Events of a tenant, as they are committed."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import suppress
from functools import partial
from typing import Annotated

from fastapi import APIRouter, Header, Query, Request
from fastapi.responses import StreamingResponse
from fastapi.sse import format_sse_event

from remanence.errors import RemanenceError
from remanence.events import POLL_SECONDS
from remanence.http.documents import EVENT, Name
from remanence.server.routes import OpenMemory, Tenant, is_still_allowed
from remanence.server.turn_response import KEEP_ALIVE, STREAM_HEADERS, stream_of
from remanence.types import EVENT_TYPES, EventPage, EventType

router = APIRouter(tags=["events"])


@router.get("/v1/events", response_class=StreamingResponse, responses=stream_of(*EVENT_TYPES))
async def follow_events(
    request: Request,
    memory: OpenMemory,
    tenant: Tenant,
    conversation: Annotated[
        Name | None, Query(min_length=1, description="Only events of this conversation.")
    ] = None,
    type: Annotated[  # noqa: A002 - the query's name
        list[EventType] | None, Query(description="Only this type; may be repeated.")
    ] = None,
    after: Annotated[
        int | None,
        Query(
            ge=0, description="Only events after this id, 0 for all stored; by default new ones."
        ),
    ] = None,
    last_event_id: Annotated[
        int | None, Header(ge=0, description="Like `after`; sent by clients that reconnect.")
    ] = None,
) -> StreamingResponse:
    """Send events as they are committed, until the client disconnects or the server shuts down.

    The stream begins with the id to resume from, and ends when its key is revoked or expires. An id
    beyond the newest event, such as from before a restored backup, means the newest.
    """
    position = after if last_event_id is None else last_event_id
    read = partial(
        memory.read_events, tenant=tenant, conversation=conversation, types=tuple(type or ())
    )
    page = await read(after=position)
    start = page.last if position is None else min(position, page.last)
    return StreamingResponse(_stream(request, start, page, read), headers=STREAM_HEADERS)


async def _stream(
    request: Request, start: int, page: EventPage, read: Callable[..., Awaitable[EventPage]]
) -> AsyncIterator[bytes]:
    """Yield events and keep-alives until the server shuts down, or the caller loses access.

    Also ends if the memory cannot be read, as clients reconnect.
    """
    yield format_sse_event(id=str(start))
    ending: asyncio.Event = request.app.state.ending
    keep_alive_seconds: float = request.app.state.keep_alive_seconds
    loop = asyncio.get_running_loop()
    next_beat = loop.time() + keep_alive_seconds
    while not ending.is_set():
        for event in page.events:
            yield format_sse_event(
                id=str(event.id), event=event.type, data_str=EVENT.dump_json(event).decode()
            )
        if not page.events:
            with suppress(TimeoutError):
                async with asyncio.timeout(min(POLL_SECONDS, keep_alive_seconds)):
                    await ending.wait()
        try:
            is_beat = loop.time() >= next_beat
            page = await read(after=page.last)
            if (is_beat or page.events) and not await is_still_allowed(request):
                return
            if is_beat:
                yield KEEP_ALIVE
                next_beat = loop.time() + keep_alive_seconds
        except RemanenceError:
            return
