"""One call of a chat's model, and its answer."""

from dataclasses import dataclass
from typing import TypeAlias

from remanence.context.context import Context
from remanence.providers.requests import ProviderAnswer
from remanence.types import ConversationRef, Purpose, Tool


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


ChatAnswer: TypeAlias = ProviderAnswer
