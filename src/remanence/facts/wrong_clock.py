"""Times of facts that were written while the clock was wrong."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime

from remanence.policy.schedule import MAX_AHEAD
from remanence.types import Fact


def correct_times(facts: Sequence[Fact], *, now: datetime, unknown: datetime) -> tuple[Fact, ...]:
    """Return facts, the last written first, without times that are more than a day ahead of *now*.

    They become the time at which the fact before was written, *unknown* if there is none.
    """
    corrected: list[Fact] = []
    written_at = unknown
    for fact in reversed(facts):
        if not _is_ahead(fact.created_at, now):
            written_at = fact.created_at
        if _is_ahead(fact.valid_from, now):
            fact = replace(fact, valid_from=written_at)  # noqa: PLW2901 - the same fact
        if fact.valid_to is not None and _is_ahead(fact.valid_to, now):
            fact = replace(fact, valid_to=max(written_at, fact.valid_from))  # noqa: PLW2901
        corrected.append(fact)
    return tuple(reversed(corrected))


def _is_ahead(at: datetime, now: datetime) -> bool:
    return at - now > MAX_AHEAD
