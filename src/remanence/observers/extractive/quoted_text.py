"""Where a text gives the words of somebody else: within quotation marks, or in a letter."""

import re
from collections.abc import Iterable, Iterator

from remanence.observers.extractive.sentences import Span

_PAIRS = tuple(tuple(pair) for pair in ("“”", "„“", "„”", "«»", "»«", "「」", "『』", '""'))
_LEAST = 40
"""Characters of a quotation that may have a sentence; a shorter one is a name or a word."""
_MOST = 20_000
_SALUTATION = re.compile(
    r"(?<![,，]\n)^([^\W\d_])[^\n.!?;:,，]{1,40}[,，]\n+(?![^\n]*[,，]$)", re.MULTILINE
)
"""A line of a few words that ends with a comma, unlike those beside it: a letter begins."""
_SALUTATION_WORDS = 5
_MARKS_BEHIND = 2


def is_inside(span: Span, quoted: Iterable[Span]) -> bool:
    """Return whether a sentence, without the marks around it, is in one of the stretches."""
    return any(start - 1 <= span.start and span.end <= end + _MARKS_BEHIND for start, end in quoted)


def quoted_spans(text: str) -> Iterator[Span]:
    """Yield the stretches of a text that are quoted, and the letter that it ends with.

    A letter begins with a salutation in a line of its own, after something else.
    """
    for opens, closes in _PAIRS:
        if opens not in text:
            continue
        between = f"[^{re.escape(opens + closes)}]"
        for match in re.finditer(f"{opens}({between}{{0,{_MOST}}}){closes}", text):
            if len(match[1]) >= _LEAST:
                yield Span(*match.span(1))
    for match in _SALUTATION.finditer(text):
        is_salutation = not match[1].islower() and len(match[0].split()) <= _SALUTATION_WORDS
        if is_salutation and text[: match.start()].strip():
            yield Span(match.end(), len(text))
            return
