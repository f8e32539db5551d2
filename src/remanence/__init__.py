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
    from remanence.types import (
        Budget,
        Event,
        Fact,
        MemoryState,
        Message,
        Note,
        Receipt,
        Segment,
        Tool,
    )

    __version__: str

_HOMES = {
    "chat": ("Chat", "Reply"),
    "context.context": ("Context",),
    "conversation": ("Conversation",),
    "engine.hooks": ("Hooks",),
    "errors": ("RemanenceError",),
    "memory": ("Memory",),
    "policy.policy": ("Policy",),
    "protocols": ("Embedder", "Observer", "Reflector"),
    "settings": ("Settings",),
    "tokens": ("count_tokens",),
    "tools": ("memory_tools",),
}
"""Public names of each module; the others are in `types`. They are imported on first use, so that a
command line that only prints its help does not wait for the database and telemetry packages."""

__all__ = [
    "Budget",
    "Chat",
    "Context",
    "Conversation",
    "Embedder",
    "Event",
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
    if name == "__version__":
        return importlib.import_module("importlib.metadata").version("remanence")
    if name not in __all__:
        raise AttributeError(f"module 'remanence' has no attribute {name!r}")
    home = next((module for module, names in _HOMES.items() if name in names), "types")
    return getattr(importlib.import_module(f"remanence.{home}"), name)


def __dir__() -> list[str]:
    return __all__
