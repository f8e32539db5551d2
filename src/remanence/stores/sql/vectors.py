"""Vectors of notes, messages and facts: pending tasks, writes, and exact search with numpy."""

import importlib
import struct
from collections.abc import Callable, Iterator, Sequence
from datetime import datetime
from math import sqrt
from typing import LiteralString, NamedTuple, TypeAlias

from remanence.errors import ObservationRejected, needs_extra
from remanence.protocols import EVERYTHING
from remanence.stores.rows import NO_LIMIT, Row, decode_content, decode_notes, decode_time
from remanence.stores.sql import facts
from remanence.stores.sql.connection import Connection
from remanence.stores.sql.search import MAX_NOTES, condition_of, first_hits, note_rowid
from remanence.stores.terms import searchable_text
from remanence.types import (
    ConversationRef,
    Fact,
    FactCondition,
    Hit,
    Keep,
    Owner,
    RecallFilter,
    VectorItem,
    VectorTask,
)

_MAX_CHARACTERS = 10_000  # of a text; somewhat more than embedders accept
_FACTS = 256
_FLOAT_BYTES = 4
_CURRENT_FACTS: LiteralString = (
    "FROM fact_vectors JOIN facts ON facts.key = fact JOIN fact_owners ON fact_owners.key = owner "
    'WHERE tenant = ? AND "user" = ? AND valid_to IS NULL'
)
_IS_ORPHAN: LiteralString = (
    "(item > 0 AND NOT EXISTS (SELECT 1 FROM messages WHERE key = item AND kind = 'message')) "  # noqa: S608 - a constant
    "OR (item < 0 AND NOT EXISTS (SELECT 1 FROM segments "
    f"WHERE key = -item / {MAX_NOTES} AND superseded IS NULL))"
)


def next_task(
    connection: Connection, model: str, *, keep: Keep, at: datetime, place: str = ""
) -> VectorTask | None:
    """Return the oldest segment without vectors of *model*, or else the oldest facts."""
    return _segment_task(connection, model, keep, at) or _facts_task(connection, model, place)


