"""The sentences of messages, as the learned scores read them."""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from remanence.observers.extractive.sentences import sentences
from remanence.observers.learned.features import Line, Role, lines
from remanence.types import Message, TextPart, ToolResultPart


class Spoken(NamedTuple):
    """A line and the message that it belongs to."""

    line: Line
    message: Message


def spoken_lines(messages: Sequence[Message]) -> Iterator[Spoken]:
    """Yield the sentences of messages and of their tool results; a system message has none."""
    sources: list[Message] = []

    def texts() -> Iterator[tuple[Role, list[str]]]:
        for message in messages:
            for role, text in _parts(message):
                found = [text[span.start : span.end] for span in sentences(text)]
                sources.extend([message] * len(found))
                yield role, found

    for number, line in enumerate(lines(texts())):
        yield Spoken(line, sources[number])


def _parts(message: Message) -> Iterator[tuple[Role, str]]:
    if message.role == "system":
        return
    for part in message.content:
        if isinstance(part, TextPart):
            yield message.role, part.text
        elif isinstance(part, ToolResultPart):
            yield "tool", part.text
