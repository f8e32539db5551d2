"""A connection to PostgreSQL that runs the statements of all backends."""

from collections import Counter
from collections.abc import Sequence
from functools import lru_cache
from typing import Any, LiteralString

import psycopg

from remanence.stores.sql.connection import WordIndex
from remanence.stores.terms import fold, index_words
from remanence.types import ConversationRef, Owner

_PART_WORDS = 8_000
"""Words per row of a text index: positions in a tsvector end at 16,383."""

_WORD_CHARACTERS = 200
"""Longer words are cut: a lexeme has at most 2,046 bytes."""

_LOCK_STATE: LiteralString = (
    "SELECT 1 FROM states JOIN conversations ON key = conversation "
    "WHERE tenant = ? AND conversations.id = ? FOR UPDATE OF states"
)
"""Locks the row rather than the name, because some statements update states without `lock`."""


class Cursor(psycopg.Cursor[tuple[Any, ...]]):
    """The rows of a statement."""

    @property
    def get(self) -> Any:  # a column's type is the database's
        row = self.fetchone()
        return row[0] if row is not None and len(row) == 1 else row


class Connection:
    """A connection in a transaction."""

    def __init__(self, connection: psycopg.Connection) -> None:
        self._connection = connection
        self._changes = 0

    def execute(self, statement: LiteralString, values: Sequence[object] = ()) -> Cursor:
        cursor = Cursor(self._connection).execute(_translate(statement), values)
        self._changes = max(0, cursor.rowcount)
        return cursor

    def executemany(self, statement: LiteralString, rows: Sequence[Sequence[object]]) -> None:
        Cursor(self._connection).executemany(_translate(statement), rows)

    def changes(self) -> int:
        return self._changes

    def lock(self, name: ConversationRef | Owner) -> None:
        is_conversation = isinstance(name, ConversationRef)
        if is_conversation and self.execute(_LOCK_STATE, name).fetchone():
            return
        key = f"{type(name).__name__} {tuple(name)!r}"
        self.execute("SELECT pg_advisory_xact_lock(hashtextextended(?, 0))", (key,))
        if is_conversation:  # another writer may have created it meanwhile
            self.execute(_LOCK_STATE, name)

    def continue_keys(self, table: LiteralString, *, after: int) -> None:
        self.execute(
            f"SELECT setval(pg_get_serial_sequence(?, 'key'), nullif(greatest(?, max(key)), 0)) "  # noqa: S608 - a constant
            f"FROM {table}",
            (table, after),
        )

    def add_words(self, index: WordIndex, key: int, scope: str, text: str) -> None:
        words = [word[:_WORD_CHARACTERS] for word in index_words(text)]
        for part in range(0, max(1, len(words)), _PART_WORDS):
            some = words[part : part + _PART_WORDS]
            self.execute(
                f"INSERT INTO {index} (key, part, scope, words, terms) "  # noqa: S608 - a literal, as below
                "SELECT ?, ?, ?, ?, coalesce(string_agg(quote_literal(remanence_stem(word)) "
                "|| ':' || place, ' '), '')::tsvector || quote_literal(?)::tsvector "
                "FROM unnest(?::text[]) WITH ORDINALITY AS listed (word, place)",
                (key, part, scope, len(some), _scope_lexeme(scope), some),
            )

    def remove_words(self, index: WordIndex, keys: Sequence[int]) -> None:
        self.execute(f"DELETE FROM {index} WHERE key = ANY(?)", (list(keys),))  # noqa: S608

    def remove_scope(self, index: WordIndex, scope: str) -> None:
        self.execute(f"DELETE FROM {index} WHERE scope = ?", (scope,))  # noqa: S608

    def match_word(
        self, index: WordIndex, scopes: Sequence[str], term: str, between: tuple[int, int]
    ) -> Sequence[int]:
        any_scope = " | ".join(f"'{_scope_lexeme(scope)}'" for scope in scopes)
        word, mark = (term[:-1], ":*") if term.endswith("*") else (term, "")
        rows = self.execute(
            f"SELECT DISTINCT key FROM {index} WHERE terms @@ ('(' || ? || ') & ' || "  # noqa: S608
            "quote_literal(remanence_stem(?)) || ?)::tsquery AND key BETWEEN ? AND ?",
            (any_scope, fold(word)[:_WORD_CHARACTERS], mark, *between),
        )
        return [key for (key,) in rows]

    def count_words(
        self,
        index: WordIndex,
        scopes: Sequence[str],  # noqa: ARG002 - the keys are theirs
        terms: Sequence[str],
        keys: Sequence[int],
    ) -> Sequence[Sequence[int]]:
        folded = [fold(term.rstrip("*"))[:_WORD_CHARACTERS] for term in terms]
        stems = self.execute(
            "SELECT remanence_stem(word) FROM unnest(?::text[]) WITH ORDINALITY "
            "AS listed (word, place) ORDER BY place",
            (folded,),
        )
        names = [
            f"{stem}*" if term.endswith("*") else stem
            for (stem,), term in zip(stems, terms, strict=True)
        ]
        prefixes = [name[:-1] for name in names if name.endswith("*")]
        lengths = self.execute(
            "SELECT key, CAST(sum(words) AS BIGINT) "  # noqa: S608
            f"FROM {index} WHERE key = ANY(?) GROUP BY key",
            (list(keys),),
        )
        found = self.execute(
            f"SELECT key, lexeme, cardinality(positions) FROM {index}, unnest(terms) "  # noqa: S608
            "WHERE key = ANY(?) AND (lexeme = ANY(?) OR lexeme ^@ ANY(?))",
            (list(keys), names, prefixes),
        )
        counts: Counter[tuple[int, str]] = Counter()
        for key, lexeme, count in found:
            counts[key, lexeme] += count
            for prefix in prefixes:
                counts[key, f"{prefix}*"] += count * lexeme.startswith(prefix)
        return [(key, words, *(counts[key, name] for name in names)) for key, words in lengths]


def _scope_lexeme(scope: str) -> str:
    """Return a lexeme that cannot equal any word."""
    return f"={scope}"


@lru_cache(maxsize=512)
def _translate(statement: LiteralString) -> LiteralString:
    """Return a statement with this driver's placeholders and without SQLite's index hints."""
    words = statement.replace("%", "%%").replace("?", "%s").split("INDEXED BY ")
    return "".join([words[0], *(part.partition(" ")[2] for part in words[1:])])
