"""The meanings of phrases: map the slots of a match and the time of the message to a period.

"last Friday" is the most recent Friday before the message's day, "next Friday" the first one after
it. A bare weekday is in the direction of the tense of its clause, and stays as said without one. A
date without a year is in the future, unless its clause is in the past tense.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from typing import Literal, NamedTuple, cast

from remanence.dates import periods
from remanence.dates.periods import Period, Unit

_MAX_DAYS_AWAY = 300
"""An undecided date has one reading if only one of its years is nearer than that."""
_RATHER_AHEAD = 1.2
"""Factor on the distance of past days if the clause has no tense, in favour of future ones."""
_DAYS_IN_DOUBT = 130
_SOON_DAYS = 3
"""Days within which a weekday of this week would not be called the next."""
_THURSDAY, _SATURDAY = 3, 5

Tense = Literal["past", "present", "future"]


class Clause(NamedTuple):
    """The words around a date, as far as they say when it is."""

    tense: Tense | None
    perfect: bool
    undecided: bool
    """The clause is past, its date may be ahead: "I booked a table for Friday"."""
    yearly: bool
    """The clause is about a date of every year: a birthday."""
    weekly: bool
    """The clause is about a habit: "we always meet on Friday"."""

    def is_habit(self) -> bool:
        """Return whether its weekdays are those of every week."""
        return self.weekly and self.tense != "past"


@dataclass(frozen=True, slots=True, kw_only=True)
class DateReading:
    """A matched phrase: its time, slots, word to keep, and (on demand) the clause around it."""

    at: datetime
    slots: Mapping[str, int | str]
    word: str
    clause: Callable[[], Clause]

    @property
    def today(self) -> date:
        return self.at.date()

    @property
    def unit(self) -> Unit:
        return cast("Unit", self.slots["unit"])  # the tables have no other value for this slot

    @property
    def count(self) -> int:
        return self.number("number")

    def number(self, slot: str) -> int:
        return int(self.slots[slot])

    def is_past(self) -> bool:
        """Return whether the clause is past, and its date with it."""
        clause = self.clause()
        return clause.tense == "past" and not clause.undecided


def some_day(reading: DateReading) -> Period:
    """Yesterday, last night: the day `shift` days away, or a part of it."""
    found = periods.shift(reading.today, "day", reading.number("shift"))
    return found._replace(grain="moment") if reading.word else found


def some_period(reading: DateReading) -> Period:
    """Last week, next month, this year."""
    return periods.shift(reading.today, reading.unit, reading.number("shift"))


def this_weekend(reading: DateReading) -> Period | None:
    """The current or coming weekend; the last one for a past tense early in the week.

    None for a past tense on Thursday or Friday, which are as near to the one as to the other.
    """
    today = reading.today.weekday()
    gone = reading.is_past() and today < _SATURDAY
    if gone and today >= _THURSDAY:
        return None
    return periods.shift(reading.today, "weekend", -1 if gone else 0)


def the_weekend(reading: DateReading) -> Period | None:
    """The last weekend for a past tense, the coming one for a future tense, else None: any."""
    clause = reading.clause()
    if clause.undecided or clause.is_habit() or clause.tense not in ("past", "future"):
        return None
    gone = clause.tense == "past" and reading.today.weekday() < _SATURDAY
    return periods.shift(reading.today, "weekend", -1 if gone else 0)


def count_units(reading: DateReading) -> Period | None:
    """Three days ago, in two weeks. With a past tense, "in two weeks" is a duration, not a date."""
    count = reading.count * reading.number("sign")
    if count > 0 and reading.clause().tense == "past":
        return None
    if reading.unit == "year" and abs(count) == 1:
        return periods.shift(reading.today, "month", 12 * count)
    return periods.shift(reading.today, reading.unit, count)


def count_hours(reading: DateReading) -> Period:
    """Two hours ago: the day of that moment."""
    then = reading.at - timedelta(minutes=reading.count * reading.number("minutes"))
    return periods.day(then.date())._replace(grain="moment")


def lasting(reading: DateReading) -> Period:
    """The last three years, two years now."""
    return periods.back_to(reading.today, reading.unit, reading.count)


def lasting_in_perfect(reading: DateReading) -> Period | None:
    """For three years, if the clause says that it continues."""
    return lasting(reading) if reading.clause().perfect else None


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
    found, number = weekday_after(reading), reading.number("weekday")
    is_soon = number >= _SATURDAY or (found.first - reading.today).days <= _SOON_DAYS
    return None if is_soon and number > reading.today.weekday() else found


def weekday_by_tense(reading: DateReading) -> Period | None:
    """Friday: the next one or, in the past, the last one, never today; None without a tense."""
    clause = reading.clause()
    if clause.undecided or clause.is_habit() or clause.tense is None:
        return None
    return weekday_before(reading) if reading.is_past() else weekday_after(reading)


def this_weekday(reading: DateReading) -> Period | None:
    """This Friday: today, the next one, or the last one if the tense is past.

    None without a tense if the day of this week is gone.
    """
    number, today = reading.number("weekday"), reading.today.weekday()
    if number == today:
        return periods.day(reading.today)
    if reading.is_past():
        return weekday_before(reading)
    is_gone = number < today and reading.clause().tense != "future"
    return None if is_gone else weekday_after(reading)


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
    """In May: the nearest that fits the tense."""
    today, number = reading.today, reading.number("month")
    return _by_tense(reading, [periods.month(today.year + step, number) for step in (-1, 0, 1)])


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
    """May 5 of a year, of the year in `shift` ("last year"), or the nearest that fits the tense.

    A weekday before it gives the year: "samedi 5 septembre"; None if no year agrees.
    """
    month, day, today = reading.number("month"), reading.number("day"), reading.today
    if "year" in reading.slots:
        return periods.day(date(reading.number("year"), month, day))._replace(relative=False)
    if "shift" in reading.slots:
        return periods.day(date(today.year + reading.number("shift"), month, day))
    candidates = [found for step in range(-4, 5) if (found := _day(today.year + step, month, day))]
    if "weekday" in reading.slots:
        near = (found for found in candidates if abs(found.first.year - today.year) < 2)
        candidates = [day for day in near if day.first.weekday() == reading.number("weekday")]
    return _by_tense(reading, candidates)


def day_of_month(reading: DateReading) -> Period | None:
    """The 5th, `shift` months away if that is given; else the next or last one, by the tense."""
    today, number = reading.today, reading.number("day")
    if "shift" in reading.slots:
        return periods.day(date(*periods.months_away(today, reading.number("shift")), number))
    clause = reading.clause()
    if clause.undecided or clause.tense is None:
        return None
    sign = -1 if reading.is_past() else 1
    months = [periods.months_away(today, sign * step) for step in range(3)]
    days = [found for year, month in months if (found := _day(year, month, number))]
    return next((found for found in days if (found.first - today).days * sign >= 0), None)


def _day(year: int, month: int, day: int) -> Period | None:
    try:
        return periods.day(date(year, month, day))
    except ValueError:
        return None


def _by_tense(reading: DateReading, candidates: list[Period]) -> Period | None:
    """Return the candidate, in chronological order, that fits the tense; None if two do.

    Without past or future it is the nearest; if that is months away, only in the present and ahead.
    """
    today, clause = reading.today, reading.clause()
    if clause.undecided:
        near = [found for found in candidates if abs((found.first - today).days) < _MAX_DAYS_AWAY]
        return near[0] if len(near) == 1 else None
    if clause.tense == "past":
        return next((found for found in reversed(candidates) if found.first <= today), None)
    if clause.yearly and len(candidates) > 1:
        return None
    if clause.tense == "future":
        return next((found for found in candidates if found.last >= today), None)

    def distance(found: Period) -> float:
        days = (found.first - today).days
        return days if days >= 0 else -days * _RATHER_AHEAD

    nearest = min(candidates, key=distance, default=None)
    if nearest is None or len(candidates) == 1:
        return nearest
    days = (nearest.first - today).days
    is_plan = clause.tense == "present" and days >= 0
    return nearest if is_plan or abs(days) <= _DAYS_IN_DOUBT else None
