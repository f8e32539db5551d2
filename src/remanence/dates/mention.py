"""What was found: a stretch of text that means a period."""

from dataclasses import dataclass
from datetime import date
from typing import Literal

Grain = Literal["day", "weekend", "week", "month", "season", "year", "moment"]


@dataclass(frozen=True, slots=True, kw_only=True)
class DateMention:
    """The stretch `start..end` of a text and the inclusive period it means.

    `relative` tells that the period depends on when the text was written. `moment` is a part of one day.
    """

    start: int
    end: int
    text: str
    first: date
    last: date
    grain: Grain
    relative: bool
    approximate: bool = False
    """The text is vague ("a few days ago")."""
    lasting: bool = False
    """A duration that reaches up to the message ("for three years now")."""
    word: str = ""
    """The word of the text that its rendering keeps: a season or a part of the day."""
    language: str = "english"
