"""The sentences of messages, as the learned scores read them."""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from remanence.notes.elements import element_spans
from remanence.notes.excerpts import beginning, ending
from remanence.observers.addresses import without_address
from remanence.observers.extractive.letters import handed_over
from remanence.observers.extractive.quoted_text import (
    find_handover,
    is_mostly_inside,
    quoted_spans,
)
from remanence.observers.extractive.readable import output_spans
from remanence.observers.extractive.sentences import Span, both_ends_of, sentences
from remanence.observers.learned.features import Line, Role
from remanence.observers.learned.openings import hands_over_in_sentence
from remanence.observers.learned.score import scorer
from remanence.types import Message, TextPart, ToolResultPart

_STEP = 100
"""Sentences of a text from one step to the next."""
_MAX_HALF = 10_000
"""Characters at the beginning and at the end of a text that are read: people rarely write more."""
_MAX_HALF_SENTENCES = 200
"""Sentences at the beginning and at the end that are read, as thousands of short lines take minutes."""


class SpokenText(NamedTuple):
    """A text of a message or of a tool's result in it, with its sentences and where they are."""

    message: Message
    role: Role
    text: str
    spans: tuple[Span, ...]
    lines: tuple[Line, ...]


def spoken_texts(messages: Sequence[Message]) -> Iterator[SpokenText | None]:
    """Yield the texts of messages and of their tool results, None after each step of a long one.

    A system message has none. Of a very long text, both ends are read. Mentions with which a user's
    message begins are left out.
    """
    last: Line | None = None
    for message in messages:
        for role, whole in _parts(message):
            text, whole_sentences = _read(without_address(whole) if role == "user" else whole)
            elements = element_spans(text) if role == "user" else ()
            quoted = (*quoted_spans(text), *output_spans(text), *(Span(*each) for each in elements))
            spans: list[Span] = []
            said: list[Line] = []
            opening: Line | None = None
            for span in whole_sentences:
                line = Line(text[span.start : span.end], role)
                is_quoted = is_mostly_inside(span, quoted)
                said.append(line._replace(reply_to=last, opening=opening, is_quoted=is_quoted))
                opening = opening or line
                spans.append(span)
                if len(spans) % _STEP == 0:
                    yield None
            own = _mark_handed_over(text, spans, said) if role == "user" else tuple(said)
            yield SpokenText(message, role, text, tuple(spans), own)
            last = Line(own[-1].text, role) if own else last


def spoken_lines(messages: Sequence[Message]) -> Iterator[Line]:
    """Yield the sentences of messages and of their tool results."""
    for said in filter(None, spoken_texts(messages)):
        yield from said.lines


def _read(text: str) -> tuple[str, Sequence[Span]]:
    """Return a text with its sentences; of a very long one both ends, with those that are whole."""
    if len(text) <= 2 * _MAX_HALF:
        return text, both_ends_of(tuple(sentences(text)), _MAX_HALF_SENTENCES)
    head, tail = beginning(text, _MAX_HALF), ending(text, _MAX_HALF)
    at = len(head) + 1
    before = tuple(sentences(head))[:-1][:_MAX_HALF_SENTENCES]
    behind = tuple(sentences(tail))[1:][-_MAX_HALF_SENTENCES:]
    return f"{head}\n{tail}", (*before, *(Span(at + start, at + end) for start, end in behind))


def _mark_handed_over(text: str, spans: Sequence[Span], own: Sequence[Line]) -> tuple[Line, ...]:
    found = find_handover(text, spans, map(scorer().score, own))
    if found is None:
        return tuple(own)
    behind = found if hands_over_in_sentence(own[found].text) else found + 1
    end = handed_over(text, spans[found].end).end
    return tuple(
        line._replace(is_handed_over=number >= behind and spans[number].start < end)
        for number, line in enumerate(own)
    )


def _parts(message: Message) -> Iterator[tuple[Role, str]]:
    if message.role == "system":
        return
    for part in message.content:
        if isinstance(part, TextPart):
            yield message.role, part.text
        elif isinstance(part, ToolResultPart):
            yield "tool", part.text
