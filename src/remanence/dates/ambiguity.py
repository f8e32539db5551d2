"""Filter out ambiguous mentions and those that the text around them already explains."""

import re
from collections.abc import Iterator, Sequence
from datetime import datetime
from functools import cache
from itertools import pairwise

from remanence.dates.language import language_of
from remanence.dates.periods import DateMention

_FAR_DAYS = 7
_AROUND = 300
"""Characters within which a bare weekday may refer to another date."""
_MENTIONS_AROUND = 30
"""Mentions before and after a weekday that are read for it; so the work for each is bounded."""
_SAME_DAY_WITHIN = 60
_ARTICLES = re.compile(
    r"(?:on |am |den |dem |le |el )?(?:the |this )?(.*?)(?: dem| den)?", re.IGNORECASE
)
_DAY_NUMBER = re.compile(r"(?:on )?the \d{1,2}(?:st|nd|rd|th)", re.IGNORECASE)
_BOUND = re.compile(
    r"\b(?:(?:more|less|fewer|longer|earlier|later) than|at (?:least|most)|up to|over|under) $",
    re.IGNORECASE,
)
_MANY = re.compile(r" (?:mornings|afternoons|evenings|nights)\b", re.IGNORECASE)
_TODAY_IS = re.compile(r"(?:\btoday(?: is|'s|’s) (?:a )?|今天是)$", re.IGNORECASE)
_IT_IS = re.compile(
    r"(?:\b(?:it(?:['’]?s| is)|es ist|heute ist|c['’]est|nous sommes|(?:hoy )?es|oggi è) "
    r"|今天|今日は|오늘은? ?)$",
    re.IGNORECASE,
)
_OPENS = re.compile(r"(?:^|[.!?。！？\n]) *$")
_IT_IS_AFTER = re.compile(r"(?:이라|이네|이다|이야|인데|だから|なので|だし)")
_NUMBER_AFTER = re.compile(
    r",? (?:(?:the|den|dem|der|día|dia) \d{1,2}\b|\d{1,2}(?:st|nd|rd|th|\.)"
    r"|(?:le |el |il )?\d{1,2}(?!\d|[:.]\d| ?(?:[ap]m|uhr|h)\b))",
    re.IGNORECASE,
)
_NUMBER_BEFORE = re.compile(
    r"\b\d{1,2}(?:(?:일|日|号|st|nd|rd|th|\.|[/.-]\d{1,2}\.?|['’-]\w{1,4})[ ,(（]*|, )$",
    re.IGNORECASE,
)
_NUMBERED = re.compile(
    r"\d{1,2}[일日号] ?(?:[월화수목금토일]요일|[(（]?[月火水木金土日]曜)|\d{1,2}[号日][^。！？\n]{0,6}$"
    r"|(?:mon|tues|wednes|thurs|fri|satur|sun)day,? (?:the )?\d{1,2}(?:st|nd|rd|th)\b",
    re.IGNORECASE,
)
"""A weekday with a day number, from which a weekday soon after it is counted."""
_BETWEEN = frozenset({"", "the", "den", "dem", "le", "el", "の", "은", "는"})


def without_doubtful(
    text: str, mentions: Sequence[DateMention], at: datetime
) -> Iterator[DateMention]:
    """Yield the mentions except those next to their own date or possibly relative to another date.

    "Friday, May 12" names one day, not two. "4월 19일이야, 일요일" does not mean next Sunday, and
    "Thursday 28th to Saturday" does not mean a day of this week.
    """
    figures = [mention for mention in mentions if _in_figures(mention)]
    for index, mention in enumerate(mentions):
        if _is_not_a_date(text, mention) or _adjoins_week(text, mentions, index):
            continue
        bare = mention.relative and _is_bare(mention)
        if bare and (_has_number(text, mention) or _means_today(text, mention, at)):
            continue
        around = mentions[max(0, index - _MENTIONS_AROUND) : index + _MENTIONS_AROUND]
        if bare and any(_may_include(each, mention, at) for each in around):
            continue
        if figures and not _in_figures(mention) and mention.relative:
            if _beside_its_date(text, mentions, index) or _repeats_figures(mention, figures):
                continue
            if bare and any(_is_far(figure, mention, at) for figure in figures):
                continue
        yield mention


