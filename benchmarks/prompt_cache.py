"""Prompt caches of the vendors, simulated: what of a prompt is read, written and plain."""

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple, Protocol

LOOK_BACK = 20
OPENAI_LEAST = 1_024
OPENAI_STEP = 128


class Piece(NamedTuple):
    """A block of a prompt; `marked` is a breakpoint after it."""

    text: str
    tokens: int
    marked: bool = False


class Billed(NamedTuple):
    """Tokens of one prompt by how they are billed."""

    read: int
    written: int
    plain: int


class PromptCache(Protocol):
    """One conversation's view of a vendor's cache; prompts come in order of time."""

    def bill(self, prompt: Sequence[Piece], at: float) -> Billed: ...


class AnthropicCache:
    """Written at breakpoints, read where one of the 20 blocks before a breakpoint was written.

    A use renews the lifetime. A prefix shorter than *least_tokens* is not cached.
    """

    def __init__(self, *, lifetime_seconds: float, least_tokens: int) -> None:
        self._lifetime = lifetime_seconds
        self._least = least_tokens
        self._until: dict[int, float] = {}

    def bill(self, prompt: Sequence[Piece], at: float) -> Billed:
        ends = list(_prefixes(prompt))
        marks = [place for place, piece in enumerate(prompt) if piece.marked]
        marks = [place for place in marks if ends[place].tokens >= self._least]
        looked_at = sorted({place for mark in marks for place in _looked_at(mark)})
        hits = [place for place in looked_at if self._until.get(ends[place].key, 0.0) > at]
        read = ends[hits[-1]].tokens if hits else 0
        cached = ends[marks[-1]].tokens if marks else 0
        for place in (*marks, *hits):
            self._until[ends[place].key] = at + self._lifetime
        total = ends[-1].tokens if ends else 0
        return Billed(read, cached - read, total - cached)


class OpenAICache:
    """Automatic: the longest prefix that an earlier prompt had, in steps of 128 tokens."""

    def __init__(self, *, lifetime_seconds: float) -> None:
        self._lifetime = lifetime_seconds
        self._until: dict[int, float] = {}

    def bill(self, prompt: Sequence[Piece], at: float) -> Billed:
        ends = list(_prefixes(prompt))
        hits = [end.tokens for end in ends if self._until.get(end.key, 0.0) > at]
        read = max(hits, default=0) // OPENAI_STEP * OPENAI_STEP
        read = read if read >= OPENAI_LEAST else 0
        for end in ends:
            self._until[end.key] = at + self._lifetime
        return Billed(read, 0, (ends[-1].tokens if ends else 0) - read)


class _End(NamedTuple):
    key: int
    tokens: int


def _prefixes(prompt: Iterable[Piece]) -> Iterator[_End]:
    """What names a prompt up to the end of each block, and how long it is."""
    key = tokens = 0
    for piece in prompt:
        key, tokens = hash((key, piece.text)), tokens + piece.tokens
        yield _End(key, tokens)


def _looked_at(mark: int) -> range:
    return range(max(0, mark - LOOK_BACK), mark + 1)
