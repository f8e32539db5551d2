"""Where a text gives the words of somebody else: quoted, handed over, in a letter, or in a mail."""

import re
from collections.abc import Iterable, Iterator
from itertools import islice

from remanence.observers.extractive.letters import letters_span
from remanence.observers.extractive.quotations import MIN_QUOTATION, QUOTATION
from remanence.observers.extractive.sentence_scores import is_filler
from remanence.observers.extractive.sentences import Span, sentences
from remanence.observers.learned.openings import hands_over
from remanence.observers.learned.score import Scores

_QUOTED_LINES = re.compile(r"(?:^[^\S\n]*+>[^\n]*+(?:\n|\Z))++", re.MULTILINE)
_HEADS = re.compile(r"(?<=[:：])[^\S\n]*\n")
_MARKS_BEHIND = 2
_MAX_SENTENCES = 4
"""Sentences at the beginning of a message of which one may hand over a text."""


def is_inside(span: Span, quoted: Iterable[Span]) -> bool:
    """Return whether a sentence, without the marks around it, is in one of the stretches."""
    return any(start - 1 <= span.start and span.end <= end + _MARKS_BEHIND for start, end in quoted)


def is_mostly_inside(span: Span, quoted: Iterable[Span]) -> bool:
    """Return whether more than half of a sentence is in one of the stretches: "My boss said “…”.".

    So is one that ends before the stretch does: "My boss said “Hello.".
    """
    half = (span.end - span.start) / 2
    return any(
        min(span.end, end) - max(span.start, start) > half
        or span.start < start < span.end < end - _MARKS_BEHIND
        for start, end in quoted
    )


def quoted_spans(text: str) -> Iterator[Span]:
    """Yield the stretches of a text that are quoted, and its letters and mails as one."""
    for lines in _QUOTED_LINES.finditer(text):
        yield Span(*lines.span())
    for match in QUOTATION.finditer(text):
        if len(match[0]) - 2 >= MIN_QUOTATION or _has_sentences(match[0][1:-1]):
            yield Span(match.start() + 1, match.end() - 1)
    letters = letters_span(text)
    if letters:
        yield letters


def _has_sentences(quotation: str) -> bool:
    """Return whether a short quotation has more than one sentence, unlike a name or a word."""
    return "\n\n" not in quotation and len(tuple(sentences(quotation))) > 1


def find_handover(text: str, spans: Iterable[Span], scores: Iterable[Scores]) -> int | None:
    """Return the number of the sentence of a user's message behind which another's words follow.

    It is the first, the next behind remarks such as "Hi!", or one near the beginning that ends its
    line with a colon. None if the user goes on speaking.
    """
    follows_remarks = True
    for number, (span, own) in enumerate(islice(zip(spans, scores, strict=True), _MAX_SENTENCES)):
        said = text[span.start : span.end]
        if (follows_remarks or _HEADS.match(text, span.end)) and hands_over(said):
            return number
        follows_remarks = follows_remarks and is_filler(own)
    return None
