"""Dates in quotations and names, such as the song "Yesterday", which say no time."""

import re
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from operator import itemgetter

from remanence.dates.language import fold, language_of
from remanence.dates.periods import DateMention
from remanence.dates.required_words import WORD

_QUOTATION = re.compile(
    r"“[^“”]*”|„[^„“”]*[“”]|«[^«»]*»|»[^«»]*«|「[^「」]*」|『[^『』]*』|《[^《》]*》|‘[^‘’]*’(?!\w)"
    r"|(?<!\w)(?:\"[^\"\n]*\"|'[^'\n]*')(?!\w)"
)
_CAPITAL_SLOTS = ("weekday", "month")
_WITHIN_SENTENCE = re.compile(r"[^\W_],?\s$")


def without_named(text: str, mentions: Iterable[DateMention]) -> Iterator[DateMention]:
    """Yield the dates without relative ones that are quoted or spelt like a name."""
    quotations = [match.span() for match in _QUOTATION.finditer(text)]
    for mention in mentions:
        is_quoted = overlaps(quotations, mention.start, mention.end)
        if not (mention.relative and (is_quoted or _is_spelt_like_name(text, mention))):
            yield mention


def overlaps(spans: Sequence[tuple[int, int]], start: int, end: int) -> bool:
    """Return whether `start..end` overlaps one of *spans*, which are in order and disjoint."""
    before = bisect_left(spans, end, key=itemgetter(0)) - 1
    return before >= 0 and spans[before][1] > start


def _is_spelt_like_name(text: str, mention: DateMention) -> bool:
    """Return whether a date has a capital within a sentence, other than of a day or a month."""
    language = language_of(mention.language)
    first = WORD.search(mention.text)
    if language.has_capital_nouns or first is None or not first[0].istitle():
        return False
    days = (words for slot, words in language.slots.items() if slot.startswith(_CAPITAL_SLOTS))
    if any(fold(first[0]) in words for words in days):
        return False
    return _WITHIN_SENTENCE.search(text, max(0, mention.start - 3), mention.start) is not None
