"""Chat turns with a model that has the conversation's memory."""

import asyncio
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from typing import Final

from fastapi import APIRouter, Request

from remanence.chat import Chat, ChatEvent, Done
from remanence.errors import InvalidMessage, StoreError
from remanence.http.documents import ChatBody, ReplyDocument
from remanence.http.problems import MODEL_FAILED
from remanence.memory import Memory
from remanence.server.chats import Chats
from remanence.server.messages import IdempotencyKey, read_message
from remanence.server.paths import PathName
from remanence.server.problems import declare
from remanence.server.routes import OpenMemory, allowed_tenant, may_erase, new_conversation_id
from remanence.server.turn_response import TurnEvent, TurnResponse, stream_of
from remanence.types import ConversationRef, Event, Message

router = APIRouter(tags=["chat"])

_RESPONSES: Final = {
    **stream_of("text", "tool_call", "tool_result", "memory", "done", "error"),
    **declare(
        *("unreadable_body", "invalid_message", "duplicate_message", "wrong_user", "turn_taken"),
        *("context_overflow", MODEL_FAILED),
    ),
}


@router.post("/v1/chat", response_model=ReplyDocument, responses=_RESPONSES)
async def chat_anew(
    request: Request, memory: OpenMemory, body: ChatBody, key: IdempotencyKey = None
) -> TurnResponse:
    """Begin a conversation with a turn; its new id is in the reply and in `X-Conversation-Id`."""
    return await _turn(request, new_conversation_id(memory, body.user, key), body, key)


@router.post("/v1/conversations/{id}/chat", response_model=ReplyDocument, responses=_RESPONSES)
async def chat(
    request: Request,
    id: PathName,  # noqa: A002 - the name in the path
    body: ChatBody,
    key: IdempotencyKey = None,
) -> TurnResponse:
    """Append the user's message, call the model, append its answer, and return it.

    With `stream`, the events are `text`, `tool_call`, `tool_result`, `memory` for each change of the
    conversation's memory meanwhile, then `done` with the reply, or `error` with a problem. A request
    repeated with the same `Idempotency-Key`, or the same message `id`, gets the answer on the tape.
    If the client disconnects, the tape keeps the answer so far, marked as broken off.
    """
    return await _turn(request, id, body, key)


async def _turn(
    request: Request, conversation_id: str, body: ChatBody, key: str | None
) -> TurnResponse:
    state = request.app.state
    chats: Chats = state.chats
    ref = ConversationRef(allowed_tenant(request, body.tenant), conversation_id)
    id_ = key if body.answer_id is None else None
    message = await asyncio.to_thread(_message, body, id_)
    talk = chats.get(ref, body, may_erase=may_erase(request))
    answer_id = id_ if message is None and body.answer_id is None else body.answer_id
    memory: Memory = state.memory
    return TurnResponse(
        _stream(talk.stream(message, answer_id=answer_id), memory, ref)
        if body.stream
        else _whole(talk, message, answer_id),
        conversation_id=conversation_id,
        stream=body.stream,
        ending=state.ending,
        keep_alive_seconds=state.keep_alive_seconds,
    )


def _message(body: ChatBody, key: str | None) -> Message | None:
    if body.message is not None and body.text is not None:
        raise InvalidMessage("the turn has both a text and a message: send one of them")
    if body.message is not None:
        return read_message(body.message, body.format, id_=key)
    return None if body.text is None else Message.user(body.text, id=key)


async def _stream(
    turn: AsyncGenerator[ChatEvent, None], memory: Memory, ref: ConversationRef
) -> AsyncGenerator[TurnEvent, None]:
    """Yield the events of a turn, and before the last one the changes of the memory meanwhile."""
    async with aclosing(turn) as events:
        begin = (await memory.read_events(tenant=ref.tenant)).last
        async for event in events:
            if isinstance(event, Done):
                for change in await _changes(memory, ref, begin):
                    yield change
            yield event


async def _changes(memory: Memory, ref: ConversationRef, after: int) -> Sequence[Event]:
    """Return the changes of a memory; empty if they cannot be read, as the answer is stored anyway."""
    try:
        page = await memory.read_events(after=after, tenant=ref.tenant, conversation=ref.id)
    except StoreError:
        return ()
    return page.events


async def _whole(
    talk: Chat, message: Message | None, answer_id: str | None
) -> AsyncGenerator[ChatEvent, None]:
    yield Done(reply=await talk.send(message, answer_id=answer_id))
