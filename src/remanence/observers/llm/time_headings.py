"""Headings with the day and time of the entries below them."""

from collections.abc import Iterable, Iterator
from datetime import datetime
from typing import NamedTuple

from remanence.observers.llm.prompt import Entry

PAUSE_SECONDS = 900.0
_WEEKDAYS = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")


class TimedEntry(NamedTuple):
    """A piece of data and its time in the user's time zone."""

    at: datetime | None
    entry: Entry


def below_times(items: Iterable[TimedEntry]) -> Iterator[Entry]:
    """Yield the entries with a heading at the start of each day and after each longer pause.

    The first heading has the UTC offset, and so has each one where it changes.
    """
    earlier: datetime | None = None
    for at, entry in items:
        if at is not None:
            if heading := _heading(earlier, at):
                yield Entry(heading, "")
            earlier = at
        yield entry


def below_days(items: Iterable[TimedEntry]) -> Iterator[Entry]:
    """Yield the entries with a heading at the start of each day."""
    day = ""
    for at, entry in items:
        if at is not None and (today := day_heading(at)) != day:
            day = today
            yield Entry(day, "")
        yield entry


def day_heading(at: datetime) -> str:
    """Return a heading such as `Fri 2026-05-08`."""
    return f"{_WEEKDAYS[at.weekday()]} {at.date().isoformat()}"


def _heading(earlier: datetime | None, at: datetime) -> str:
    is_new_zone = earlier is None or earlier.utcoffset() != at.utcoffset()
    if earlier is None or is_new_zone or earlier.date() != at.date():
        return f"{day_heading(at)} {at:%H:%M}{f' {_offset(at)}' if is_new_zone else ''}"
    return f"{at:%H:%M}" if (at - earlier).total_seconds() >= PAUSE_SECONDS else ""


def _offset(at: datetime) -> str:
    return at.isoformat(timespec="minutes")[len("2026-05-08T13:56") :] if at.utcoffset() else "UTC"
