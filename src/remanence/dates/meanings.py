"""The meanings of phrases: map the slots of a match and the time of the message to a period.

"last Friday" is the most recent Friday before the message's day, "next Friday" the first one after
it. None for what may be more than one date.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from typing import cast

from remanence.dates import periods
from remanence.dates.periods import Period, Unit

_SOON_DAYS = 3
"""Days within which a weekday would rarely be called the next."""
_NEAR = timedelta(days=240)
"""A day further away is not meant: it only has the weekday that somebody mistook."""
_FRIDAY, _SATURDAY, _SUNDAY = 4, 5, 6


@dataclass(frozen=True, slots=True, kw_only=True)
class DateReading:
    """A matched phrase: its time, slots, the word to keep, and whether weeks begin on Monday."""

    at: datetime
    slots: Mapping[str, int | str]
    word: str
    is_monday_first: bool

    @property
    def today(self) -> date:
        return self.at.date()

    @property
    def is_between_weeks(self) -> bool:
        """A Sunday, the last day of a week or its first."""
        return self.today.weekday() == _SUNDAY and not self.is_monday_first

    @property
    def unit(self) -> Unit:
        return cast("Unit", self.slots["unit"])  # the tables have no other value for this slot

    def number(self, slot: str) -> int:
        return int(self.slots[slot])


def some_day(reading: DateReading) -> Period:
    """Yesterday, last night: the day `shift` days away, or a part of it."""
    found = periods.shift(reading.today, "day", reading.number("shift"))
    return found._replace(grain="moment") if reading.word else found


def some_period(reading: DateReading) -> Period | None:
    """Last week, next month, this year.

    None for the next weekend, and for a week on a day between weeks.
    """
    shift, unit = reading.number("shift"), reading.unit
    if unit == "weekend" and shift > 0:
        return None
    if unit == "week" and reading.is_between_weeks:
        return None
    return periods.shift(reading.today, unit, shift)


def this_weekend(reading: DateReading) -> Period | None:
    """The weekend from Friday on; None before, when it may be the last or the coming one."""
    is_near = reading.today.weekday() >= _FRIDAY
    return periods.shift(reading.today, "weekend", 0) if is_near else None


def count_units(reading: DateReading) -> Period:
    """Three days ago, in two weeks."""
    count = reading.number("number") * reading.number("sign")
    if reading.unit == "year" and abs(count) == 1:
        return periods.shift(reading.today, "month", 12 * count)
    return periods.shift(reading.today, reading.unit, count)


def count_hours(reading: DateReading) -> Period:
    """Two hours ago: the day of that moment."""
    then = reading.at - timedelta(minutes=reading.number("number") * reading.number("minutes"))
    return periods.day(then.date())._replace(grain="moment")


def lasting(reading: DateReading) -> Period:
    """The last three years, two years now."""
    return periods.back_to(reading.today, reading.unit, reading.number("number"))


def weekday_before(reading: DateReading) -> Period:
    """Last Friday: never today."""
    back = (reading.today.weekday() - reading.number("weekday") - 1) % 7 + 1
    return periods.shift(reading.today, "day", -back)


def weekday_after(reading: DateReading) -> Period:
    """Next Friday: never today."""
    ahead = (reading.number("weekday") - reading.today.weekday() - 1) % 7 + 1
    return periods.shift(reading.today, "day", ahead)


def weekday_next(reading: DateReading) -> Period | None:
    """Next Friday; None if it is soon or at the weekend of this week, not surely meant."""
    found, today = weekday_after(reading), reading.today
    is_of_weekend = found.first.weekday() >= _SATURDAY and found.first.weekday() > today.weekday()
    return None if is_of_weekend or (found.first - today).days <= _SOON_DAYS else found


def this_weekday(reading: DateReading) -> Period | None:
    """This Friday: today or the next one; None if the day of this week is gone."""
    number, today = reading.number("weekday"), reading.today.weekday()
    if number == today:
        return periods.day(reading.today)
    return None if number < today else weekday_after(reading)


def weekdays_counted(reading: DateReading) -> Period:
    """Two Fridays ago."""
    nearest = weekday_before(reading).first
    return periods.shift(nearest, "day", -7 * (reading.number("number") - 1))


def weekday_of_week(reading: DateReading) -> Period | None:
    """Friday of last week; None on a day between weeks."""
    if reading.is_between_weeks:
        return None
    week = periods.shift(reading.today, "week", reading.number("shift"))
    return periods.shift(week.first, "day", reading.number("weekday"))


def some_season(reading: DateReading) -> Period | None:
    """Last summer has ended, next summer has not begun, this summer is in this year.

    None for winter, which has two years in the north and one in the south, and if the southern
    season begins in another year.
    """
    if (index := reading.number("season")) == periods.WINTER:
        return None
    north, south = _season_near(reading, index), _season_near(reading, (index + 2) % 4)
    return north if north.first.year == south.first.year else None


def _season_near(reading: DateReading, index: int) -> Period:
    shift, today = reading.number("shift"), reading.today
    own = periods.season(today.year - (index == periods.WINTER and today.month < 3), index)
    if shift < 0 and own.last >= today:
        return periods.season(own.first.year - 1, index)
    if shift > 0 and own.first <= today:
        return periods.season(own.first.year + 1, index)
    return own


def calendar_season(reading: DateReading) -> Period:
    """Summer 2022."""
    found = periods.season(reading.number("year"), reading.number("season"))
    return found._replace(relative=False)


def some_month(reading: DateReading) -> Period:
    """Last August has ended, next August has not begun, this August is in this year."""
    number, shift, today = reading.number("month"), reading.number("shift"), reading.today
    crossed = (shift < 0 and number >= today.month) or (shift > 0 and number <= today.month)
    return periods.month(today.year + (shift if crossed else 0), number)


def month_of_year(reading: DateReading) -> Period:
    """May of last year."""
    return periods.month(reading.today.year + reading.number("shift"), reading.number("month"))


def month_gone(reading: DateReading) -> Period:
    """Since May: the last one that has begun."""
    today, number = reading.today, reading.number("month")
    return periods.month(today.year - (number > today.month), number)


def calendar_month(reading: DateReading) -> Period:
    """May 2022."""
    return periods.month(reading.number("year"), reading.number("month"))._replace(relative=False)


def calendar_year(reading: DateReading) -> Period:
    """2022, if a word marks it as a year."""
    return periods.year(reading.number("year"))._replace(relative=False)


def calendar_day(reading: DateReading) -> Period | None:
    """May 5 of a year, or of the year in `shift` ("last year").

    A weekday before it gives the year: "samedi 5 septembre"; None if no day that is near agrees.
    """
    month, day, this_year = reading.number("month"), reading.number("day"), reading.today.year
    if "year" in reading.slots:
        return periods.day(date(reading.number("year"), month, day))._replace(relative=False)
    if "shift" in reading.slots:
        return periods.day(date(this_year + reading.number("shift"), month, day))
    if "weekday" not in reading.slots:
        return None
    days = (_day(this_year + step, month, day) for step in (0, 1, -1))
    near = (d for d in days if d and abs(d.first - reading.today) <= _NEAR)
    return next((d for d in near if d.first.weekday() == reading.number("weekday")), None)


def day_of_month(reading: DateReading) -> Period:
    """The 5th of last or next month."""
    year, month = periods.months_away(reading.today, reading.number("shift"))
    return periods.day(date(year, month, reading.number("day")))


def _day(year: int, month: int, day: int) -> Period | None:
    try:
        return periods.day(date(year, month, day))
    except ValueError:
        return None
