"""Search of messages outside the text index, for when it cannot be written."""

from collections.abc import Sequence
from typing import Final

import apsw

from remanence.stores.rows import Row, decode_content
from remanence.stores.sql import search
from remanence.stores.sqlite import fts
from remanence.stores.terms import index_terms, searchable_text
from remanence.types import ConversationRef, Hit, RecallFilter

_MAX_MESSAGES: Final = 1_000  # the newest; each search indexes them anew


def find(
    connection: fts.Connection,
    ref: ConversationRef,
    query: str,
    *,
    limit: int,
    only: RecallFilter,
) -> tuple[Hit, ...]:
    """Return messages outside the index with a word of the query, best first."""
    words = fts.expression(query)
    rows: Sequence[Row] = connection.execute(
        "SELECT messages.key, content FROM conversations "
        "JOIN states ON states.conversation = conversations.key "
        "JOIN messages ON messages.conversation = conversations.key AND seq > indexed_seq "
        "WHERE tenant = ? AND conversations.id = ? AND kind = 'message' ORDER BY seq DESC LIMIT ?",
        (*ref, _MAX_MESSAGES),
    ).fetchall()
    if not words or not rows or limit < 1:
        return ()
    found = _matches(_definition(connection), rows, words)
    hits = (search.hit(connection, ref, rowid, score) for rowid, score in found)
    return tuple([hit for hit in hits if only.allows(hit)][:limit])


def _definition(connection: fts.Connection) -> str:
    """Return the statement that creates the index, so that both use the same tokenizer."""
    sql: str = connection.execute("SELECT sql FROM sqlite_schema WHERE name = 'text_index'").get
    return sql


def _matches(definition: str, rows: Sequence[Row], words: str) -> Sequence[Row]:
    index = apsw.Connection(":memory:")
    try:
        index.execute(definition)
        index.executemany(
            "INSERT INTO text_index (rowid, scope, terms) VALUES (?, '', ?)",
            [(key, index_terms(searchable_text(decode_content(content)))) for key, content in rows],
        )
        return index.execute(
            "SELECT rowid, -bm25(text_index, 0.0, 1.0) AS score FROM text_index "
            "WHERE text_index MATCH ? ORDER BY score DESC, rowid DESC",
            (f"terms : ({words})",),
        ).fetchall()
    finally:
        index.close()
