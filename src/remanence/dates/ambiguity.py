"""Filter out mentions that are no dates, or that the text around them already explains."""

import re
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from datetime import date, timedelta
from operator import itemgetter

from remanence.dates.language import WORD, fold, language_of, words_of
from remanence.dates.periods import DateMention

_SAME_DAY_WITHIN = 60
_MENTIONS_AROUND = 30
"""Mentions before and after a mention that are read for it; so the work for each is bounded."""
_BOUND = re.compile(
    r"\b(?:(?:more|less|fewer|longer|earlier|later) than|at (?:least|most)|up to|over|under) $",
    re.IGNORECASE,
)
_MANY = re.compile(r" (?:mornings|afternoons|evenings|nights)\b", re.IGNORECASE)
_TODAY_IS = re.compile(r"(?:\btoday(?: is|'s|’s) (?:a )?|今天是)$", re.IGNORECASE)
_ORDINAL = r"(?:the|den|dem|der|día|dia) \d{1,2}(?!\d)|\d{1,2}(?:st|nd|rd|th|\.)"
_CARDINAL = r"(?:le |el |il )?\d{1,2}(?!\d|[:.]\d| ?(?:[ap]m|uhr|h)\b)"
_NUMBER_AFTER = re.compile(rf",? \(?(?:{_ORDINAL}|{_CARDINAL})", re.IGNORECASE)
_MARKED = r"“[^“”]*”|„[^„“”]*[“”]|«[^«»]*»|»[^«»]*«|「[^「」]*」|『[^『』]*』|《[^《》]*》"
_STRAIGHT = r"(?<!\w)(?:\"[^\"\n]*\"|'[^'\n]*')(?!\w)"
_QUOTATION = re.compile(rf"{_MARKED}|‘[^‘’]*’(?!\w)|{_STRAIGHT}")
_SENTENCE_REACH = 160
_SENTENCE_END = re.compile(r"[.!?…]+\s|[\n。！？]")
_COLON = re.compile(r"：|:\s")
_YEAR = re.compile(r"(?<!\d)(?:1[89]|20)\d\d(?!\d)")
_CAPITAL_SLOTS = ("weekday", "month")
_WITHIN_SENTENCE = re.compile(r"[^\W_],?[^\S\n]$")


def without_doubtful(
    text: str, mentions: Iterable[DateMention], today: date
) -> Iterator[DateMention]:
    """Yield the mentions that are dates, except those next to their own date in figures.

    "more than a day ago" names no day, and "tomorrow, May 12 2023" names one, not two. A quotation
    or a name, such as the song "Yesterday", says no time.
    """
    mentions = tuple(_without_named(text, mentions))
    for index, mention in enumerate(mentions):
        around = mentions[max(0, index - _MENTIONS_AROUND) : index + _MENTIONS_AROUND]
        if mention.relative and (
            _is_doubtful(text, mention)
            or _has_figures(mention, around)
            or _is_reported(text, mention, around, today)
        ):
            continue
        yield mention


def _without_named(text: str, mentions: Iterable[DateMention]) -> Iterator[DateMention]:
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
    if first is None or not first[0].istitle():
        return False
    if language.has_capital_nouns and first[0] != mention.text:
        return False
    days = (words for slot, words in language.slots.items() if slot.startswith(_CAPITAL_SLOTS))
    if any(fold(first[0]) in words for words in days):
        return False
    return _WITHIN_SENTENCE.search(text, max(0, mention.start - 3), mention.start) is not None


def _is_doubtful(text: str, mention: DateMention) -> bool:
    """Return whether a mention is a bound, recurrent, said of today, or a weekday with a number."""
    before, after = text[max(0, mention.start - 20) : mention.start], text[mention.end :][:14]
    language = language_of(mention.language)
    weekdays = language.slots.get("weekday", {})
    return bool(
        _MANY.match(after)
        or _TODAY_IS.search(before)
        or (_BOUND.search(before) and mention.text.casefold().endswith("ago"))
        or language.clause.is_habit(text, mention.start, mention.end)
        or (_NUMBER_AFTER.match(after) and not weekdays.keys().isdisjoint(words_of(mention.text)))
    )


def _is_reported(
    text: str, mention: DateMention, around: Sequence[DateMention], today: date
) -> bool:
    """Return whether a time ahead was said at another time: "In 1999 he told me: tomorrow we go"."""
    if mention.last < today:
        return False
    clause = language_of(mention.language).clause
    before = text[max(0, mention.start - _SENTENCE_REACH) : mention.start]
    start = mention.start - len(_SENTENCE_END.split(before)[-1])
    end = mention.end + len(_SENTENCE_END.split(text[mention.end :][:_SENTENCE_REACH])[0])
    verb = clause.report.search(text, start, end if clause.is_verb_last else mention.start)
    return verb is not None and bool(
        _COLON.search(text, verb.end(), mention.start)
        or _YEAR.search(text, start, mention.start)
        or clause.long_ago.search(text, start, end)
        or any(
            start <= other.start < end and other.last < today - timedelta(days=1)
            for other in around
        )
    )


def _has_figures(mention: DateMention, around: Sequence[DateMention]) -> bool:
    """Return whether a date in figures is nearby, so that its day need not be added."""
    return mention.grain in ("day", "moment") and any(
        not figures.relative
        and figures.grain == "day"
        and figures.first == mention.first
        and max(figures.start - mention.end, mention.start - figures.end) < _SAME_DAY_WITHIN
        for figures in around
    )
