"""The sentences of messages, as the learned scores read them."""

from collections.abc import Iterator, Sequence

from remanence.observers.extractive.quoted_text import is_inside, quoted_spans
from remanence.observers.extractive.sentences import sentences
from remanence.observers.learned.features import Line, Role, lines
from remanence.types import Message, TextPart, ToolResultPart


def spoken_lines(messages: Sequence[Message]) -> Iterator[tuple[Line, Message]]:
    """Yield the sentences of messages and of their tool results, each with its message.

    A system message has none.
    """
    sources: list[tuple[Message, bool]] = []

    def texts() -> Iterator[tuple[Role, list[str]]]:
        for message in messages:
            for role, text in _parts(message):
                quoted = tuple(quoted_spans(text))
                found = list(sentences(text))
                sources.extend((message, is_inside(span, quoted)) for span in found)
                yield role, [text[span.start : span.end] for span in found]

    for number, line in enumerate(lines(texts())):
        message, is_quoted = sources[number]
        yield line._replace(is_quoted=is_quoted), message


def _parts(message: Message) -> Iterator[tuple[Role, str]]:
    if message.role == "system":
        return
    for part in message.content:
        if isinstance(part, TextPart):
            yield message.role, part.text
        elif isinstance(part, ToolResultPart):
            yield "tool", part.text
