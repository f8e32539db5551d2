"""Where a text gives the words of somebody else: quoted, handed over, in a letter, or in a mail."""

import re
from collections.abc import Iterable, Iterator
from itertools import islice

from remanence.observers.extractive.quotations import MIN_QUOTATION, QUOTATION
from remanence.observers.extractive.sentence_scores import is_filler
from remanence.observers.extractive.sentences import Span, sentences
from remanence.observers.learned.openings import hands_over
from remanence.observers.learned.score import Scores

_SALUTATION = re.compile(
    r"(?<![,，]\n)^([^\W\d_])[^\n.!?;:,，]{1,40}[,，]\n+(?![^\n]*[,，]$)", re.MULTILINE
)
"""A line of a few words that ends with a comma, unlike those beside it: a letter begins."""
_SALUTATION_WORDS = 5
_QUOTED_LINES = re.compile(r"(?:^[^\S\n]*+>[^\n]*+(?:\n|\Z))++", re.MULTILINE)
_FIELD_NAME = r"[^\W\d_][^\n:：]{1,20}+[:：]"
_RULED_LINE = r"^[^\S\n]*-{5,}(?!(?:BEGIN|END) )[^-\n]{4,60}-{5,}[^\S\n]*$"
_FIELDS = rf"(?:^{_FIELD_NAME}[^\S\n]++\S[^\n]*+\n){{2,}}+(?P<blank>[^\S\n]*\n)?"
_MAIL = re.compile(rf"{_RULED_LINE}|{_FIELDS}", re.MULTILINE)
"""The line above a forwarded mail, unlike one of a certificate, or the fields at its head.

A blank line may follow the fields.
"""
_ADDRESS = re.compile(r"<\S+@\S+>")
_SENT = re.compile(rf"-{{5}}|{_ADDRESS.pattern}|\d:\d\d")
"""What fields have that belong to a mail: an address in angle brackets, or a time of day."""
_MANY_FIELDS = 3
"""Fields which head a mail even without a blank line after them, if one has an address."""
_FIELD = re.compile(rf"{_FIELD_NAME}\s")
_NAME_WORDS = 3
"""Words of the name that signs a letter or mail."""
_LETTER = re.compile(rf"\s*+(?:[^\n]{{1,40}}[,，:：、،][^\S\n]*\n|{_MAIL.pattern})", re.MULTILINE)
"""The salutation of a letter that is handed over, or the head of a mail."""
_SIGNATURE = re.compile(
    r"(?<=\n)(?=([^\n]{1,60}+)\n(?:[^\S\n]*+\n)?([^\n]{1,40}+)(?:\n[^\S\n]*+\n|\s*\Z))"
)
"""A short line and a shorter one below it, with a blank line or the end of the text behind both."""
_CLOSING_WORDS = 5
_ENDS_SENTENCE = re.compile(r"[.!?…。！？।؟][^\S\n]*$", re.MULTILINE)
_POSTSCRIPT = re.compile(
    r"\W*(?:(?:[^\W\d_]\.\s?){2}|[^\W\d_]{2,3}[:：]|[A-Z\u0410-\u042f]{2,3}\b)"
)
_INTRODUCTION = re.compile(r"[^\n]{0,120}[:：](?:\n|$)")
"""A line above another's words: "On Monday Ana wrote:"."""
_MARKS_BEHIND = 2
_MAX_SENTENCES = 4
"""Sentences of a message that may hand over a text, of which all but the last are remarks."""


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
    """Yield the stretches of a text that are quoted, and its letters and mails as one.

    A letter begins with a salutation in a line of its own, after something else.
    """
    for lines in _QUOTED_LINES.finditer(text):
        yield Span(*lines.span())
    for match in QUOTATION.finditer(text):
        if len(match[0]) - 2 >= MIN_QUOTATION or _has_sentences(match[0][1:-1]):
            yield Span(match.start() + 1, match.end() - 1)
    letter = _letter_start(text)
    if letter is not None:
        yield Span(letter, _letter_end(text, letter))


def _letter_start(text: str) -> int | None:
    """Return where the first mail of a text begins, or the first letter below its salutation."""
    is_signed = _is_signed(text)
    for mail in _MAIL.finditer(text):
        if is_signed or _heads_a_mail(mail):
            return mail.start()
    for match in _SALUTATION.finditer(text):
        is_salutation = not match[1].islower() and len(match[0].split()) <= _SALUTATION_WORDS
        if is_salutation and text[: match.start()].strip():
            return match.end()
    return None


def handed_over(text: str, start: int) -> Span:
    """Return the stretch that is handed over behind *start*: a letter, or the rest of the text."""
    is_letter = _LETTER.match(text, start) or _letter_start(text) is not None
    return Span(start, _letter_end(text, start) if is_letter else len(text))


def _letter_end(text: str, start: int) -> int:
    """Return where letters end of which the first begins at *start*: with the last signature.

    They end with the text if there is none, or if a postscript or another mail is behind it.
    """
    *_, end = (len(text), *_signature_ends(text, start))
    behind = text[end:].strip()
    goes_on = _POSTSCRIPT.match(behind) or _INTRODUCTION.match(behind)
    is_others = goes_on or _MAIL.search(behind) or _SALUTATION.search(behind)
    return len(text) if is_others or not behind else end


def _signature_ends(text: str, start: int) -> Iterator[int]:
    """Yield the ends of names below a closing, with a sentence somewhere above and a gap behind."""
    sentence = _ENDS_SENTENCE.search(text, start)
    for signature in _SIGNATURE.finditer(text, sentence.end() if sentence else len(text)):
        closing, name = signature.groups()
        words = name.split()
        if (
            0 < len(words) <= _NAME_WORDS
            and len(closing.split()) <= _CLOSING_WORDS
            and all(word[0].isalpha() and not word[0].islower() for word in words)
            and not (_ENDS_SENTENCE.search(name) or _FIELD.match(name))
        ):
            yield signature.end(2)


def _has_sentences(quotation: str) -> bool:
    """Return whether a short quotation has more than one sentence, unlike a name or a word."""
    return "\n\n" not in quotation and len(tuple(sentences(quotation))) > 1


def _heads_a_mail(fields: re.Match[str]) -> bool:
    """Return whether fields surely belong to a mail: its text may follow without a blank line."""
    head = fields[0]
    if fields["blank"] is not None or head.lstrip().startswith("-"):
        return bool(_SENT.search(head))
    return head.count("\n") >= _MANY_FIELDS and bool(_ADDRESS.search(head))


def find_handover(sentences: Iterable[tuple[str, Scores]]) -> int | None:
    """Return the number of the sentence of a user's message behind which another's words follow.

    It is the first, or the next behind remarks such as "Hi!". None if the user goes on speaking.
    """
    for number, (text, scores) in enumerate(islice(sentences, _MAX_SENTENCES)):
        if hands_over(text):
            return number
        if not is_filler(scores):
            return None
    return None


def _is_signed(text: str) -> bool:
    """Return whether a text ends with a comma and a name, "Kind regards, Ingrid", unlike a field."""
    last = text.rstrip().rpartition("\n")[2]
    _, comma, name = last.rpartition(",")
    words = name.split()
    is_name = bool(comma) and 0 < len(words) <= _NAME_WORDS and all(w[0].isupper() for w in words)
    return is_name and not _FIELD.match(last.lstrip())
