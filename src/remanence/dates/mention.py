"""The mention of a date: a span of text and the period it means."""

from dataclasses import dataclass
from datetime import date
from typing import Literal

Grain = Literal["day", "weekend", "week", "month", "season", "year", "moment"]


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
    word: str = ""
    """The word that the rendering keeps: a season or a part of the day."""
    language: str = "english"
