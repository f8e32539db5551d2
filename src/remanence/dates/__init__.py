"""Dates that a text speaks of, and the absolute dates they mean at the time it was written."""

from remanence.dates.find import find_dates, finding_dates, resolve_dates
from remanence.dates.mention import DateMention, Grain
from remanence.dates.render import iso_date, render_date

__all__ = [
    "DateMention",
    "Grain",
    "find_dates",
    "finding_dates",
    "iso_date",
    "render_date",
    "resolve_dates",
]
