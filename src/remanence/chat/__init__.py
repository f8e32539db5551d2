"""Chats with a model that has memory."""

from remanence.chat.chat import Chat
from remanence.chat.events import ChatEvent, Done, Reply, TextDelta, ToolCalled, ToolReturned
from remanence.chat.models import (
    ChatAnswer,
    ChatModel,
    ChatRequest,
    ChatSource,
    calls_tools,
    open_chat_model,
)
from remanence.chat.questions import BROKEN_OFF

__all__ = [
    "BROKEN_OFF",
    "Chat",
    "ChatAnswer",
    "ChatEvent",
    "ChatModel",
    "ChatRequest",
    "ChatSource",
    "Done",
    "Reply",
    "TextDelta",
    "ToolCalled",
    "ToolReturned",
    "calls_tools",
    "open_chat_model",
]
