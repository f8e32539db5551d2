"""The FTS5 indexes, and the connection that uses them."""

from collections.abc import Sequence
from typing import LiteralString

import apsw

from remanence.stores.sql.connection import WordIndex
from remanence.stores.terms import index_terms
from remanence.types import ConversationRef, Owner

_MERGED_PAGES = 16


class Connection(apsw.Connection):
    """A connection to a database file with the tables of a memory."""

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
            (_in_scopes(scopes, _quote(term)), *between),
        )
        keys: list[int] = [rowid for (rowid,) in rows]
        return keys

    def count_words(
        self, index: WordIndex, scopes: Sequence[str], terms: Sequence[str], keys: Sequence[int]
    ) -> Sequence[Sequence[int]]:
        rows = self.execute(
            f"SELECT rowid, word_counts({index}, ?) FROM {index} WHERE {index} MATCH ? "  # noqa: S608 - a literal
            "AND +rowid IN (SELECT value FROM json_each(?))",
            (len(scopes), _in_scopes(scopes, expression(terms)), f"[{','.join(map(str, keys))}]"),
        )
        return [(rowid, *map(int, counts.split())) for rowid, counts in rows]


def expression(terms: Sequence[str]) -> str:
    """Return a query for any of the terms in FTS5 syntax."""
    return " OR ".join(map(_quote, terms))


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

    The only argument is the number of scopes, which precede the words in the query.
    """
    (scopes,) = values
    assert isinstance(scopes, int)
    phrases = range(scopes, api.phrase_count)
    counts = [len(api.phrase_column_offsets(phrase, 1)) for phrase in phrases]
    return " ".join(map(str, [api.column_size(1), *counts]))


def _in_scopes(scopes: Sequence[str], expression: str) -> str:
    return f"scope : ({' OR '.join(scopes)}) AND terms : ({expression})"
