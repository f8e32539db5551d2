"""The options `--since` and `--until`."""

import re
from datetime import datetime
from typing import Annotated

import typer

from remanence.cli.transcripts import instant
from remanence.errors import InvalidMessage

_MONTH = re.compile(r"\d{4}-\d{2}")


def _time(value: str) -> datetime:
    first_day = f"{value}-01" if _MONTH.fullmatch(value) else value
    try:
        return instant(first_day, "the value")
    except InvalidMessage as error:
        raise typer.BadParameter(
            f"{value!r:.80} is not a time: write a month, a day or a time, such as 2026-03, 2026-03-02 "
            "or 2026-03-02T09:12:17+01:00"
        ) from error


Since = Annotated[
    datetime | None,
    typer.Option(
        parser=_time,
        metavar="TIME",
        help="Only from this month, day or time on, in UTC if it has no zone.",
    ),
]
Until = Annotated[
    datetime | None,
    typer.Option(parser=_time, metavar="TIME", help="Only from before this month, day or time."),
]


def require_period(since: datetime | None, until: datetime | None) -> None:
    """Raise `typer.BadParameter` if no time is in the period."""
    if since is not None and until is not None and until <= since:
        raise typer.BadParameter(
            "no time is since --since and before --until: name a later --until, or leave one out"
        )
