"""The sentences of messages, as the learned scores read them."""

from collections.abc import Iterator, Sequence

from remanence.observers.extractive.sentences import sentences
from remanence.observers.learned.features import Line, Role, lines
from remanence.types import Message, TextPart, ToolResultPart


def spoken_lines(messages: Sequence[Message]) -> Iterator[tuple[Line, Message]]:
    """Yield the sentences of messages and of their tool results, each with its message.

    A system message has none.
    """
    sources: list[Message] = []

    def texts() -> Iterator[tuple[Role, list[str]]]:
        for message in messages:
            for role, text in _parts(message):
                found = [text[span.start : span.end] for span in sentences(text)]
                sources.extend([message] * len(found))
                yield role, found

    for number, line in enumerate(lines(texts())):
        yield line, sources[number]


def _parts(message: Message) -> Iterator[tuple[Role, str]]:
    if message.role == "system":
        return
    for part in message.content:
        if isinstance(part, TextPart):
            yield message.role, part.text
        elif isinstance(part, ToolResultPart):
            yield "tool", part.text
