"""Memory for LLM agents: every message on a durable tape, every context bounded."""

import importlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from remanence.chat import Chat, Reply
    from remanence.context.context import Context
    from remanence.conversation import Conversation
    from remanence.engine.hooks import Hooks
    from remanence.errors import RemanenceError
    from remanence.memory import Memory
    from remanence.policy.policy import Policy
    from remanence.protocols import Embedder, Observer, Reflector
    from remanence.settings import Settings
    from remanence.tokens import count_tokens
    from remanence.tools import memory_tools
    from remanence.types import Budget, Fact, MemoryState, Message, Note, Receipt, Segment, Tool

_HOMES = {
    "Budget": "types",
    "Chat": "chat",
    "Context": "context.context",
    "Conversation": "conversation",
    "Embedder": "protocols",
    "Fact": "types",
    "Hooks": "engine.hooks",
    "Memory": "memory",
    "MemoryState": "types",
    "Message": "types",
    "Note": "types",
    "Observer": "protocols",
    "Policy": "policy.policy",
    "Receipt": "types",
    "Reflector": "protocols",
    "RemanenceError": "errors",
    "Reply": "chat",
    "Segment": "types",
    "Settings": "settings",
    "Tool": "types",
    "count_tokens": "tokens",
    "memory_tools": "tools",
}
"""Module of each public name. They are imported on first use, so that a command line that only
prints its help does not wait for the database and telemetry packages."""

__all__ = [
    "Budget",
    "Chat",
    "Context",
    "Conversation",
    "Embedder",
    "Fact",
    "Hooks",
    "Memory",
    "MemoryState",
    "Message",
    "Note",
    "Observer",
    "Policy",
    "Receipt",
    "Reflector",
    "RemanenceError",
    "Reply",
    "Segment",
    "Settings",
    "Tool",
    "count_tokens",
    "memory_tools",
]


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module 'remanence' has no attribute {name!r}")
    return getattr(importlib.import_module(f"remanence.{_HOMES[name]}"), name)


def __dir__() -> list[str]:
    return __all__