def save(connection: Connection, task: VectorTask, found: Sequence[Sequence[float]]) -> None:
    _require_comparable(connection, task, found)
    made = [
        (item.key, encode_vector(vector)) for item, vector in zip(task.items, found, strict=True)
    ]
    if task.subject == "fact":
        connection.executemany(
            "INSERT INTO fact_vectors (fact, model, vector) "
            "SELECT key, ?, ? FROM facts WHERE key = ? AND valid_to IS NULL "
            "ON CONFLICT (fact, model) DO UPDATE SET vector = excluded.vector",
            [(task.model, vector, key) for key, vector in made],
        )
    elif _lock_conversation(connection, task.cursor):
        connection.executemany(
            "INSERT INTO vectors (item, model, conversation, vector) "
            "SELECT key, ?, conversation, ? FROM messages WHERE key = ? AND kind = 'message' "
            "ON CONFLICT (item, model) DO UPDATE SET vector = excluded.vector",
            [(task.model, vector, key) for key, vector in made if key > 0],
        )
        connection.executemany(
            "INSERT INTO vectors (item, model, conversation, vector) "
            "SELECT ?, ?, conversation, ? FROM segments WHERE key = ? AND superseded IS NULL "
            "ON CONFLICT (item, model) DO UPDATE SET vector = excluded.vector",
            [(key, task.model, vector, -key // MAX_NOTES) for key, vector in made if key < 0],
        )
    connection.execute(
        "INSERT INTO vector_cursors (model, subject, cursor) VALUES (?, ?, ?) "
        "ON CONFLICT (model, subject) DO UPDATE SET cursor = excluded.cursor",
        (_cursor_name(task.model, task.place), task.subject, task.cursor),
    )


def _lock_conversation(connection: Connection, segment_key: int) -> bool:
    """Keep others from erasing what a task is about meanwhile; return whether the segment is there.

    The messages of a purged or erased one are embedded with the segment that took its place.
    """
    ref = connection.execute(
        "SELECT tenant, conversations.id FROM segments "
        "JOIN conversations ON conversations.key = conversation WHERE segments.key = ?",
        (segment_key,),
    ).get
    if ref is not None:
        connection.lock(ConversationRef(*ref))
    return ref is not None


def _require_comparable(
    connection: Connection, task: VectorTask, found: Sequence[Sequence[float]]
) -> None:
    """Raise `ObservationRejected` unless the vectors are as long as one already stored for the model."""
    key, table = ("fact", "fact_vectors") if task.subject == "fact" else ("item", "vectors")
    stored: int | None = connection.execute(
        f"SELECT length(vector) FROM {table} WHERE model = ? AND {key} = "  # noqa: S608 - constants
        f"(SELECT min({key}) FROM {table} WHERE model = ?)",  # read from the index, which is small
        (task.model, task.model),
    ).get
    if stored and found and len(found[0]) * _FLOAT_BYTES != stored:
        raise ObservationRejected(
            "malformed",
            f"{task.model} gave vectors of {len(found[0])} dimensions, and those stored under its name "
            f"have {stored // _FLOAT_BYTES}: give the embedder another name, under which all texts get "
            "new vectors",
        )


def copy(connection: Connection, source: int, fork: int) -> None:
    """Copy the vectors of a conversation's messages to its fork."""
    connection.execute(
        "INSERT INTO vectors (item, model, conversation, vector) "
        "SELECT mine.key, model, mine.conversation, vector FROM messages AS mine "
        "JOIN messages AS theirs ON theirs.conversation = ? AND theirs.seq = mine.seq "
        "JOIN vectors ON item = theirs.key WHERE mine.conversation = ?",
        (source, fork),
    )


def remove_segment(connection: Connection, segment_key: int) -> None:
    """Remove the vectors of a segment's notes."""
    connection.execute(
        "DELETE FROM vectors WHERE item BETWEEN ? AND ?",
        (note_rowid(segment_key, MAX_NOTES - 1), note_rowid(segment_key, 0)),
    )


def count_orphans(connection: Connection) -> int:
    """Return the number of vectors whose message or note is erased or replaced."""
    counted: int = connection.execute(f"SELECT count(*) FROM vectors WHERE {_IS_ORPHAN}").get  # noqa: S608 - a constant
    return counted


def remove_orphans(connection: Connection) -> None:
    """Remove the vectors that `count_orphans` counts."""
    connection.execute(f"DELETE FROM vectors WHERE {_IS_ORPHAN}")  # noqa: S608 - a constant


def count(connection: Connection, conversation: int) -> int:
    """Return the number of vectors of a conversation's messages and notes."""
    counted: int = connection.execute(
        "SELECT count(*) FROM vectors WHERE conversation = ?", (conversation,)
    ).get
    return counted


class Comparison(NamedTuple):
    """A vector, and the query for those to compare it with: a key, its rows, and their values.

    The last value is the model. At least *limit* of the nearest are needed.
    """

    vector: Sequence[float]
    key: LiteralString
    rows: LiteralString
    values: Sequence[str]
    limit: int


def rank_exactly(connection: Connection, query: Comparison) -> Iterator[tuple[int, float]]:
    """Yield keys by similarity to the vector; ties in the order of their keys."""
    found = connection.execute(
        f"SELECT {query.key}, vector {query.rows} AND model = ? AND length(vector) = ?",
        (*query.values, _FLOAT_BYTES * len(query.vector)),
    ).fetchall()
    if not found:
        return
    with needs_extra("vectors"):
        numpy = importlib.import_module("numpy")
    floats = numpy.frombuffer(b"".join(value for _, value in found), dtype="<f4")
    vector = numpy.frombuffer(encode_vector(query.vector), dtype="<f4")
    scores = floats.reshape(-1, len(query.vector)) @ vector
    for place in numpy.lexsort(([item for item, _ in found], -scores)):
        yield found[place][0], float(scores[place])


Rank: TypeAlias = Callable[[Connection, Comparison], Iterator[tuple[int, float]]]


def nearest(
    connection: Connection,
    of: ConversationRef | Owner,
    model: str,
    vector: Sequence[float],
    *,
    limit: int,
    only: RecallFilter = EVERYTHING,
    rank: Rank = rank_exactly,
) -> tuple[Hit, ...]:
    rows: LiteralString = (
        f"FROM vectors JOIN conversations ON key = conversation WHERE {condition_of(of)}"
    )
    matches = rank(connection, Comparison(vector, "item", rows, (*of, model), limit))
    return first_hits(connection, matches, limit=limit, only=only)


def nearest_facts(
    connection: Connection,
    owner: Owner,
    model: str,
    vector: Sequence[float],
    *,
    limit: int,
    only: FactCondition | None = None,
    rank: Rank = rank_exactly,
) -> tuple[Fact, ...]:
    query = Comparison(vector, "fact", _CURRENT_FACTS, (*owner, model), limit)
    matches = rank(connection, query)
    return facts.by_rank(connection, owner, matches, limit=limit, only=only)


def encode_vector(vector: Sequence[float]) -> bytes:
    """Return the vector scaled to length 1, as stored."""
    length = sqrt(sum(value * value for value in vector)) or 1.0
    return struct.pack(f"<{len(vector)}f", *(value / length for value in vector))


def _cursor(connection: Connection, model: str, subject: str) -> int:
    cursor: int | None = connection.execute(
        "SELECT cursor FROM vector_cursors WHERE model = ? AND subject = ?", (model, subject)
    ).get
    return cursor or 0


def _cursor_name(model: str, place: str) -> str:
    """Return the name of the cursor of vectors that are kept in *place*."""
    return f"{model} in {place}" if place else model


def _segment_task(
    connection: Connection, model: str, keep: Keep, at: datetime
) -> VectorTask | None:
    row = connection.execute(
        "SELECT key, conversation, first_seq, last_seq, superseded, text, notes "
        "FROM segments WHERE key > ? ORDER BY key LIMIT 1",
        (_cursor(connection, model, "segment"),),
    ).fetchone()
    if row is None:
        return None
    segment_key, conversation, first_seq, last_seq, superseded, text, notes = row
    items: list[VectorItem] = []
    if superseded is None:
        texts = [note.text for note in decode_notes(notes)][:MAX_NOTES] or [text]
        made = _made_of_segment(connection, segment_key, model)
        rowids = [note_rowid(segment_key, place) for place in range(len(texts))]
        items += [
            VectorItem(rowid, text)
            for rowid, text in zip(rowids, texts, strict=True)
            if rowid not in made
        ]
    # A message is embedded with its observation, or with a reflection if that was purged.
    rows: list[Row] = []
    for first, last in _uncovered_ranges(
        connection, segment_key, conversation, first_seq, last_seq
    ):
        rows += connection.execute(
            "SELECT key, created_at, content FROM messages "
            "WHERE conversation = ? AND seq BETWEEN ? AND ? AND kind = 'message' "
            "AND NOT EXISTS (SELECT 1 FROM vectors WHERE item = messages.key AND model = ?)",
            (conversation, first, last, model),
        )
    items += [
        VectorItem(key, searchable_text(decode_content(content)))
        for key, _, content in _filter_by_retention(connection, conversation, rows, keep, at)
    ]
    return VectorTask(model=model, subject="segment", cursor=segment_key, items=_cut(items))


def _made_of_segment(connection: Connection, segment_key: int, model: str) -> set[int]:
    """Return the notes of a segment that have vectors, as it was indexed before."""
    rows = connection.execute(
        "SELECT item FROM vectors WHERE item BETWEEN ? AND ? AND model = ?",
        (note_rowid(segment_key, MAX_NOTES - 1), note_rowid(segment_key, 0), model),
    )
    return {item for (item,) in rows}


def _filter_by_retention(
    connection: Connection, conversation: int, rows: Sequence[Row], keep: Keep, at: datetime
) -> Sequence[Row]:
    """Return the messages (key, time, ...) whose vectors the retention rule would keep."""
    if not keep:
        return rows
    newest: set[int] = set()
    if keep.last is not None:
        last = min(keep.last, NO_LIMIT)
        made = connection.execute(
            "SELECT DISTINCT item FROM vectors WHERE conversation = ? AND item > 0 "
            "ORDER BY item DESC LIMIT ?",
            (conversation, last),
        )
        keys = {*(item for (item,) in made), *(key for key, *_ in rows)}
        newest = {*sorted(keys, reverse=True)[:last]}
    cutoff = keep.cutoff(at)
    return [row for row in rows if row[0] in newest or decode_time(row[1]) >= cutoff]


def _uncovered_ranges(
    connection: Connection, segment_key: int, conversation: int, first_seq: int, last_seq: int
) -> Iterator[tuple[int, int]]:
    """Yield the ranges of a segment that no earlier segment covers.

    Covered messages were already tried: a missing vector was deleted by retention, or refused by
    the embedder.
    """
    earlier = connection.execute(
        "SELECT first_seq, last_seq FROM segments "
        "WHERE conversation = ? AND key < ? AND last_seq >= ? AND first_seq <= ? ORDER BY first_seq",
        (conversation, segment_key, first_seq, last_seq),
    )
    start = first_seq
    for first, last in earlier.fetchall():
        if first > start:
            yield start, first - 1
        start = max(start, last + 1)
    if start <= last_seq:
        yield start, last_seq


def _facts_task(connection: Connection, model: str, place: str) -> VectorTask | None:
    after = _cursor(connection, _cursor_name(model, place), "fact")
    rows: Sequence[Row] = connection.execute(
        'SELECT facts.key, summary, tenant, "user", id FROM facts '
        "JOIN fact_owners ON fact_owners.key = owner "
        "WHERE facts.key > ? AND valid_to IS NULL AND (? != '' OR NOT EXISTS "
        "(SELECT 1 FROM fact_vectors WHERE fact = facts.key AND model = ?)) "
        "ORDER BY facts.key LIMIT ?",
        (after, place, model, _FACTS),
    ).fetchall()
    if not rows:
        return None
    items = [
        VectorItem(key, summary, Owner(tenant, user), id_)
        for key, summary, tenant, user, id_ in rows
    ]
    cursor = items[-1].key
    return VectorTask(
        model=model,
        subject="fact",
        cursor=cursor,
        items=_cut(items),
        place=place,
        ended=_superseded_facts(connection, after, cursor) if place else (),
    )


def _superseded_facts(
    connection: Connection, after: int, last: int
) -> tuple[tuple[Owner, str], ...]:
    """Return the facts that those with keys up to *last* superseded; the store has no vectors of them."""
    rows = connection.execute(
        'SELECT tenant, "user", old.id FROM facts AS new '
        "JOIN facts AS old ON old.owner = new.owner AND old.superseded_by = new.id "
        "JOIN fact_owners ON fact_owners.key = new.owner WHERE new.key > ? AND new.key <= ?",
        (after, last),
    )
    return tuple((Owner(tenant, user), fact_id) for tenant, user, fact_id in rows)


def _cut(items: Sequence[VectorItem]) -> tuple[VectorItem, ...]:
    """Return the items that have text, truncated to `_MAX_CHARACTERS`."""
    return tuple(
        item._replace(text=text[:_MAX_CHARACTERS]) for item in items if (text := item.text.strip())
    )
