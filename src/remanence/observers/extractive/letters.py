"""Letters and mails within a text, recognised by their form alone, not by words."""

import re
from collections.abc import Iterator

from remanence.observers.extractive.sentences import Span

_SALUTATION = re.compile(
    r"(?<![,，]\n)^([^\W\d_])[^\n.!?;:,，]{1,40}[,，]\n+(?![^\n]*[,，]$)", re.MULTILINE
)
"""A line of a few words that ends with a comma, unlike those beside it: a letter begins."""
_SALUTATION_WORDS = 5
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


def letters_span(text: str) -> Span | None:
    """Return the stretch of a text's letters and mails, from the first on; None if it has none.

    A letter begins with a salutation in a line of its own, after something else.
    """
    start = _letter_start(text)
    return None if start is None else Span(start, _letter_end(text, start))


def handed_over(text: str, start: int) -> Span:
    """Return the stretch that is handed over behind *start*: a letter, or the rest of the text."""
    is_letter = _LETTER.match(text, start) or _letter_start(text) is not None
    return Span(start, _letter_end(text, start) if is_letter else len(text))


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


def _heads_a_mail(fields: re.Match[str]) -> bool:
    """Return whether fields surely belong to a mail: its text may follow without a blank line."""
    head = fields[0]
    if fields["blank"] is not None or head.lstrip().startswith("-"):
        return bool(_SENT.search(head))
    return head.count("\n") >= _MANY_FIELDS and bool(_ADDRESS.search(head))


def _is_signed(text: str) -> bool:
    """Return whether a text ends with a comma and a name, "Kind regards, Ingrid", unlike a field."""
    last = text.rstrip().rpartition("\n")[2]
    _, comma, name = last.rpartition(",")
    words = name.split()
    is_name = bool(comma) and 0 < len(words) <= _NAME_WORDS and all(w[0].isupper() for w in words)
    return is_name and not _FIELD.match(last.lstrip())


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
