"""Statements of users: sentences, with those and with the words before without which they say little."""

import re
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from math import inf
from operator import itemgetter
from typing import NamedTuple

from remanence.dates import resolve_dates
from remanence.notes.redact import redact
from remanence.observers.extractive.dependence import (
    find_answered,
    is_fragment,
    is_remark,
    join_scores,
    may_join,
    says_little,
)
from remanence.observers.extractive.passage import Quotation
from remanence.observers.extractive.sentence_scores import is_filler, is_standing
from remanence.observers.extractive.sentences import Span
from remanence.observers.learned.features import Line
from remanence.observers.learned.pairs import may_correct, score_of_end
from remanence.observers.learned.score import Scores, scorer
from remanence.observers.learned.statements import STATED, statement_scores
from remanence.observers.spoken import SpokenText, spoken_texts
from remanence.types import Message

_MAX_CHARACTERS = 300
_ASKS = re.compile(r"[?？؟]\s*$")
_NEAR = 4
"""Messages, and statements, back to the first that a few words after a reply may correct."""
_MAX_REPLY = 4
"""Sentences at the end of a reply that say what those words are about."""
_MAX_CORRECTED = 160
"""Characters of a statement that is quoted before the words that correct it."""
_CORRECTS = -3.0
"""The least score by its cutoff that a reply and those words end a statement.

It is lower than for two statements, as a reply mostly is about the statement before, and as a
quoted statement is not lost.
"""


class Statement(NamedTuple):
    """Sentences of a message that a user states, with the scores of them as one.

    The first may depend on what is `quoted`: a question or a proposal in the message before, perhaps
    behind what the user had said of the same thing.
    """

    text: str
    lines: tuple[Line, ...]
    scores: Scores
    source: Message
    quoted: tuple[Quotation, ...] = ()

    @property
    def summary(self) -> str:
        """The statement as a fact has it: dates are resolved, secrets redacted."""
        said = summarize(self.text, self.source)
        for quotation in reversed(self.quoted):
            said = redact(quotation.before(said))
        return said

    @property
    def first_seq(self) -> int:
        return self.quoted[0].seq if self.quoted else self.source.seq


def statements(messages: Sequence[Message]) -> Iterator[Statement | None]:
    """Yield what users state in messages, None after each step.

    A sentence that says little is joined to those before it in its line. One that opens its message
    is preceded by the question or the proposal that it answers, and is left out if there is neither.
    """
    reply: SpokenText | None = None
    before: SpokenText | None = None
    earlier: deque[Statement] = deque(maxlen=_NEAR)
    for said in spoken_texts(messages):
        if before is not None and before.message is not said.message:
            reply = before
        if said.role == "user":
            for statement in _statements_of(said, reply, earlier):
                if statement is not None:
                    earlier.append(statement)
                yield statement
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


def _statements_of(
    said: SpokenText, reply: SpokenText | None, earlier: Iterable[Statement]
) -> Iterator[Statement | None]:
    before = _end(reply, said.message) if reply else None
    opens, is_answered = True, False
    for span, lines, scores in _passages(said):
        first = lines[0]
        text = said.text[span.start : span.end]
        stands_alone = is_standing(first.text, scores)
        is_unclear = not stands_alone and is_fragment(first.text, scores)
        quoted: tuple[Quotation, ...] = ()
        if before and reply and opens and not stands_alone and says_little(first.text, scores):
            if before.asks:
                quoted = (before,) if is_unclear or not is_answered else ()
            elif is_unclear and not is_filler(scores):
                quoted = (*_find_corrected(text, said.message, reply, earlier), before)
        opens = opens and is_filler(scores) and not _ASKS.search(first.text)
        if (quoted or not is_unclear) and any(map(states, lines)):
            yield Statement(text, lines, scores, said.message, quoted)
            is_answered = True
        yield None


def _find_corrected(
    text: str, source: Message, reply: SpokenText, earlier: Iterable[Statement]
) -> tuple[Quotation, ...]:
    """Find the statement shortly before a reply that the reply and the words after it may correct."""
    replied = " ".join(line.text for line in reply.lines[-_MAX_REPLY:])
    scored = [
        (score_of_end(one.text, f"{replied} {text}"), one)
        for one in earlier
        if one.source.speaker == source.speaker
        and source.seq - _NEAR <= one.source.seq < source.seq
        and len(one.summary) <= _MAX_CORRECTED
        and may_correct(text, one.text, replied)
    ]
    score, best = max(scored, key=itemgetter(0), default=(-inf, None))
    if best is None or score < _CORRECTS:
        return ()
    return (*best.quoted, Quotation(best.source.seq, summarize(best.text, best.source)))


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


def _end(said: SpokenText, answer: Message) -> Quotation | None:
    """Return the short sentence that a text ends with, "Shall I?" with the one before it.

    None for a remark such as "Good morning!".
    """
    if said.role == "tool" or not said.lines:
        return None
    *before, last = said.lines[-2:]
    scores = scorer().score(last)
    is_vague = is_filler(scores) or says_little(last.text, scores)
    texts = [line.text for line in (*before, last)] if is_vague else [last.text]
    found = find_answered(" ".join(texts), said.message, answer)
    found = found or find_answered(last.text, said.message, answer)
    if found is None or found.asks or not is_remark(found.text, scores):
        return found
    return None
