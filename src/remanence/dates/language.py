"""What a language's table holds: words, rules and the wording of its dates."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from remanence.dates.meanings import DateReading
from remanence.dates.mention import Grain
from remanence.dates.periods import Period

LETTERS = r"0-9A-Za-z_\u00c0-\u024f"
"""What words of the spaced scripts are made of; another script may follow at once, as a particle does."""
BEFORE_WORD = rf"(?<![{LETTERS}@#$\\])(?<!\w[.-])(?<!\d[,/])"
AFTER_WORD = rf"(?![{LETTERS}(=\\]|\.(?-i:[a-z0-9_])|-\w)"

Meaning = Callable[[DateReading], Period | None]


class Rule(NamedTuple):
    """A pattern, what it means, and the slots that the pattern itself settles.

    `{name}` in a pattern stands for a slot or a macro of its language, a space for any short white space.
    """

    pattern: str
    meaning: Meaning
    settled: Mapping[str, int | str] = {}


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Language:
    """One language as data.

    A slot maps words to values; what follows `_` in its name only tells variants apart. A group called `word` is
    kept by the rendering. Traps are patterns that look like dates and are none.
    """

    name: str
    slots: Mapping[str, Mapping[str, int | str]]
    rules: tuple[Rule, ...]
    traps: tuple[str, ...] = ()
    macros: Mapping[str, str] = field(default_factory=dict)
    trigger_words: frozenset[str] = frozenset()
    """Words of which a text in a spaced script holds one when it mentions a date, besides the slots' own."""
    foreign_words: frozenset[str] = frozenset()
    """Words that say that the text around them is in another language, whose words could be mistaken."""
    trigger: str = ""
    """The same as a pattern, for scripts without spaces."""
    needs: str = ""
    """A pattern of characters without which a text is not in this language."""
    excludes: str = r"(?!)"
    """A pattern of characters with which it is not."""
    left: str = BEFORE_WORD
    right: str = AFTER_WORD
    capital: frozenset[str] = frozenset()
    """Words that are dates only with a capital letter, unless the slot ends in `_any`."""
    past: str = r"(?!)"
    future: str = r"(?!)"
    perfect: str = r"(?!)"
    clause_end: str = r"[.!?;,:\n]"
    phrases: Mapping[Grain, str]
    months: tuple[str, ...] = ()
    seasons: tuple[str, ...] = ()