def _is_not_a_date(text: str, mention: DateMention) -> bool:
    """Return whether it is a bound ("more than a day ago"), recurrent ("Monday mornings") or today."""
    before, after = text[max(0, mention.start - 20) : mention.start], text[mention.end :][:14]
    if mention.relative and (_MANY.match(after) or _TODAY_IS.search(before)):
        return True
    return bool(_BOUND.search(before)) and mention.text.casefold().endswith("ago")


def _has_number(text: str, mention: DateMention) -> bool:
    """Return whether a day number is beside the weekday or one before it: "28일 목요일"."""
    before = text[max(0, mention.start - _SAME_DAY_WITHIN) : mention.start]
    if _NUMBERED.search(before) or _NUMBER_BEFORE.search(before[-10:]):
        return True
    return _NUMBER_AFTER.match(text, mention.end) is not None


def _means_today(text: str, mention: DateMention, at: datetime) -> bool:
    """Return whether a weekday refers to the current day: "it's Wednesday", "Sunday shopping"."""
    if mention.first.weekday() != at.weekday():
        return False
    before = text[max(0, mention.start - 14) : mention.start]
    opens = _OPENS.search(before) is not None and mention.text.count(" ") == 0
    return opens or bool(_IT_IS.search(before) or _IT_IS_AFTER.match(text, mention.end))


def _beside_its_date(text: str, mentions: Sequence[DateMention], index: int) -> bool:
    """Return whether a date in figures adjoins the mention: "Friday, May 12", "May 12 (Friday)"."""
    mention = mentions[index]
    if mention.grain != "day":
        return False
    following, before = (
        mentions[index + 1 : index + 2],
        mentions[index - 1 : index] if index else (),
    )
    return any(
        _in_figures(after) and _adjoin(text[mention.end : after.start]) for after in following
    ) or any(_in_figures(one) and _adjoin(text[one.end : mention.start]) for one in before)


def _adjoins_week(text: str, mentions: Sequence[DateMention], index: int) -> bool:
    """Return whether a weekday and a week are beside each other: "Freitag in einer Woche"."""
    return any(
        {first.grain, second.grain} == {"day", "week"}
        and any(map(_is_bare, (first, second)))
        and not text[first.end : second.start].strip(" ,")
        for first, second in pairwise(mentions[max(0, index - 1) : index + 2])
    )


def _repeats_figures(mention: DateMention, figures: Sequence[DateMention]) -> bool:
    """Return whether a nearby date in figures is the same day, so that none need be added."""
    return mention.grain in ("day", "moment") and any(
        figure.first == mention.first and _distance(figure, mention) < _SAME_DAY_WITHIN
        for figure in figures
    )


def _is_far(figure: DateMention, mention: DateMention, at: datetime) -> bool:
    days = abs((figure.first - at.date()).days)
    return days > _FAR_DAYS and _distance(figure, mention) < _AROUND


def _may_include(period: DateMention, mention: DateMention, at: datetime) -> bool:
    """Return whether a weekday may be one of a far period: "two years ago we met, on Friday"."""
    today = at.date()
    is_past = period.last < mention.last < today and (today - period.last).days > _FAR_DAYS
    is_ahead = period.first > mention.first > today and (period.first - today).days > _FAR_DAYS
    return (is_past or is_ahead) and _distance(period, mention) < _AROUND


def _distance(one: DateMention, other: DateMention) -> int:
    return max(one.start - other.end, other.start - one.end)


def _is_bare(mention: DateMention) -> bool:
    """Return whether it is a weekday, "weekend" or "the 25th" without a word such as "next"."""
    match = _ARTICLES.fullmatch(mention.text)
    is_word = match is not None and match[1].casefold() in _day_words(mention.language)
    return is_word or bool(_DAY_NUMBER.fullmatch(mention.text))


@cache
def _day_words(language: str) -> frozenset[str]:
    return frozenset(
        word
        for slot, words in language_of(language).slots.items()
        for word, value in words.items()
        if slot in ("weekday", "weekday_full") or (slot.startswith("unit") and value == "weekend")
    )


def _in_figures(mention: DateMention) -> bool:
    return (
        mention.grain == "day"
        and bool(re.search(r"\d\D|\D\d", mention.text))
        and not (_DAY_NUMBER.fullmatch(mention.text))
    )


def _adjoin(between: str) -> bool:
    return len(between) < 8 and between.strip(" ,.(（").lower() in _BETWEEN
