"""Filter out mentions that are no dates, or that the text around them already explains."""

import re
from collections.abc import Iterator, Sequence

from remanence.dates.periods import DateMention

_SAME_DAY_WITHIN = 60
_BOUND = re.compile(
    r"\b(?:(?:more|less|fewer|longer|earlier|later) than|at (?:least|most)|up to|over|under) $",
    re.IGNORECASE,
)
_MANY = re.compile(r" (?:mornings|afternoons|evenings|nights)\b", re.IGNORECASE)
_TODAY_IS = re.compile(r"(?:\btoday(?: is|'s|’s) (?:a )?|今天是)$", re.IGNORECASE)
_NUMBER_AFTER = re.compile(
    r",? (?:(?:the|den|dem|der|día|dia) \d{1,2}\b|\d{1,2}(?:st|nd|rd|th|\.)"
    r"|(?:le |el |il )?\d{1,2}(?!\d|[:.]\d| ?(?:[ap]m|uhr|h)\b))",
    re.IGNORECASE,
)


def without_doubtful(text: str, mentions: Sequence[DateMention]) -> Iterator[DateMention]:
    """Yield the mentions that are dates, except those next to their own date in figures.

    "more than a day ago" names no day, and "tomorrow, May 12 2023" names one, not two.
    """
    figures = [mention for mention in mentions if not mention.relative and mention.grain == "day"]
    for mention in mentions:
        if mention.relative and _is_doubtful(text, mention, figures):
            continue
        yield mention


def _is_doubtful(text: str, mention: DateMention, figures: Sequence[DateMention]) -> bool:
    before, after = text[max(0, mention.start - 20) : mention.start], text[mention.end :][:14]
    return bool(
        _MANY.match(after)
        or _TODAY_IS.search(before)
        or (_BOUND.search(before) and mention.text.casefold().endswith("ago"))
        or (mention.grain == "day" and _NUMBER_AFTER.match(after))
        or any(_is_same(figure, mention) for figure in figures)
    )


def _is_same(figure: DateMention, mention: DateMention) -> bool:
    """Return whether a date in figures is nearby, so that its day need not be added."""
    distance = max(figure.start - mention.end, mention.start - figure.end)
    return (
        mention.grain in ("day", "moment")
        and figure.first == mention.first
        and distance < _SAME_DAY_WITHIN
    )
