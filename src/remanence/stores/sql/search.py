"""Full-text search over live notes and raw messages, of one conversation or all of a user's.

`text_index` stores words, not text. Notes are indexed with their segment. Messages are indexed
later, in steps that do not delay an append; a search first indexes the rest of its conversations,
so it finds every committed message. Messages inserted by a memory or its host are not searched.
"""

import itertools
from collections.abc import Iterable, Mapping, Sequence
from typing import LiteralString

from remanence.notes.excerpts import both_ends
from remanence.protocols import EVERYTHING
from remanence.stores.rows import Row, decode_content, decode_notes, decode_time
from remanence.stores.sql import ranking
from remanence.stores.sql.connection import Connection
from remanence.stores.terms import searchable_text
from remanence.types import ConversationRef, Hit, HitKind, Note, Owner, RecallFilter
from remanence.wire.parts import speaker_label

STEP_MESSAGES = 256
STEP_CHARACTERS = 16_000
"""A step takes a few milliseconds, for which other writers wait, and has a commit of its own."""
MAX_INDEXED_CHARACTERS = 400_000
_ROWIDS: Mapping[HitKind | None, tuple[int, int]] = {
    None: ranking.ALL,
    "message": (1, 2**63 - 1),
    "note": (-(2**63), -1),
    "fact": (0, 0),
}
MAX_NOTES = 65_536  # per segment, which has that many rowids


def add_notes(
    connection: Connection, conversation: int, segment_key: int, notes: Sequence[Note], text: str
) -> None:
    """Index a segment's notes, or its text if it has no notes."""
    texts = [note.text for note in notes] or [text]
    for place, note_text in enumerate(texts[:MAX_NOTES]):
        rowid = note_rowid(segment_key, place)
        connection.add_words("text_index", rowid, scope(conversation), note_text)


def remove_segment(connection: Connection, segment_key: int) -> None:
    """Remove the segment's notes from the index."""
    notes: str = connection.execute("SELECT notes FROM segments WHERE key = ?", (segment_key,)).get
    places = range(min(max(1, len(decode_notes(notes))), MAX_NOTES))
    connection.remove_words("text_index", [note_rowid(segment_key, place) for place in places])


def index_some(connection: Connection, conversation: int) -> bool:
    """Index the oldest unindexed messages; false if none are left after that."""
    rows = connection.execute(
        "SELECT messages.key, seq, kind, content FROM messages JOIN states USING (conversation) "
        "WHERE conversation = ? AND seq > indexed_seq ORDER BY seq LIMIT ?",
        (conversation, STEP_MESSAGES),
    )
    indexed_seq = add_messages(connection, conversation, rows)
    rows.close()
    if not indexed_seq:
        return False
    more: bool = connection.execute(
        "UPDATE states SET indexed_seq = ? WHERE conversation = ? RETURNING last_seq > indexed_seq",
        (indexed_seq, conversation),
    ).get
    return bool(more)


def add_messages(index: Connection, conversation: int, rows: Iterable[Row]) -> int:
    """Index messages up to the limit of a step; return the place of the last one, 0 if none."""
    characters, last_seq = 0, 0
    for key, seq, kind, content in rows:
        last_seq = seq
        if kind != "message":
            continue
        text = indexed_text(content)
        index.add_words("text_index", key, scope(conversation), text)
        characters += len(text)
        if characters > STEP_CHARACTERS:
            break
    return last_seq


def indexed_text(content: str) -> str:
    """Return the searchable text of a message, of a very long one both ends: it delays the writer."""
    return both_ends(searchable_text(decode_content(content)), MAX_INDEXED_CHARACTERS)


def behind_index(connection: Connection, of: ConversationRef | Owner) -> Sequence[int]:
    """Return the conversations that have unindexed messages."""
    rows = connection.execute(
        "SELECT key FROM conversations JOIN states ON conversation = key "  # noqa: S608 - a constant
        f"WHERE {condition_of(of)} AND last_seq > indexed_seq",
        of,
    )
    return [key for (key,) in rows]


