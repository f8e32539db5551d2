"""The sentences of messages, as the learned scores read them."""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from remanence.observers.extractive.handover import find_handover
from remanence.observers.extractive.quoted_text import is_mostly_inside, quoted_spans
from remanence.observers.extractive.sentences import Span, sentences
from remanence.observers.learned.features import Line, Role, lines
from remanence.observers.learned.score import scorer
from remanence.types import Message, TextPart, ToolResultPart


class SpokenText(NamedTuple):
    """A text of a message or of a tool's result in it, with its sentences and where they are."""

    message: Message
    role: Role
    text: str
    spans: tuple[Span, ...]
    lines: tuple[Line, ...]


def spoken_texts(messages: Sequence[Message]) -> Iterator[SpokenText]:
    """Yield the texts of messages and of their tool results; a system message has none."""
    last: Line | None = None
    for message in messages:
        for role, text in _parts(message):
            quoted = tuple(quoted_spans(text))
            spans = tuple(sentences(text))
            said = lines([(role, [text[span.start : span.end] for span in spans])])
            own = tuple(
                line._replace(reply_to=last, is_quoted=is_mostly_inside(span, quoted))
                for line, span in zip(said, spans, strict=True)
            )
            if role == "user":
                own = _mark_handed_over(own)
            yield SpokenText(message, role, text, spans, own)
            last = Line(own[-1].text, role) if own else last


def spoken_lines(messages: Sequence[Message]) -> Iterator[tuple[Line, Message]]:
    """Yield the sentences of messages and of their tool results, each with its message."""
    for said in spoken_texts(messages):
        yield from ((line, said.message) for line in said.lines)


def _mark_handed_over(own: tuple[Line, ...]) -> tuple[Line, ...]:
    found = find_handover((line.text, scorer().score(line)) for line in own[:-1])
    behind = len(own) if found is None else found + 1
    return (*own[:behind], *(line._replace(is_handed_over=True) for line in own[behind:]))


def _parts(message: Message) -> Iterator[tuple[Role, str]]:
    if message.role == "system":
        return
    for part in message.content:
        if isinstance(part, TextPart):
            yield message.role, part.text
        elif isinstance(part, ToolResultPart):
            yield "tool", part.text
