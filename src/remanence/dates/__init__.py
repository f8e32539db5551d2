"""Find the dates in a text and resolve relative ones from the time it was written."""

from remanence.dates.find import find_dates, finding_dates, resolve_dates
from remanence.dates.periods import DateMention, Grain
from remanence.dates.render import (
    iso_date,
    may_replace,
    render_date,
    without_dates,
    words_with_date,
)

__all__ = [
    "DateMention",
    "Grain",
    "find_dates",
    "finding_dates",
    "iso_date",
    "may_replace",
    "render_date",
    "resolve_dates",
    "without_dates",
    "words_with_date",
]
