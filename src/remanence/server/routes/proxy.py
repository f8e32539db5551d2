"""Drop-in proxies: the paths of a provider, with memory added."""

from collections.abc import Mapping
from typing import Any, Final
from urllib.parse import quote, unquote

from fastapi import APIRouter, Request, Response
from starlette.types import Scope

from remanence.server.paths import path_of
from remanence.server.problems import MEDIA_TYPE, METHODS, declare
from remanence.server.proxy.anthropic import AnthropicMessages
from remanence.server.proxy.forwarding import Forwarder
from remanence.server.proxy.naming import CONVERSATION, MEMORY, USER
from remanence.server.proxy.openai import OpenAIChat
from remanence.server.proxy.responses import OpenAIResponses

router = APIRouter(tags=["proxy"])

_CHAT: Final = OpenAIChat()
_RESPONSES: Final = OpenAIResponses()
_ANTHROPIC: Final = AnthropicMessages()

_STREAMED: Final = ("/openai/v1/", "/anthropic/v1/")
_TURNS: Final = ("/openai/v1/chat/completions", "/openai/v1/responses", "/anthropic/v1/messages")

_OBJECT: Final = {"application/json": {"schema": {"type": "object"}}}
_RELAYED: Final[dict[int | str, dict[str, Any]]] = {  # FastAPI's type
    200: {"description": "The provider's.", "content": {**_OBJECT, "text/event-stream": {}}},
    **{
        status: {
            "description": f"The provider's, or a problem of ours: {own['description']}",
            "content": {**_OBJECT, **own["content"]},
        }
        for status, own in declare("invalid_message").items()
    },
    **{
        status: {"description": "The provider's.", "content": {**_OBJECT, MEDIA_TYPE: {}}}
        for status in ("4XX", "5XX")
    },
}
"""Responses of a provider, and our own problems."""

_HEADERS: Final = {
    CONVERSATION: "The name of the conversation.",
    USER: "The user of the conversation, if it has one.",
    MEMORY: "`off` leaves the memory out.",
}


def _turn(**example: object) -> Mapping[str, Any]:  # as FastAPI takes a route
    """Return the declaration of a turn; the provider validates the body."""
    headers = [
        {"name": name, "in": "header", "description": about, "schema": {"type": "string"}}
        for name, about in _HEADERS.items()
    ]
    body = {"application/json": {"schema": {"type": "object"}, "example": example}}
    extra = {"parameters": headers, "requestBody": {"required": True, "content": body}}
    return {"responses": _RELAYED, "openapi_extra": extra}


_ABOVE: Final = (
    "the path has '.' or '..', or is percent-encoded more than twice: only paths below the base URL are "
    "forwarded"
)
_MAX_ENCODINGS: Final = 2

_WEBSOCKET: Final = (
    "the proxy forwards no WebSocket, as memory does not read one: connect to the provider itself, or "
    "use its HTTP API"
)

_SAID: Final = [{"role": "user", "content": "Which gate?"}]


def is_streamed(scope: Scope) -> bool:
    """Return whether the body of a request is forwarded as it arrives, as memory does not read it."""
    path = path_of(scope)
    return path.startswith(_STREAMED) and path not in _TURNS


@router.post("/openai/v1/chat/completions", **_turn(model="gpt-5", messages=_SAID))
async def chat_completions(request: Request) -> Response:
    """OpenAI's Chat Completions; a header such as `X-Remanence-Conversation` names the conversation."""
    forwarder: Forwarder = request.app.state.openai
    return await forwarder.forward(request, "v1/chat/completions", _CHAT)


@router.post("/openai/v1/responses", **_turn(model="gpt-5", input=_SAID))
async def responses(request: Request) -> Response:
    """OpenAI's Responses, if the input is the whole conversation."""
    forwarder: Forwarder = request.app.state.openai
    return await forwarder.forward(request, "v1/responses", _RESPONSES)


@router.post("/anthropic/messages", include_in_schema=False)  # of the Vercel AI SDK
@router.post(
    "/anthropic/v1/messages", **_turn(model="claude-haiku-4-5", max_tokens=900, messages=_SAID)
)
async def messages(request: Request) -> Response:
    """Anthropic's Messages; a header such as `X-Remanence-Conversation` names the conversation."""
    forwarder: Forwarder = request.app.state.anthropic
    return await forwarder.forward(request, "v1/messages", _ANTHROPIC)


@router.api_route("/openai/v1/{path:path}", methods=[*METHODS], include_in_schema=False)
async def others_of_openai(request: Request, path: str) -> Response:
    """Forward any other request unchanged, such as `models`."""
    return await _forward_unchanged(request, request.app.state.openai, "/openai/", path)


@router.api_route("/anthropic/v1/{path:path}", methods=[*METHODS], include_in_schema=False)
async def others_of_anthropic(request: Request, path: str) -> Response:
    """Forward any other request unchanged, such as `messages/count_tokens`."""
    return await _forward_unchanged(request, request.app.state.anthropic, "/anthropic/", path)


@router.head("/openai", include_in_schema=False)
@router.head("/openai/v1", include_in_schema=False)
async def probe_openai(request: Request) -> Response:
    """Forward a probe of the base URL, with which clients open a connection."""
    forwarder: Forwarder = request.app.state.openai
    return await forwarder.forward(request, path_of(request.scope).removeprefix("/openai")[1:])


@router.head("/anthropic", include_in_schema=False)
@router.head("/anthropic/v1", include_in_schema=False)
async def probe_anthropic(request: Request) -> Response:
    """Forward a probe of the base URL, as of Claude Code when it starts."""
    forwarder: Forwarder = request.app.state.anthropic
    return await forwarder.forward(request, path_of(request.scope).removeprefix("/anthropic")[1:])


async def _forward_unchanged(
    request: Request, forwarder: Forwarder, prefix: str, path: str
) -> Response:
    sent = _sent_path(request, prefix, path)
    if request.headers.get("upgrade", "").lower() == "websocket":
        return forwarder.refuse(_WEBSOCKET, 501)
    return forwarder.refuse(_ABOVE) if _has_dots(sent) else await forwarder.forward(request, sent)


def _has_dots(path: str) -> bool:
    """Return whether a server may read a part of *path* as `.` or `..`, however it is encoded.

    True also for a path that is encoded more than twice, as each decoding takes time.
    """
    for _ in range(_MAX_ENCODINGS):
        path = unquote(path)
    if unquote(path) != path:
        return True
    parts = path.replace("\\", "/").split("/")
    return any(part.partition(";")[0].strip() in (".", "..") for part in parts)


def _sent_path(request: Request, prefix: str, path: str) -> str:
    """Return the path below *prefix* as the client sent it, as `%2F` differs from `/`."""
    raw: bytes = request.scope.get("raw_path") or b""
    _, found, rest = raw.partition(f"{prefix}v1/".encode())
    return f"v1/{rest.decode('latin-1') if found else quote(path, safe='/%')}"
