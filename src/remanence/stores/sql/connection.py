"""The database connection that the shared statements expect of each backend."""

from collections.abc import Iterator, Sequence
from typing import Any, Literal, LiteralString, Protocol, TypeAlias

from remanence.types import ConversationRef, Owner

WordIndex: TypeAlias = Literal["text_index", "facts_index"]


class Cursor(Protocol):
    """The result of a statement."""

    @property
    def get(self) -> Any:  # a column's type is the database's
        """The first row, or its value if it has only one column; None without rows."""

    def fetchone(self) -> Any: ...

    def fetchall(self) -> Sequence[Any]: ...

    def __iter__(self) -> Iterator[Any]: ...

    def close(self) -> None: ...


class Connection(Protocol):
    """A connection in a transaction; placeholders in statements are `?`."""

    def execute(self, statement: LiteralString, values: Sequence[object] = ()) -> Cursor: ...

    def executemany(self, statement: LiteralString, rows: Sequence[Sequence[object]]) -> object:
        """Run a statement with each row of values, without waiting for the server in between."""

    def changes(self) -> int:
        """Return the number of rows that the last statement changed."""

    def lock(self, name: ConversationRef | Owner) -> None:
        """Lock a conversation, or a user's facts, for writing until the transaction ends."""

    def continue_keys(self, table: LiteralString, *, after: int) -> None:
        """Start the keys of new rows after *after* and after all existing keys."""
        ...

    def add_words(self, index: WordIndex, key: int, scope: str, text: str) -> None:
        """Index a text by its words and by *scope*, a word that all texts of one owner share."""

    def remove_words(self, index: WordIndex, keys: Sequence[int]) -> None:
        """Remove texts from an index."""

    def remove_scope(self, index: WordIndex, scope: str) -> None:
        """Remove all texts of a scope from an index."""

    def match_word(
        self, index: WordIndex, scopes: Sequence[str], term: str, between: tuple[int, int]
    ) -> Sequence[int]:
        """Return the keys, within inclusive bounds, of texts in the scopes that contain a term."""

    def count_words(
        self, index: WordIndex, scopes: Sequence[str], terms: Sequence[str], keys: Sequence[int]
    ) -> Sequence[Sequence[int]]:
        """Return a row for each key: the key, the text's word count, and the count of each term."""
