"""Deletion of rows by retention rules, oldest first, and the sizes of the tables that grow.

Live segments, messages and cursors, which contexts need, are never touched. Rows younger than a day
stay, for daily budgets, readiness and readers in progress.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final, LiteralString, NamedTuple

from remanence.stores.rows import NO_LIMIT, decode_time, encode_instant
from remanence.stores.sql.connection import Connection
from remanence.types import Keep, MemoryState, Pruned, Retention, TableSize

_TABLES: tuple[LiteralString, ...] = (
    *("messages", "text_index", "segments", "journal", "events", "model_calls", "vectors"),
    *("facts", "fact_repetitions", "fact_vectors"),
)


class _Rows(NamedTuple):
    """The statement that deletes the oldest rows of a kind, but not a number of the newest."""

    delete: LiteralString
    oldest: LiteralString


_SUPERSEDED: Final = _Rows(
    "DELETE FROM segments WHERE key IN (",
    "SELECT key FROM (SELECT key, coalesce((SELECT min(newer.created_at) FROM segments AS newer "
    "WHERE newer.conversation = segments.conversation AND newer.version = segments.superseded), "
    "created_at) AS at FROM segments WHERE conversation = ? AND superseded IS NOT NULL "
    "AND superseded <= (SELECT superseded FROM segments WHERE conversation = ? "
    "AND superseded IS NOT NULL ORDER BY superseded DESC LIMIT 1 OFFSET ?) "
    "ORDER BY superseded LIMIT ?) AS oldest WHERE at < ?",
)
"""The age counts from the replacement, so that the history is complete back to some point."""

_LOG: Final = _Rows(
    "DELETE FROM journal WHERE (conversation, version) IN (",
    "SELECT conversation, version FROM (SELECT conversation, version, at FROM journal "
    "WHERE conversation = ? "
    "AND version <= (SELECT max(version) FROM journal WHERE conversation = ?) - ? "
    "ORDER BY version LIMIT ?) AS oldest WHERE at < ?",
)

_VECTORS: Final = (
    "SELECT DISTINCT item, created_at FROM vectors "
    "JOIN messages ON messages.key = item WHERE vectors.conversation = ? AND item > 0 "
    "AND item <= (SELECT DISTINCT item FROM vectors WHERE conversation = ? AND item > 0 "
    "ORDER BY item DESC LIMIT 1 OFFSET ?) ORDER BY item LIMIT ?"
)
"""Vectors of messages; those of notes are few, and go when the notes are replaced."""

_USAGE: Final = _Rows(
    "DELETE FROM model_calls WHERE key IN (",
    "SELECT key FROM (SELECT key, at FROM model_calls "
    "WHERE key <= (SELECT max(key) FROM model_calls) - ? "
    "ORDER BY key LIMIT ?) AS oldest WHERE at < ?",
)


def prune(
    connection: Connection,
    states: Sequence[MemoryState],
    rules: Retention,
    *,
    at: datetime,
    limit: int,
    only_count: bool = False,
) -> Pruned:
    pruning = _Pruning(connection, at, only_count)
    superseded = log = vectors = 0
    for state in states:
        of = (state.key,)
        superseded += pruning.rows(_SUPERSEDED, rules.superseded, of, limit - superseded)
        log += pruning.rows(_LOG, rules.log, of, limit - log)
        vectors += pruning.vectors(rules.vectors, state.key, limit - vectors)
    return Pruned(superseded=superseded, log=log, vectors=vectors)


def prune_usage(
    connection: Connection,
    rules: Retention,
    *,
    at: datetime,
    limit: int,
    only_count: bool = False,
) -> int:
    return _Pruning(connection, at, only_count).rows(_USAGE, rules.usage, (), limit)


@dataclass(frozen=True, slots=True)
class _Pruning:
    """Deletes rows in batches, or only counts them."""

    connection: Connection
    at: datetime
    only_count: bool

    def rows(self, rows: _Rows, keep: Keep, of: tuple[int, ...], limit: int) -> int:
        if not keep or limit <= 0:
            return 0
        spared = min(keep.last or int(rows is _LOG), NO_LIMIT)
        values = (*of, *of, spared, limit, encode_instant(keep.cutoff(self.at)))
        if not self.only_count:
            self.connection.execute(rows.delete + rows.oldest + ")", values)
            return self.connection.changes()
        counted: int = self.connection.execute(
            "SELECT count(*) FROM (" + rows.oldest + ") AS due",  # noqa: S608 - constants
            values,
        ).get
        return counted

    def vectors(self, keep: Keep, conversation: int, limit: int) -> int:
        """Delete the vectors of at most *limit* messages, or only count the messages.

        The age is compared in Python: message times have a UTC offset and do not sort as strings.
        """
        if not keep or limit <= 0:
            return 0
        spared = min(keep.last or 0, NO_LIMIT)
        rows = self.connection.execute(
            _VECTORS, (conversation, conversation, spared, limit)
        ).fetchall()
        cutoff = keep.cutoff(self.at)
        old = [item for item, created_at in rows if decode_time(created_at) < cutoff]
        if self.only_count:
            return len(old)
        deleted = 0
        for item in old:
            self.connection.execute("DELETE FROM vectors WHERE item = ?", (item,))
            deleted += self.connection.changes()
        return deleted


def sizes_with(connection: Connection, bytes_by_table: Mapping[str, int]) -> tuple[TableSize, ...]:
    """Return the sizes of the tables, the largest first."""
    found = []
    for table in _TABLES:
        rows = connection.execute(f"SELECT count(*) FROM {table}").get  # noqa: S608 - a constant
        found.append(TableSize(table, rows, bytes_by_table.get(table, 0)))
    return tuple(sorted(found, key=lambda size: -size.bytes))
