"""The FTS5 indexes, and the connection that uses them."""

import contextlib
from collections.abc import Sequence
from itertools import islice
from typing import LiteralString

import apsw

from remanence.stores.rows import Row
from remanence.stores.sql import search
from remanence.stores.sql.connection import WordIndex
from remanence.stores.terms import fold, index_terms, query_terms
from remanence.types import ConversationRef, Hit, Owner, RecallFilter

_MERGED_PAGES = 16
_MAX_UNINDEXED = 1_000
"""The newest messages outside of the index that are searched; each search indexes them anew."""


class Connection(apsw.Connection):
    """A connection to a database file with the tables of a memory."""

    is_fragmented = False
    """Whether words were added after the last merge: each transaction adds a part to be searched."""

    def is_stale(self) -> bool:
        """Return whether the connection misses later changes of the file: open another one."""
        return False

    def lock(self, name: ConversationRef | Owner) -> None:
        """Do nothing: a file has only one writing transaction at a time."""

    def continue_keys(self, table: LiteralString, *, after: int) -> None:
        """Raise the AUTOINCREMENT counter to *after*, if no row has a greater key."""
        if after:
            select = f"SELECT ?, max(?, coalesce(max(key), 0)) FROM {table}"  # noqa: S608 - a constant
            self.execute("DELETE FROM sqlite_sequence WHERE name = ?", (table,))
            self.execute(f"INSERT INTO sqlite_sequence (name, seq) {select}", (table, after))

    def add_words(self, index: WordIndex, key: int, scope: str, text: str) -> None:
        self.execute(
            f"INSERT INTO {index} (rowid, scope, terms) VALUES (?, ?, ?)",  # noqa: S608 - a literal
            (key, scope, index_terms(text)),
        )
        self.is_fragmented = True

    def remove_words(self, index: WordIndex, keys: Sequence[int]) -> None:
        statement = f"DELETE FROM {index} WHERE rowid = ?"  # noqa: S608 - a literal
        self.executemany(statement, [(key,) for key in keys])

    def remove_scope(self, index: WordIndex, scope: str) -> None:
        self.execute(
            f"DELETE FROM {index} WHERE rowid IN "  # noqa: S608 - a literal
            f"(SELECT rowid FROM {index} WHERE {index} MATCH ?)",
            (f"scope : {scope}",),
        )

    def match_word(
        self, index: WordIndex, scopes: Sequence[str], term: str, between: tuple[int, int]
    ) -> Sequence[int]:
        rows = self.execute(
            f"SELECT rowid FROM {index} WHERE {index} MATCH ? AND rowid BETWEEN ? AND ?",  # noqa: S608 - a literal
            (_in_scopes(scopes, _expression([term])), *between),
        )
        keys: list[int] = [rowid for (rowid,) in rows]
        return keys

    def count_words(
        self, index: WordIndex, scopes: Sequence[str], terms: Sequence[str], keys: Sequence[int]
    ) -> Sequence[Sequence[int]]:
        rows = self.execute(
            f"SELECT rowid, word_counts({index}, ?) FROM {index} WHERE {index} MATCH ? "  # noqa: S608 - a literal
            "AND +rowid IN (SELECT value FROM json_each(?))",
            (
                f"{len(scopes)} {' '.join(str(len(_forms(term))) for term in terms)}",
                _in_scopes(scopes, _expression(terms)),
                f"[{','.join(map(str, keys))}]",
            ),
        )
        return [(rowid, *map(int, counts.split())) for rowid, counts in rows]


def _expression(terms: Sequence[str]) -> str:
    """Return a query for any of the terms in FTS5 syntax."""
    return " OR ".join(_quote(form) for term in terms for form in _forms(term))


def _forms(term: str) -> Sequence[str]:
    """Return a term folded, and as written if an index from before folding may have it so."""
    folded = fold(term)
    return (folded,) if folded == term.lower() else (folded, term)


def _quote(term: str) -> str:
    return f'"{term[:-1]}" *' if term.endswith("*") else f'"{term}"'


def merge_some(connection: Connection) -> bool:
    """Merge a few pages of the index; false when nothing is left to merge."""
    before = connection.total_changes()
    connection.execute(
        "INSERT INTO text_index (text_index, rank) VALUES ('merge', ?)", (_MERGED_PAGES,)
    )
    return connection.total_changes() - before >= 2  # 1 is the command itself


def word_counts(api: apsw.FTS5ExtensionApi, /, *values: object) -> str:
    """Return the number of words of a match, then the count of each query word, space-separated.

    The only argument has the number of scopes, which precede the words in the query, and of the
    forms of each word, which precede the next word.
    """
    (sizes,) = values
    assert isinstance(sizes, str)
    scopes, *forms = map(int, sizes.split())
    phrases = iter(range(scopes, api.phrase_count))
    counts = [
        max(len(api.phrase_column_offsets(phrase, 1)) for phrase in islice(phrases, size))
        for size in forms
    ]
    return " ".join(map(str, [api.column_size(1), *counts]))


def _in_scopes(scopes: Sequence[str], expression: str) -> str:
    return f"scope : ({' OR '.join(scopes)}) AND terms : ({expression})"


def find_unindexed(
    connection: Connection,
    of: ConversationRef | Owner,
    query: str,
    *,
    limit: int,
    only: RecallFilter,
) -> tuple[Hit, ...]:
    """Search unindexed messages, for when the index cannot be written; best matches first."""
    words = _expression(query_terms(query))
    rows: Sequence[Row] = connection.execute(
        "SELECT messages.key, content FROM conversations "  # noqa: S608 - a constant
        "JOIN states ON states.conversation = conversations.key "
        "JOIN messages ON messages.conversation = conversations.key AND seq > indexed_seq "
        f"WHERE {search.condition_of(of)} AND kind = 'message' ORDER BY messages.key DESC LIMIT ?",
        (*of, _MAX_UNINDEXED),
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
            [(key, index_terms(search.indexed_text(content))) for key, content in rows],
        )
        matches = index.execute(
            "SELECT rowid, -bm25(text_index, 0.0, 1.0) AS score FROM text_index "
            "WHERE text_index MATCH ? ORDER BY score DESC, rowid DESC",
            (f"terms : ({words})",),
        ).fetchall()
    return search.first_hits(connection, matches, limit=limit, only=only)
