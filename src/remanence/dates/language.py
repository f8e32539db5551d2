"""The table of a language: words, rules and the phrases that render its dates."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from remanence.dates.meanings import DateReading
from remanence.dates.mention import Grain
from remanence.dates.periods import Period

LETTERS = r"0-9A-Za-z_\u00c0-\u024f"
"""Letters of the scripts with spaces; another script may follow directly, as particles do."""
BEFORE_WORD = rf"(?<![{LETTERS}@#$\\])(?<!\w[.-])(?<!\d[,/])"
AFTER_WORD = rf"(?![{LETTERS}(=\\]|\.(?-i:[a-z0-9_])|-\w)"

Meaning = Callable[[DateReading], Period | None]


class Rule(NamedTuple):
    """A pattern, its meaning, and the slots whose values the pattern implies.

    `{name}` in a pattern is a slot or a macro of its language; a space matches short white space.
    """

    pattern: str
    meaning: Meaning
    settled: Mapping[str, int | str] = {}


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Language:
    """A language as data.

    A slot maps words to values; a suffix after `_` in its name only distinguishes variants. The
    rendering keeps the group `word`. Traps are patterns that look like dates but are not.
    """

    name: str
    slots: Mapping[str, Mapping[str, int | str]]
    rules: tuple[Rule, ...]
    traps: tuple[str, ...] = ()
    macros: Mapping[str, str] = field(default_factory=dict)
    trigger_words: frozenset[str] = frozenset()
    """Words, besides those of slots, that may signal a date in a script with spaces."""
    foreign_words: frozenset[str] = frozenset()
    """Words that mark the text around them as another language with confusable words."""
    trigger: str = ""
    """A pattern in place of `trigger_words`, for scripts without spaces."""
    needs: str = ""
    """A pattern of characters that every text in this language has."""
    excludes: str = r"(?!)"
    """A pattern of characters that no text in this language has."""
    left: str = BEFORE_WORD
    right: str = AFTER_WORD
    capital: frozenset[str] = frozenset()
    """Words that are dates only if capitalised, unless the slot ends in `_any`."""
    past: str = r"(?!)"
    future: str = r"(?!)"
    perfect: str = r"(?!)"
    clause_end: str = r"[.!?;,:\n]"
    phrases: Mapping[Grain, str]
    months: tuple[str, ...] = ()
    seasons: tuple[str, ...] = ()
