"""One call of a chat's model, and its answer."""

from dataclasses import dataclass

from remanence.context.context import Context
from remanence.types import ConversationRef, Part, Purpose, Tool, Usage


@dataclass(frozen=True, slots=True, kw_only=True)
class ChatRequest:
    """A request to a model: a context, and the tools that it may call.

    With `conclude` it must answer without a tool call.
    """

    context: Context
    tools: tuple[Tool, ...]
    conclude: bool
    conversation: ConversationRef
    user: str | None

    @property
    def purpose(self) -> Purpose:
        """The purpose of the call in the ledger."""
        return "chat"


@dataclass(frozen=True, slots=True, kw_only=True)
class ChatAnswer:
    """A model's answer; `complete` is false if it was cut off at the output limit."""

    content: tuple[Part, ...]
    complete: bool
    usage: Usage
