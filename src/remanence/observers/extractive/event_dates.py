"""Dates in a note's text: relative ones resolved, as short as the date of the heading allows."""

import re
from datetime import datetime

from remanence.dates import DateMention, may_replace, render_date, words_with_date
from remanence.dates.language import language_of

_CJK_WEEKDAY = (
    "[월화수목금토일]요일|[月火水木金土日]曜日?|(?:周|週|星期|礼拜|禮拜)[一二三四五六日天]"
)
_WEEKDAY = re.compile(
    rf"\b(?:Mon|Tues|Wednes|Thurs|Fri|Satur|Sun)day\b|{_CJK_WEEKDAY}", re.IGNORECASE
)
_PARTICLES = ("은", "는", "이", "가", "을", "를", "과", "와", "으로", "로", "이랑", "랑")
"""Korean particles that depend on the sound before them: after a consonant, after a vowel."""


def format_date(mention: DateMention, at: datetime, following: str) -> str:
    """Return the text of a date in a note from the time *at*.

    The year is omitted if it is that of *at*. An absolute date stays unchanged, "today" too, as the
    heading has its day. So does a date whose replacement would not fit *following*, the text after
    it, or which that names as well: "ten days from today is 4 March".
    """
    is_of_heading = mention.first == mention.last == at.date()
    if not mention.relative or is_of_heading or _names_its_day(mention, at, following):
        return mention.text
    if _names_its_month(mention):
        year = mention.first.year
        return mention.text if year == at.year else f"{mention.text} ({year})"
    shown = _render(mention, at)
    if mention.lasting:
        since = "since " if mention.language == "english" else ""
        return f"{mention.text} ({since}{shown})"
    if _replaces(mention, shown, following):
        return shown
    match mention.language:
        case "chinese" | "japanese":
            return f"{mention.text}（{shown}）"
        case "korean":
            return f"{mention.text}({shown})"
        case _:
            return words_with_date(mention, shown, following)


def _replaces(mention: DateMention, shown: str, following: str) -> bool:
    """Return whether the date of a note takes the place of its words."""
    if mention.language in ("japanese", "korean") and mention.grain in ("week", "weekend"):
        return False
    if mention.language == "korean" and not _fits(mention.text, shown, following):
        return False
    return may_replace(mention, following)


def _names_its_month(mention: DateMention) -> bool:
    """Return whether the text names its month beside other words: "last March"."""
    text, name = mention.text.casefold(), _month_name(mention).casefold()
    return mention.grain == "month" and name in text and name != text


def _month_name(mention: DateMention) -> str:
    names = language_of(mention.language).months or language_of("english").months
    return names[mention.first.month - 1]


def _names_its_day(mention: DateMention, at: datetime, following: str) -> bool:
    """Return whether the words, or what follows them, name day and month in the year of the heading."""
    text = f"{mention.text}{following}".casefold()
    day, month = mention.first.day, mention.first.month
    return (
        mention.grain == "day"
        and mention.first.year == at.year
        and re.search(rf"(?<!\d)0?{day}(?!\d)", text) is not None
        and (
            _month_name(mention)[:3].casefold() in text
            or re.search(rf"(?<!\d)0?{month}\s?[月월./]", text) is not None
        )
    )


def _render(mention: DateMention, at: datetime) -> str:
    """Return the date in the format of notes of its language, without the parts that are empty."""
    formats, first = language_of(mention.language).note, mention.first
    if mention.grain == "year" or mention.grain not in formats:
        return render_date(mention)
    weekday = _WEEKDAY.search(mention.text)
    parts = {
        "year": "" if first.year == at.year else formats["year"].format(year=first.year),
        "month": _month_name(mention),
        "number": first.month,
        "day": first.day,
        "weekday": weekday[0] if weekday else "",
        "word": mention.word,
    }
    shown = (part.format(**parts) for part in formats[mention.grain].split(" "))
    return " ".join(filter(None, shown))


def _fits(text: str, shown: str, following: str) -> bool:
    """Return whether a Korean particle that follows *text* may follow *shown* too."""
    depends = following.startswith(_PARTICLES)
    return not depends or _ends_in_consonant(text) == _ends_in_consonant(shown)


def _ends_in_consonant(text: str) -> bool:
    """Return whether the last character is a closed Hangul syllable."""
    return "가" <= text[-1] <= "힣" and (ord(text[-1]) - ord("가")) % 28 != 0
