"""Search of unindexed messages, for when the text index cannot be written."""

import contextlib
from collections.abc import Sequence
from typing import Final

import apsw

from remanence.stores.rows import Row, decode_content
from remanence.stores.sql import search
from remanence.stores.sqlite import fts
from remanence.stores.terms import index_terms, query_terms, searchable_text
from remanence.types import ConversationRef, Hit, Owner, RecallFilter

_MAX_MESSAGES: Final = 1_000  # the newest; each search indexes them anew


def find(
    connection: fts.Connection,
    of: ConversationRef | Owner,
    query: str,
    *,
    limit: int,
    only: RecallFilter,
) -> tuple[Hit, ...]:
    """Return unindexed messages that match the query, best first."""
    words = fts.expression(query_terms(query))
    rows: Sequence[Row] = connection.execute(
        "SELECT messages.key, content FROM conversations "  # noqa: S608 - a constant
        "JOIN states ON states.conversation = conversations.key "
        "JOIN messages ON messages.conversation = conversations.key AND seq > indexed_seq "
        f"WHERE {search.condition_of(of)} AND kind = 'message' ORDER BY messages.key DESC LIMIT ?",
        (*of, _MAX_MESSAGES),
    ).fetchall()
    if not words or not rows or limit < 1:
        return ()
    # Created with the index's own statement, so that both use the same tokenizer.
    definition: str = connection.execute(
        "SELECT sql FROM sqlite_schema WHERE name = 'text_index'"
    ).get
    with contextlib.closing(apsw.Connection(":memory:")) as index:
        index.execute(definition)
        index.executemany(
            "INSERT INTO text_index (rowid, scope, terms) VALUES (?, '', ?)",
            [(key, index_terms(searchable_text(decode_content(content)))) for key, content in rows],
        )
        matches = index.execute(
            "SELECT rowid, -bm25(text_index, 0.0, 1.0) AS score FROM text_index "
            "WHERE text_index MATCH ? ORDER BY score DESC, rowid DESC",
            (f"terms : ({words})",),
        ).fetchall()
    return search.first_hits(connection, matches, limit=limit, only=only)