def condition_of(of: ConversationRef | Owner) -> LiteralString:
    """Return the SQL condition for one conversation, or for all conversations of a user."""
    column: LiteralString = '"user"' if isinstance(of, Owner) else "conversations.id"
    return f"tenant = ? AND {column} = ?"


def find(
    connection: Connection,
    of: ConversationRef | Owner,
    query: str,
    *,
    limit: int,
    only: RecallFilter = EVERYTHING,
) -> tuple[Hit, ...]:
    rows: Sequence[Row] = connection.execute(
        "SELECT key, indexed_seq FROM conversations JOIN states ON conversation = key "  # noqa: S608 - a constant
        f"WHERE {condition_of(of)}",
        of,
    ).fetchall()
    if limit < 1:
        return ()
    scopes = [scope(key) for key, _ in rows]
    texts = sum(indexed_seq for _, indexed_seq in rows)
    matches = ranking.rank(
        connection, "text_index", scopes, query, texts=texts, of=_ROWIDS[only.kind]
    )
    return first_hits(connection, matches, limit=limit, only=only)


def first_hits(
    connection: Connection, matches: Iterable[Row], *, limit: int, only: RecallFilter
) -> tuple[Hit, ...]:
    """Return the first hits among *matches*, rowids with scores, that pass the filter.

    Leaves out rows that are gone, as an older version could leave their vectors.
    """
    hits = (
        (_message_hit if rowid > 0 else _note_hit)(connection, rowid, score)
        for rowid, score in matches
    )
    allowed = (hit for hit in hits if hit is not None and only.allows(hit))
    return tuple(itertools.islice(allowed, max(0, limit)))


def _message_hit(connection: Connection, rowid: int, score: float) -> Hit | None:
    row = connection.execute(
        "SELECT seq, messages.id, role, name, content, messages.created_at, conversations.id "
        "FROM messages JOIN conversations ON conversations.key = conversation "
        "WHERE messages.key = ? AND kind = 'message'",
        (rowid,),
    ).get
    if row is None:
        return None
    seq, id_, role, name, content, created_at, conversation = row
    return Hit(
        kind="message",
        text=searchable_text(decode_content(content)),
        first_seq=seq,
        last_seq=seq,
        at=decode_time(created_at),
        score=score,
        source_id=id_,
        conversation=conversation,
        role=role,
        speaker=speaker_label(name or "") or role,
    )


def _note_hit(connection: Connection, rowid: int, score: float) -> Hit | None:
    segment_key, place = divmod(-rowid, MAX_NOTES)
    row = connection.execute(
        "SELECT segments.id, first_seq, last_seq, text, notes, segments.created_at, "
        "conversations.id FROM segments JOIN conversations ON conversations.key = conversation "
        "WHERE segments.key = ?",
        (segment_key,),
    ).get
    if row is None:
        return None
    id_, first_seq, last_seq, text, encoded_notes, created_at, conversation = row
    at, tag, priority, speaker = decode_time(created_at), None, None, None
    if notes := decode_notes(encoded_notes):
        note = notes[place]
        text, first_seq, last_seq = note.text, note.first_seq, note.last_seq
        at, tag = note.observed_at or at, note.tag
        priority, speaker = note.priority, note.speaker
    return Hit(
        kind="note",
        text=text,
        first_seq=first_seq,
        last_seq=last_seq,
        at=at,
        score=score,
        source_id=id_,
        conversation=conversation,
        tag=tag,
        priority=priority,
        speaker=speaker,
    )


def note_rowid(segment_key: int, place: int) -> int:
    """Return the rowid of a segment's note in the index."""
    return -(segment_key * MAX_NOTES + place)


def scope(conversation: int) -> str:
    """Return the scope word of a conversation in the text index."""
    return f"c{conversation}"
