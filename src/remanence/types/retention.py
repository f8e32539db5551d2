"""Rules for rows that memory no longer needs, and the sizes of tables."""

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Final, NamedTuple

_BEGINNING: Final = datetime.min.replace(tzinfo=UTC)


@dataclass(frozen=True, slots=True, kw_only=True)
class Keep:
    """The rows of a kind to keep: those younger than `days`, and the newest `last`.

    Rows of the last 24 hours are always kept; without a rule, all rows are.
    """

    days: int | None = None
    last: int | None = None

    def __bool__(self) -> bool:
        return self.days is not None or self.last is not None

    def cutoff(self, now: datetime) -> datetime:
        """Return the time before which rows may be deleted; at the earliest in the year 1."""
        return now - timedelta(days=min(self.days or 1, (now - _BEGINNING).days))


@dataclass(frozen=True, slots=True, kw_only=True)
class Retention:
    """The rows to keep of replaced segments, log entries, model calls and message vectors.

    `last` counts per conversation, and for model calls in the whole database.
    """

    superseded: Keep = Keep()
    log: Keep = Keep()
    usage: Keep = Keep()
    vectors: Keep = Keep()

    def __bool__(self) -> bool:
        return any((self.superseded, self.log, self.usage, self.vectors))


class Pruned(NamedTuple):
    """Counts of deleted rows, or of rows that would be deleted."""

    superseded: int = 0
    log: int = 0
    usage: int = 0
    vectors: int = 0

    def plus(self, other: "Pruned") -> "Pruned":
        """Return the sums of both."""
        return Pruned(*(mine + theirs for mine, theirs in zip(self, other, strict=True)))


class TableSize(NamedTuple):
    """The number of rows of a table, and its bytes including indexes."""

    table: str
    rows: int
    bytes: int


class DatabaseSize(NamedTuple):
    """The tables of a database that grow, and the rows that its retention rules would delete."""

    tables: tuple[TableSize, ...]
    prunable: Pruned
