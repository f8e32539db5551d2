"""A turn with a model that has the conversation's memory."""

import json
from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from typing import assert_never

from fastapi import APIRouter, Request
from fastapi.sse import EventSourceResponse, format_sse_event
from pydantic import BaseModel, ConfigDict, Field

from remanence.chat import ChatEvent, Done, Reply, TextDelta, ToolCalled, ToolReturned
from remanence.errors import RemanenceError
from remanence.server.chats import Chats
from remanence.server.problems import document
from remanence.types import Usage

router = APIRouter(tags=["chat"])


class ChatBody(BaseModel):
    """A turn; without a text, what the tape still leaves unanswered is answered."""

    model_config = ConfigDict(extra="forbid")

    text: str | None = Field(default=None, description="What the user says.")
    stream: bool = Field(default=False, description="Answer as server-sent events.")
    user: str | None = Field(default=None, description="Whose conversation it is.")
    tenant: str = Field(default="default", description="The tenant of the conversation.")


class UsageDocument(BaseModel):
    """What model calls took; input counts also what the cache read and wrote."""

    model: str
    input_tokens: int
    output_tokens: int
    cache_read_tokens: int
    cache_write_tokens: int
    cost_usd: float | None


class ReplyDocument(BaseModel):
    """The answer; `complete` is false where it was cut off at the output limit."""

    text: str
    complete: bool
    usage: UsageDocument
    calls: list[UsageDocument]


@router.post(
    "/v1/conversations/{id}/chat",
    response_model=ReplyDocument,
    responses={200: {"content": {"text/event-stream": {"schema": {"type": "string"}}}}},
)
async def chat(
    request: Request,
    id: str,  # noqa: A002 - the path's name
    body: ChatBody,
) -> ReplyDocument | EventSourceResponse:
    """Put the user's message on the tape, ask the model, put its answer there, and give it.

    With `stream` the events are `text`, `tool_call`, `tool_result`, then `done` with the reply, or
    `error` with a problem.
    """
    chats: Chats = request.app.state.chats
    talk = chats.get(id, tenant=body.tenant, user=body.user)
    if not body.stream:
        return _reply_document(await talk.send(body.text))
    events = talk.stream(body.text)
    # Taken here, so that what fails at once has its own status.
    first = await anext(events)
    return EventSourceResponse(_sent(first, events))


async def _sent(first: ChatEvent, events: AsyncGenerator[ChatEvent, None]) -> AsyncIterator[bytes]:
    try:
        yield _event(first)
        async for event in events:
            yield _event(event)
    except RemanenceError as error:
        yield _encoded("error", document(error))
    finally:
        await events.aclose()


def _event(event: ChatEvent) -> bytes:
    match event:
        case TextDelta():
            return _encoded("text", {"text": event.text})
        case ToolCalled():
            call = {"id": event.call_id, "name": event.name, "arguments": event.arguments}
            return _encoded("tool_call", call)
        case ToolReturned():
            result = {"id": event.call_id, "text": event.text, "is_error": event.is_error}
            return _encoded("tool_result", result)
        case Done():
            return _encoded("done", _reply_document(event.reply).model_dump())
        case _:
            assert_never(event)


def _encoded(name: str, data: Mapping[str, object]) -> bytes:
    return format_sse_event(event=name, data_str=json.dumps(data, ensure_ascii=False))


def _reply_document(reply: Reply) -> ReplyDocument:
    return ReplyDocument(
        text=reply.text,
        complete=reply.complete,
        usage=_usage_document(reply.usage),
        calls=[_usage_document(call) for call in reply.calls],
    )


def _usage_document(usage: Usage) -> UsageDocument:
    return UsageDocument(
        model=usage.model,
        input_tokens=usage.input_tokens,
        output_tokens=usage.output_tokens,
        cache_read_tokens=usage.cache_read_tokens,
        cache_write_tokens=usage.cache_write_tokens,
        cost_usd=usage.cost_usd,
    )
