"""Periods of days, inclusive, and their mentions. Weeks start on Monday; seasons are northern."""

from dataclasses import dataclass
from datetime import date, timedelta
from typing import Literal, NamedTuple, assert_never

Grain = Literal["day", "weekend", "week", "month", "season", "year", "moment"]
Unit = Literal["day", "weekend", "week", "month", "year"]

WINTER = 3
"""Index of the season that crosses the turn of the year; spring is 0."""


class Period(NamedTuple):
    """An inclusive run of days and the form of its mention."""

    first: date
    last: date
    grain: Grain
    relative: bool = True
    lasting: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class DateMention:
    """The span `start..end` of a text and the inclusive period it means.

    `relative` is true if the period depends on when the text was written. The grain `moment` is a
    part of one day.
    """

    start: int
    end: int
    text: str
    first: date
    last: date
    grain: Grain
    relative: bool
    lasting: bool = False
    """A duration that lasts until the message ("for three years now")."""
    after_particle: bool = False
    """Behind a particle that would govern the date: "call around tomorrow"."""
    word: str = ""
    """The word that the rendering keeps: a season or a part of the day."""
    language: str = "english"


def day(first: date) -> Period:
    """Return a period of one day."""
    return Period(first=first, last=first, grain="day")


def month(year: int, number: int) -> Period:
    """Return a month by its number, from 1."""
    first = date(year, number, 1)
    last = date(year + number // 12, number % 12 + 1, 1) - timedelta(days=1)
    return Period(first=first, last=last, grain="month")


def year(number: int) -> Period:
    """Return a calendar year."""
    return Period(first=date(number, 1, 1), last=date(number, 12, 31), grain="year")


def season(start_year: int, index: int) -> Period:
    """Return the season that begins in `start_year`: winter of 2022 ends in February 2023."""
    first = date(start_year, 3 * (index + 1), 1)
    ends = start_year + (index == WINTER)
    return Period(first=first, last=month(ends, (3 * index + 4) % 12 + 1).last, grain="season")


def shift(today: date, unit: Unit, count: int) -> Period:
    """Return the day, week, weekend, month or year `count` units away from that of today."""
    monday = today + timedelta(weeks=count, days=-today.weekday())
    match unit:
        case "day":
            return day(today + timedelta(days=count))
        case "week":
            return Period(first=monday, last=monday + timedelta(days=6), grain="week")
        case "weekend":
            first = monday + timedelta(days=5)
            return Period(first=first, last=first + timedelta(days=1), grain="weekend")
        case "month":
            return month(*months_away(today, count))
        case "year":
            return year(today.year + count)
        case _:
            assert_never(unit)


def months_away(today: date, count: int) -> tuple[int, int]:
    """Return the year and number of the month `count` months after today's."""
    years, index = divmod(today.month - 1 + count, 12)
    return today.year + years, index + 1


def back_to(today: date, unit: Unit, count: int) -> Period:
    """Return the run of days that began `count` units ago and ends today."""
    grain: Grain = "day" if unit in ("day", "week", "weekend") else unit
    if grain == "day":
        first = today - timedelta(days=count * (1 if unit == "day" else 7))
    else:
        first = shift(today, unit, -count).first
    return Period(first=first, last=today, grain=grain, lasting=True)
