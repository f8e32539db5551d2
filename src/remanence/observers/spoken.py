"""The sentences of messages, as the learned scores read them."""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from remanence.observers.extractive.quoted_text import find_handover, is_mostly_inside, quoted_spans
from remanence.observers.extractive.sentences import Span, sentences
from remanence.observers.learned.features import Line, Role
from remanence.observers.learned.score import scorer
from remanence.types import Message, TextPart, ToolResultPart

_STEP = 100
"""Sentences of a text from one step to the next."""


class SpokenText(NamedTuple):
    """A text of a message or of a tool's result in it, with its sentences and where they are."""

    message: Message
    role: Role
    text: str
    spans: tuple[Span, ...]
    lines: tuple[Line, ...]


def spoken_texts(messages: Sequence[Message]) -> Iterator[SpokenText | None]:
    """Yield the texts of messages and of their tool results, None after each step of a long one.

    A system message has none.
    """
    last: Line | None = None
    for message in messages:
        for role, text in _parts(message):
            quoted = tuple(quoted_spans(text))
            spans: list[Span] = []
            said: list[Line] = []
            opening: Line | None = None
            for span in sentences(text):
                line = Line(text[span.start : span.end], role)
                is_quoted = is_mostly_inside(span, quoted)
                said.append(line._replace(reply_to=last, opening=opening, is_quoted=is_quoted))
                opening = opening or line
                spans.append(span)
                if len(spans) % _STEP == 0:
                    yield None
            own = _mark_handed_over(tuple(said)) if role == "user" else tuple(said)
            yield SpokenText(message, role, text, tuple(spans), own)
            last = Line(own[-1].text, role) if own else last


def spoken_lines(messages: Sequence[Message]) -> Iterator[Line]:
    """Yield the sentences of messages and of their tool results."""
    for said in filter(None, spoken_texts(messages)):
        yield from said.lines


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
