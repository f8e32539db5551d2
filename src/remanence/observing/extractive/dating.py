"""Dates in a note's text: relative ones made absolute, as short as their heading's date allows."""

import re
from datetime import date, datetime

from remanence.observing.dates import DateMention, render_date

_WEEKDAY = re.compile(r"\b(?:Mon|Tues|Wednes|Thurs|Fri|Satur|Sun)day\b", re.IGNORECASE)
_MONTHS = [
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
]

_UNITS = {"chinese": "年月日", "japanese": "年月日", "korean": "년월일"}


def written_date(mention: DateMention, at: datetime) -> str:
    """How a note said at *at* writes a date; the year is left out where it is that of *at*.

    A date that the text gives itself stays as it is. A span of years keeps its words.
    """
    if not mention.relative:
        return mention.text
    if mention.first == mention.last == at.date():
        return mention.word
    if mention.grain == "year" and re.search(r"\d|\w+\s+\w+", mention.text) and _counts(mention):
        return f"{mention.text} ({mention.first.year})"
    if (units := _UNITS.get(mention.language)) and mention.grain in ("day", "moment", "month"):
        return _with_units(mention, at, units)
    if mention.language != "english":
        return render_date(mention)
    return _english(mention, at)


def iso_date(mention: DateMention) -> str:
    """The date in ISO 8601, no finer than it is known."""
    text = mention.first.isoformat()
    return {"year": text[:4], "month": text[:7]}.get(mention.grain, text)


def _counts(mention: DateMention) -> bool:
    return mention.text.lower().split()[0] not in ("last", "next", "this")


def _english(mention: DateMention, at: datetime) -> str:
    year = "" if mention.first.year == at.year else f" {mention.first.year}"
    month = _MONTHS[mention.first.month - 1]
    match mention.grain:
        case "day" | "moment":
            weekday = _WEEKDAY.search(mention.text)
            lead = f"{weekday[0]} " if weekday else ""
            word = f" {mention.word}" if mention.word else ""
            return f"{lead}{_day(mention.first)}{year}{word}"
        case "week" | "weekend":
            return f"{mention.grain} of {_day(mention.first)}{year}"
        case "month":
            return f"{month}{year}"
        case _:
            return render_date(mention)


def _with_units(mention: DateMention, at: datetime, units: str) -> str:
    day, space = mention.first, " " if units[0] == "년" else ""
    year = "" if day.year == at.year else f"{day.year}{units[0]}{space}"
    month = f"{year}{day.month}{units[1]}"
    if mention.grain == "month":
        return month
    word = f" {mention.word}" if mention.word else ""
    return f"{month}{space}{day.day}{units[2]}{word}"


def _day(day: date) -> str:
    return f"{_MONTHS[day.month - 1]} {day.day}"
