"""A chat with a model on a real socket, and its requests in the order of their prompt."""

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from tests.wire.dialects import Body
from tests.wire.reach import Wire

from remanence import Chat, Conversation, Memory, Observer, Policy, Reflector, Reply
from remanence.chat import Done
from remanence.providers import ModelOptions
from remanence.testing import FixedClock

SYSTEM = "You are a travel agent who answers in one sentence."
ONE_TRY = ModelOptions(attempts=1, timeout_seconds=60)
SMALL = Policy(
    observe_tokens=400,
    tail_tokens=1_000,
    tail_keep_tokens=300,
    keep_last=2,
    reflect_tokens=(150, 150, 600),
)
"""A policy under which a conversation of 50 short turns is observed, activated and reflected."""


@asynccontextmanager
async def conversing(
    policy: Policy | None = None,
    *,
    clock: FixedClock | None = None,
    observer: Observer | None = None,
    reflector: Reflector | None = None,
) -> AsyncIterator[Conversation]:
    """The conversation of a memory."""
    async with Memory.open(
        "sqlite:///:memory:",
        policy=policy or Policy(),
        clock=clock or FixedClock(),
        observer=observer,
        reflector=reflector,
    ) as memory:
        yield memory.conversation("trip", user="ana")


def chat_of(conversation: Conversation, wire: Wire, **settings: Any) -> Chat:  # the chat's own
    defaults: dict[str, Any] = {"model": wire.spec, "system": SYSTEM, "options": ONE_TRY}
    return Chat(conversation, **defaults | settings)


async def said(chat: Chat, wire: Wire, text: str | None = None) -> Reply:
    """The reply to a text, streamed where the wire is."""
    if not wire.stream:
        return await chat.send(text)
    events = [event async for event in chat.stream(text)]
    assert isinstance(events[-1], Done)
    return events[-1].reply


def texts(body: Body) -> list[str]:
    """The texts of a request of either protocol, in the order of its prompt."""
    pieces = [block["text"] for block in body.get("system", ())]
    for message in body["messages"]:
        content = message["content"] or []
        blocks = [{"type": "text", "text": content}] if isinstance(content, str) else content
        pieces += [block["text"] for block in blocks if block["type"] == "text"]
    return pieces


def pieces(body: Body) -> list[str]:
    """The blocks of a request with their roles, without marks and what is for this call alone."""
    found = [_bytes("system", block) for block in body.get("system", ())]
    for message in body["messages"]:
        rest = {key: value for key, value in message.items() if key not in ("role", "content")}
        content = message["content"] or []
        blocks = [{"type": "text", "text": content}] if isinstance(content, str) else content
        found += [_bytes(message["role"], block) for block in [*blocks, rest] if block]
    return [piece for piece in found if "<memory-context>" not in piece]


def cached(body: Body) -> list[str]:
    """The blocks that a cache may keep: up to the last mark, or where nothing is marked, all."""
    blocks = list(body.get("system", ()))
    for message in body["messages"]:
        blocks += message["content"] if isinstance(message["content"], list) else [{}]
    marks = [index for index, block in enumerate(blocks) if "cache_control" in block]
    return pieces(body)[: marks[-1] + 1] if marks else pieces(body)


def _bytes(role: str, block: Body) -> str:
    plain = {key: value for key, value in block.items() if key != "cache_control"}
    return f"{role} {json.dumps(plain, ensure_ascii=False)}"
