"""The parts of a provider's API that a proxy has to know."""

from collections.abc import Sequence
from typing import Any, Protocol, TypeAlias

from remanence.types import Message

JsonObject: TypeAlias = dict[str, Any]  # a provider's: its shape is the provider's


class Answer(Protocol):
    """An answer, put together from the events of a stream or read whole."""

    @property
    def message(self) -> JsonObject | None:
        """The assistant's message, in the form in which a client resends it; None until its end."""

    def feed(self, event: JsonObject) -> None:
        """Take an event of a stream."""

    def take(self, response: JsonObject) -> None:
        """Take a response without a stream."""


class ProxiedAPI(Protocol):
    """Reads and rewrites the conversation in a request; all else stays as it is."""

    @property
    def provider(self) -> str: ...

    def leading(self, messages: Sequence[JsonObject]) -> int:
        """Return the number of messages before the conversation, such as a system prompt."""

    def read(self, message: JsonObject) -> Message:
        """Read a message.

        Raises:
            InvalidMessage: it is not of this API.
        """

    def render(self, message: Message) -> list[JsonObject]:
        """Write a message that the client no longer has, or a part of one."""

    def rewrite(self, body: JsonObject, notes: str, tail: Sequence[JsonObject]) -> JsonObject:
        """Return the request with its conversation as notes, if any, and the end of it."""

    def answer(self) -> Answer: ...


def with_text(message: JsonObject, text: str) -> JsonObject:
    """Return the message with one more text at its end."""
    content = message.get("content")
    parts = [{"type": "text", "text": content}] if isinstance(content, str) else list(content or ())
    return {**message, "content": [*parts, {"type": "text", "text": text}]}
