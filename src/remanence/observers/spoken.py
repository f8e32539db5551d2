"""The sentences of messages, as the learned scores read them."""

from collections.abc import Iterator

from remanence.observers.extractive.sentences import sentences
from remanence.observers.learned.features import Line, Role, Start
from remanence.types import Message, TextPart, ToolResultPart


def lines_of(message: Message) -> Iterator[Line]:
    """Yield the sentences of a message and of its tool results; a system message has none."""
    if message.role == "system":
        return
    for part in message.content:
        if isinstance(part, TextPart):
            yield from _split(part.text, _role(message.role))
        elif isinstance(part, ToolResultPart):
            yield from _split(part.text, "tool")


def _role(role: str) -> Role:
    return "assistant" if role == "assistant" else "tool" if role == "tool" else "user"


def _split(text: str, role: Role) -> Iterator[Line]:
    start: Start = "message"
    end = 0
    for span in sentences(text):
        if start != "message":
            start = "line" if "\n" in text[end : span.start] else "sentence"
        yield Line(text=text[span.start : span.end], role=role, start=start)
        start, end = "sentence", span.end
