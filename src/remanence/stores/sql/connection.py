"""The connection that statements shared by all backends run on."""

from collections.abc import Iterator, Sequence
from typing import Any, Literal, LiteralString, Protocol, TypeAlias

from remanence.types import ConversationRef, Owner

WordIndex: TypeAlias = Literal["text_index", "facts_index"]


class Cursor(Protocol):
    """The rows of a statement."""

    @property
    def get(self) -> Any:  # a column's type is the database's
        """The only value of the first row, or the row; None without rows."""

    def fetchone(self) -> Any: ...

    def fetchall(self) -> Sequence[Any]: ...

    def __iter__(self) -> Iterator[Any]: ...

    def close(self) -> None: ...


class Connection(Protocol):
    """A connection in a transaction; statements have `?` for each value."""

    def execute(self, statement: LiteralString, values: Sequence[object] = ()) -> Cursor: ...

    def changes(self) -> int:
        """Return the number of rows that the last statement changed."""

    def lock(self, name: ConversationRef | Owner) -> None:
        """Wait for other writers of a conversation, or of a user's facts, until the transaction ends."""

    def continue_keys(self, table: LiteralString, *, after: int) -> None:
        """Let the keys of new rows come after *after*, and after those of rows that were given theirs."""
        ...

    def add_words(self, index: WordIndex, key: int, scope: str, text: str) -> None:
        """Index a text by its words and by *scope*, the word that its owner's texts share."""

    def remove_words(self, index: WordIndex, keys: Sequence[int]) -> None:
        """Remove texts from an index."""

    def match_word(
        self, index: WordIndex, scopes: Sequence[str], term: str, between: tuple[int, int]
    ) -> Sequence[int]:
        """Return the keys, within inclusive bounds, of the scopes' texts that have a query term."""

    def count_words(
        self, index: WordIndex, scopes: Sequence[str], terms: Sequence[str], keys: Sequence[int]
    ) -> Sequence[Sequence[int]]:
        """Return a row for each key: the key, the words of its text, and the count of each term."""
