"""Filter out mentions that are no dates, or that the text around them already explains."""

import re
from collections.abc import Iterator, Sequence

from remanence.dates.language import language_of, words_of
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
_NUMBER_AFTER = re.compile(
    r",? \(?(?:(?:the|den|dem|der|día|dia) \d{1,2}(?!\d)|\d{1,2}(?:st|nd|rd|th|\.)"
    r"|(?:le |el |il )?\d{1,2}(?!\d|[:.]\d| ?(?:[ap]m|uhr|h)\b))",
    re.IGNORECASE,
)


def without_doubtful(text: str, mentions: Sequence[DateMention]) -> Iterator[DateMention]:
    """Yield the mentions that are dates, except those next to their own date in figures.

    "more than a day ago" names no day, and "tomorrow, May 12 2023" names one, not two.
    """
    for index, mention in enumerate(mentions):
        around = mentions[max(0, index - _MENTIONS_AROUND) : index + _MENTIONS_AROUND]
        if mention.relative and (_is_doubtful(text, mention) or _has_figures(mention, around)):
            continue
        yield mention


def _is_doubtful(text: str, mention: DateMention) -> bool:
    """Return whether a mention is a bound, recurrent, said of today, or a weekday with a number."""
    before, after = text[max(0, mention.start - 20) : mention.start], text[mention.end :][:14]
    return bool(
        _MANY.match(after)
        or _TODAY_IS.search(before)
        or (_BOUND.search(before) and mention.text.casefold().endswith("ago"))
        or (_NUMBER_AFTER.match(after) and _is_weekday(mention))
    )


def _is_weekday(mention: DateMention) -> bool:
    weekdays = language_of(mention.language).slots.get("weekday", {})
    return not weekdays.keys().isdisjoint(words_of(mention.text))


def _has_figures(mention: DateMention, around: Sequence[DateMention]) -> bool:
    """Return whether a date in figures is nearby, so that its day need not be added."""
    return mention.grain in ("day", "moment") and any(
        not figures.relative
        and figures.grain == "day"
        and figures.first == mention.first
        and max(figures.start - mention.end, mention.start - figures.end) < _SAME_DAY_WITHIN
        for figures in around
    )
