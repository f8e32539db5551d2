"""Drop-in proxies: the paths of a provider, with the memory of the conversation."""

from typing import Final
from urllib.parse import quote

from fastapi import APIRouter, Request, Response

from remanence.server.proxy.anthropic import AnthropicMessages
from remanence.server.proxy.forwarding import Forwarder
from remanence.server.proxy.openai import OpenAIChat
from remanence.server.proxy.responses import OpenAIResponses

router = APIRouter(tags=["proxy"])

_METHODS: Final = ["GET", "POST", "PUT", "PATCH", "DELETE", "HEAD"]
_CHAT: Final = OpenAIChat()
_RESPONSES: Final = OpenAIResponses()
_ANTHROPIC: Final = AnthropicMessages()


@router.post("/openai/v1/chat/completions")
async def chat_completions(request: Request) -> Response:
    """OpenAI's Chat Completions; a header such as `X-Remanence-Conversation` names the tape."""
    forwarder: Forwarder = request.app.state.openai
    return await forwarder.forward(request, "v1/chat/completions", _CHAT)


@router.post("/openai/v1/responses")
async def responses(request: Request) -> Response:
    """OpenAI's Responses, where the input is the whole conversation."""
    forwarder: Forwarder = request.app.state.openai
    return await forwarder.forward(request, "v1/responses", _RESPONSES)


@router.post("/anthropic/v1/messages")
async def messages(request: Request) -> Response:
    """Anthropic's Messages; a header such as `X-Remanence-Conversation` names the tape."""
    forwarder: Forwarder = request.app.state.anthropic
    return await forwarder.forward(request, "v1/messages", _ANTHROPIC)


@router.api_route("/openai/v1/{path:path}", methods=_METHODS, include_in_schema=False)
async def openai(request: Request, path: str) -> Response:
    """Send any other request on as it is, such as `models`."""
    forwarder: Forwarder = request.app.state.openai
    return await forwarder.forward(request, _sent_path(request, "/openai/", path))


@router.api_route("/anthropic/v1/{path:path}", methods=_METHODS, include_in_schema=False)
async def anthropic(request: Request, path: str) -> Response:
    """Send any other request on as it is, such as `messages/count_tokens`."""
    forwarder: Forwarder = request.app.state.anthropic
    return await forwarder.forward(request, _sent_path(request, "/anthropic/", path))


def _sent_path(request: Request, prefix: str, path: str) -> str:
    """Return the path below *prefix* as the client sent it, as `%2F` is no `/`."""
    raw: bytes = request.scope.get("raw_path") or b""
    _, found, rest = raw.partition(f"{prefix}v1/".encode())
    return f"v1/{rest.decode('latin-1') if found else quote(path)}"
