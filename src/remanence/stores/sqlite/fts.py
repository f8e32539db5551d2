"""The FTS5 indexes, and the connection that uses them."""

from collections.abc import Sequence
from itertools import islice
from typing import LiteralString

import apsw

from remanence.stores.rows import Row
from remanence.stores.sql import ranking, search
from remanence.stores.sql.connection import WordIndex
from remanence.stores.terms import fold, index_terms
from remanence.types import ConversationRef, Hit, Owner, RecallFilter

_MERGED_PAGES = 16
_STEP_CONVERSATIONS = 32


class Connection(apsw.Connection):
    """A connection to a database file with the tables of a memory."""

    unmerged = 1
    """The characters added to indexes since the last merge; not 0, as another process may have left some.

    Each transaction adds a part to an index, and a search reads every part."""

    side_index: "SideIndex | None" = None
    """The words of messages that the index lacks while it cannot be written."""

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
        self.unmerged += len(text)

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


def index_some(connection: Connection, conversations: Sequence[int]) -> Sequence[int]:
    """Index the unindexed messages of conversations for one step; return those with others left.

    Merges along, as a thousand parts would be merged in one transaction, and take seconds to search.
    """
    done = 0
    for conversation in conversations[:_STEP_CONVERSATIONS]:
        if search.index_some(connection, conversation):
            break
        done += 1
        if connection.unmerged > search.STEP_CHARACTERS:
            break
    if connection.unmerged > search.STEP_CHARACTERS:
        merge_some(connection)
        connection.unmerged = 1  # more may be left
    return conversations[done:]


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


class SideIndex(Connection):
    """A text index in memory, made by the *definition* of the file's, so with the same tokenizer."""

    def __init__(self, definition: str) -> None:
        super().__init__(":memory:")
        self.register_fts5_function("word_counts", word_counts)
        self.execute(definition)
        self.progress: dict[int, tuple[tuple[int, int], int]] = {}
        """By conversation: its `indexed_seq` and `erasures`, and the place of its last message here.

        When one of the former has changed, the conversation is indexed anew."""


def index_aside(connection: Connection, of: ConversationRef | Owner) -> bool:
    """Index some unindexed messages in memory; false if none are left after that."""
    if connection.side_index is None:
        definition = "SELECT sql FROM sqlite_schema WHERE name = 'text_index'"
        connection.side_index = SideIndex(connection.execute(definition).get)
    index = connection.side_index
    for key, last_seq, indexed_seq, erasures in _backlog(connection, of):
        basis, seq = index.progress.get(key, (None, 0))
        if basis == (indexed_seq, erasures) and seq >= last_seq:
            continue
        with index:
            if basis != (indexed_seq, erasures):
                seq = indexed_seq
                index.remove_scope("text_index", search.scope(key))
            rows = connection.execute(
                "SELECT key, seq, kind, content FROM messages WHERE conversation = ? AND seq > ? "
                "ORDER BY seq LIMIT ?",
                (key, seq, search.STEP_MESSAGES),
            )
            seq = search.add_messages(index, key, rows) or last_seq
            index.progress[key] = (indexed_seq, erasures), seq
        return True
    return False


def drop_stale_words(connection: Connection) -> None:
    """Drop the index in memory if the file's has caught up with a conversation, or text was erased.

    The index keeps deleted words until they are merged, so all of it goes; a search makes it anew.
    """
    index = connection.side_index
    if index is None:
        return
    behind: dict[int, int] = dict(
        connection.execute(
            "SELECT conversation, erasures FROM states WHERE last_seq > indexed_seq "
            "AND conversation IN (SELECT value FROM json_each(?))",
            (f"[{','.join(map(str, index.progress))}]",),
        )
    )
    if any(behind.get(key) != erasures for key, ((_, erasures), _) in index.progress.items()):
        connection.side_index = None
        index.close()


def find_indexed(
    connection: Connection,
    of: ConversationRef | Owner,
    query: str,
    *,
    limit: int,
    only: RecallFilter,
) -> tuple[Hit, ...]:
    """Search messages and notes that are all in the index; best matches first."""
    drop_stale_words(connection)
    return search.find(connection, of, query, limit=limit, only=only)


def _backlog(connection: Connection, of: ConversationRef | Owner) -> Sequence[Row]:
    return connection.execute(
        "SELECT key, last_seq, indexed_seq, erasures FROM conversations "  # noqa: S608 - a constant
        "JOIN states ON conversation = key "
        f"WHERE {search.condition_of(of)} AND last_seq > indexed_seq",
        of,
    ).fetchall()


def find_unindexed(
    connection: Connection,
    of: ConversationRef | Owner,
    query: str,
    *,
    limit: int,
    only: RecallFilter,
) -> tuple[Hit, ...]:
    """Search unindexed messages, for when the index cannot be written; best matches first."""
    while index_aside(connection, of):  # what came after the last step
        pass
    assert connection.side_index is not None
    rows = _backlog(connection, of)
    scopes = [search.scope(key) for key, *_ in rows]
    texts = sum(last_seq - indexed_seq for _, last_seq, indexed_seq, _ in rows)
    matches = ranking.rank(connection.side_index, "text_index", scopes, query, texts=texts)
    return search.first_hits(connection, matches, limit=limit, only=only)
