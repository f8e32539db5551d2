"""The meanings of phrases: map the slots of a match and the time of the message to a period.

"last Friday" is the most recent Friday before the message's day, "next Friday" the first one after
it. A weekday or a date without a year is in the future, unless its clause is in the past tense.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from typing import Literal, cast

from remanence.dates import periods
from remanence.dates.periods import Period, Unit

_MAX_DAYS_AWAY = 300
_RATHER_AHEAD = 1.2
"""Factor on the distance of past days if the clause has no tense, in favour of future ones."""
_FAR_BACK = {"day": 215, "month": 260}
"""A date without a year that is this many days past is taken as future, whatever the tense."""
_MONTHS_IN_DOUBT = 130

Tense = Literal["past", "perfect", "future"]


@dataclass(frozen=True, slots=True, kw_only=True)
class DateReading:
    """A matched phrase: its time, slots, word to keep, and (on demand) the tenses of its clause."""

    at: datetime
    slots: Mapping[str, int | str]
    word: str
    tenses: Callable[[], frozenset[Tense]]

    @property
    def today(self) -> date:
        return self.at.date()

    @property
    def unit(self) -> Unit:
        return cast("Unit", self.slots["unit"])  # the tables have no other value for this slot

    @property
    def count(self) -> int:
        return self.number("number") if "number" in self.slots else self.number("vague")

    def number(self, slot: str) -> int:
        return int(self.slots[slot])

    def speaks_of_past(self) -> bool:
        tenses = self.tenses()
        return bool(tenses) and "future" not in tenses


def some_day(reading: DateReading) -> Period:
    """Yesterday, last night: the day `shift` days away, or a part of it."""
    found = periods.shift(reading.today, "day", reading.number("shift"))
    return found._replace(grain="moment") if reading.word else found


def some_period(reading: DateReading) -> Period:
    """Last week, next month, this year."""
    return periods.shift(reading.today, reading.unit, reading.number("shift"))


def this_weekend(reading: DateReading) -> Period:
    """The current or coming weekend; the last one for a past tense before Saturday."""
    gone = reading.speaks_of_past() and reading.today.weekday() < 5
    return periods.shift(reading.today, "weekend", -1 if gone else 0)


def the_weekend(reading: DateReading) -> Period:
    """As `this_weekend`, but on Monday and Tuesday the last one unless the tense is future."""
    if reading.today.weekday() < 2 and "future" not in reading.tenses():
        return periods.shift(reading.today, "weekend", -1)
    return this_weekend(reading)


def count_units(reading: DateReading) -> Period | None:
    """Three days ago, in two weeks. With a past tense, "in two weeks" is a duration, not a date."""
    count = reading.count * reading.number("sign")
    if count > 0 and reading.speaks_of_past():
        return None
    if reading.unit == "year" and abs(count) == 1:
        found = periods.shift(reading.today, "month", 12 * count)
    else:
        found = periods.shift(reading.today, reading.unit, count)
    return found._replace(approximate="vague" in reading.slots)


def count_hours(reading: DateReading) -> Period:
    """Two hours ago: the day of that moment."""
    then = reading.at - timedelta(minutes=reading.count * reading.number("minutes"))
    return periods.day(then.date())._replace(grain="moment")


def lasting(reading: DateReading) -> Period:
    """The last three years, two years now."""
    found = periods.back_to(reading.today, reading.unit, reading.count)
    return found._replace(approximate="vague" in reading.slots)


def lasting_in_perfect(reading: DateReading) -> Period | None:
    """For three years, if the clause says that it continues."""
    return lasting(reading) if "perfect" in reading.tenses() else None


def weekday_before(reading: DateReading) -> Period:
    """Last Friday: never today."""
    back = (reading.today.weekday() - reading.number("weekday") - 1) % 7 + 1
    return periods.shift(reading.today, "day", -back)


def weekday_after(reading: DateReading) -> Period:
    """Next Friday: never today."""
    ahead = (reading.number("weekday") - reading.today.weekday() - 1) % 7 + 1
    return periods.shift(reading.today, "day", ahead)


def weekday_by_tense(reading: DateReading) -> Period:
    """Friday: the next one unless the tense is past, never today."""
    return weekday_before(reading) if reading.speaks_of_past() else weekday_after(reading)


def this_weekday(reading: DateReading) -> Period:
    """As `weekday_by_tense`, but today counts."""
    if reading.number("weekday") == reading.today.weekday():
        return periods.day(reading.today)
    return weekday_by_tense(reading)


def weekdays_counted(reading: DateReading) -> Period:
    """Two Fridays ago."""
    nearest = weekday_before(reading).first
    return periods.shift(nearest, "day", -7 * (reading.count - 1))


def weekday_of_week(reading: DateReading) -> Period:
    """Friday of last week."""
    week = periods.shift(reading.today, "week", reading.number("shift"))
    return periods.shift(week.first, "day", reading.number("weekday"))


def some_season(reading: DateReading) -> Period:
    """Last summer has ended, next summer has not begun, this summer is in this year."""
    index, shift, today = reading.number("season"), reading.number("shift"), reading.today
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


def month_by_tense(reading: DateReading) -> Period | None:
    """In May: the nearest that fits the tense; without a tense, None if it is months away."""
    today, number = reading.today, reading.number("month")
    candidates = [periods.month(today.year + step, number) for step in (-1, 0, 1)]
    found = _by_tense(reading, candidates)
    in_doubt = not reading.tenses() and abs((found.first - today).days) > _MONTHS_IN_DOUBT
    return None if in_doubt else found


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


def calendar_day(reading: DateReading) -> Period:
    """May 5 of a year, of the year in `shift` ("last year"), or the nearest that fits the tense."""
    month, day, today = reading.number("month"), reading.number("day"), reading.today
    if "year" in reading.slots:
        return periods.day(date(reading.number("year"), month, day))._replace(relative=False)
    if "shift" in reading.slots:
        return periods.day(date(today.year + reading.number("shift"), month, day))
    candidates = [found for step in range(-4, 5) if (found := _day(today.year + step, month, day))]
    return _by_tense(reading, candidates)


def day_of_month(reading: DateReading) -> Period | None:
    """The 5th, `shift` months away if that is given; else the next unless the tense is past."""
    today, number = reading.today, reading.number("day")
    if "shift" in reading.slots:
        return periods.day(date(*periods.months_away(today, reading.number("shift")), number))
    sign = -1 if reading.speaks_of_past() else 1
    months = [periods.months_away(today, sign * step) for step in range(3)]
    days = [found for year, month in months if (found := _day(year, month, number))]
    return next((found for found in days if (found.first - today).days * sign >= 0), None)


def _day(year: int, month: int, day: int) -> Period | None:
    try:
        return periods.day(date(year, month, day))
    except ValueError:
        return None


def _by_tense(reading: DateReading, candidates: list[Period]) -> Period:
    """Return the nearest candidate that fits the tense, if possible within `_MAX_DAYS_AWAY`."""
    today = reading.today
    near = [found for found in candidates if abs((found.first - today).days) < _MAX_DAYS_AWAY]
    if reading.speaks_of_past():
        gone = [found for found in near if found.first <= today]
        near = [
            found for found in gone if (today - found.first).days < _FAR_BACK[found.grain]
        ] or near
    elif "future" in reading.tenses():
        near = [found for found in near if found.last >= today]
    ahead = 1.0 if reading.tenses() else _RATHER_AHEAD
    return min(near or candidates, key=lambda found: _distance(found, today, ahead))


def _distance(found: Period, today: date, ahead: float) -> float:
    days = (found.first - today).days
    return days if days >= 0 else -days * ahead
