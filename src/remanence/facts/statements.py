"""Statements of users: sentences, with those and with the question without which they say little."""

import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from remanence.dates import resolve_dates
from remanence.notes.redact import redact
from remanence.observers.extractive.dependence import (
    find_question,
    is_fragment,
    join_scores,
    may_join,
    says_little,
)
from remanence.observers.extractive.passage import Quotation
from remanence.observers.extractive.sentence_scores import is_filler, is_standing
from remanence.observers.extractive.sentences import Span
from remanence.observers.learned.features import Line
from remanence.observers.learned.score import Scores, scorer
from remanence.observers.learned.statements import STATED, statement_scores
from remanence.observers.spoken import SpokenText, spoken_texts
from remanence.types import Message

_MAX_CHARACTERS = 300
_ASKS = re.compile(r"[?？؟]\s*$")


class Statement(NamedTuple):
    """Sentences of a message that a user states, with the scores of them as one.

    The first may depend on a question, which is of the message before.
    """

    text: str
    lines: tuple[Line, ...]
    scores: Scores
    source: Message
    question: Quotation | None = None

    @property
    def summary(self) -> str:
        """The statement as a fact has it: dates are resolved, secrets redacted."""
        said = summarize(self.text, self.source)
        return redact(self.question.before(said)) if self.question else said

    @property
    def first_seq(self) -> int:
        return self.question.seq if self.question else self.source.seq


def statements(messages: Sequence[Message]) -> Iterator[Statement | None]:
    """Yield what users state in messages, None after each step.

    A sentence that says little is joined to those before it in its line. One that opens its message
    has the question that it answers before it; it is none if nobody asked.
    """
    asked: SpokenText | None = None
    before: SpokenText | None = None
    for said in spoken_texts(messages):
        if before is not None and before.message is not said.message:
            asked = before
        if said.role == "user":
            yield from _statements_of(said, _question(asked, said.message))
        before = said


def states(line: Line) -> bool:
    """Return whether a line is a statement that its speaker makes."""
    if line.is_quoted or len(line.text) > _MAX_CHARACTERS or _ASKS.search(line.text):
        return False
    return statement_scores(line)[STATED] >= 0


def summarize(text: str, source: Message) -> str:
    """Return words of a message as a fact has them: dates are resolved, secrets redacted."""
    said = resolve_dates(text, source.created_at) if source.created_at else text
    return redact(" ".join(said.split()))


def is_user(source: Message, user: str) -> bool:
    """Return whether the speaker of a message of the role `user` is the user of that id."""
    return source.speaker.casefold() in {"user", user.casefold()}


def _statements_of(said: SpokenText, question: Quotation | None) -> Iterator[Statement | None]:
    opens, is_answered = True, False
    for span, lines, scores in _passages(said):
        first = lines[0]
        stands_alone = is_standing(first.text, scores)
        lacks_question = opens and not stands_alone and says_little(first.text, scores)
        is_unclear = not stands_alone and is_fragment(first.text, scores)
        answered = question if lacks_question and (is_unclear or not is_answered) else None
        opens = opens and is_filler(scores) and not _ASKS.search(first.text)
        if (answered or not is_unclear) and any(map(states, lines)):
            text = said.text[span.start : span.end]
            yield Statement(text, lines, scores, said.message, answered)
            is_answered = True
        yield None


def _passages(said: SpokenText) -> Iterator[tuple[Span, tuple[Line, ...], Scores]]:
    """Yield the sentences of a text, each with those after it that say little without it."""
    passage: tuple[Span, tuple[Line, ...], Scores] | None = None
    for span, line in zip(said.spans, said.lines, strict=True):
        own = scorer().score(line)
        if passage is not None and _goes_on(said, passage, span, line, own):
            first, lines, scores = passage
            passage = Span(first.start, span.end), (*lines, line), join_scores(scores, own)
            continue
        if passage is not None:
            yield passage
        passage = span, (line,), own
    if passage is not None:
        yield passage


def _goes_on(
    said: SpokenText,
    passage: tuple[Span, tuple[Line, ...], Scores],
    span: Span,
    line: Line,
    own: Scores,
) -> bool:
    first, lines, scores = passage
    if line.is_quoted or lines[-1].is_quoted or _ASKS.search(line.text):
        return False
    return says_little(line.text, own) and may_join(said.text, first, span, scores)


def _question(asked: SpokenText | None, answer: Message) -> Quotation | None:
    """Return the question that a text ends with; "Shall I?" has the sentence before it."""
    if asked is None or asked.role == "tool" or not asked.lines:
        return None
    *before, last = asked.lines[-2:]
    scores = scorer().score(last)
    is_vague = is_filler(scores) or says_little(last.text, scores)
    texts = [line.text for line in (*before, last)] if is_vague else [last.text]
    found = find_question(" ".join(texts), asked.message, answer)
    return found or find_question(last.text, asked.message, answer)
