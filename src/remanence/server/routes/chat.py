"""A turn with a model that has the conversation's memory."""

from collections.abc import AsyncGenerator
from typing import Any, Final

from fastapi import APIRouter, Request
from pydantic import BaseModel, ConfigDict, Field

from remanence.chat import Chat, ChatEvent, Done
from remanence.server.chats import Chats
from remanence.server.routes import OpenMemory, allowed_tenant
from remanence.server.turn_response import ReplyDocument, TurnResponse

router = APIRouter(tags=["chat"])

_STREAM: Final[dict[int | str, dict[str, Any]]] = {  # FastAPI's type
    200: {"content": {"text/event-stream": {"schema": {"type": "string"}}}}
}


class ChatBody(BaseModel):
    """A turn; without a text, the unanswered message on the tape is answered."""

    model_config = ConfigDict(extra="forbid")

    text: str | None = Field(default=None, description="What the user says.")
    stream: bool = Field(default=False, description="Answer as server-sent events.")
    user: str | None = Field(default=None, description="The user of the conversation.")
    tenant: str | None = Field(
        default=None, description="The tenant; by default `default`, or that of the key."
    )
    channel: str | None = Field(
        default=None,
        max_length=100,
        description="The channel of the user, such as `whatsapp`; `web` needs no hint.",
    )


@router.post("/v1/chat", response_model=ReplyDocument, responses=_STREAM)
async def chat_anew(request: Request, memory: OpenMemory, body: ChatBody) -> TurnResponse:
    """Begin a conversation with a turn; its new id is in the reply and in `X-Conversation-Id`."""
    return _turn(request, memory.clock.new_id("conv"), body)


@router.post("/v1/conversations/{id}/chat", response_model=ReplyDocument, responses=_STREAM)
async def chat(
    request: Request,
    id: str,  # noqa: A002 - the name in the path
    body: ChatBody,
) -> TurnResponse:
    """Append the user's message, call the model, append its answer, and return it.

    With `stream` the events are `text`, `tool_call`, `tool_result`, then `done` with the reply, or
    `error` with a problem.
    """
    return _turn(request, id, body)


def _turn(request: Request, conversation_id: str, body: ChatBody) -> TurnResponse:
    state = request.app.state
    chats: Chats = state.chats
    talk = chats.get(
        conversation_id,
        tenant=allowed_tenant(request, body.tenant),
        user=body.user,
        channel=body.channel,
    )
    return TurnResponse(
        talk.stream(body.text) if body.stream else _whole(talk, body.text),
        conversation_id=conversation_id,
        stream=body.stream,
        ending=state.ending,
        keep_alive_seconds=state.keep_alive_seconds,
    )


async def _whole(talk: Chat, text: str | None) -> AsyncGenerator[ChatEvent, None]:
    yield Done(reply=await talk.send(text))
