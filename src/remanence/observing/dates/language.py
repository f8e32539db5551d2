"""What a language's table holds: words, rules and the wording of its dates."""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from remanence.observing.dates.meanings import Reading
from remanence.observing.dates.mention import Grain
from remanence.observing.dates.periods import Period

Meaning = Callable[[Reading], Period | None]


@dataclass(frozen=True, slots=True)
class Rule:
    """A pattern, what it means, and the slots that the pattern itself settles.

    `{name}` in a pattern stands for a slot or a macro of its language, a space for any short white space.
    """

    pattern: str
    meaning: Meaning
    settled: Mapping[str, int | str] = field(default_factory=dict)


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
    trigger: str = ""
    """The same as a pattern, for scripts without spaces."""
    needs: str = ""
    """A pattern of characters without which a text is not in this language."""
    excludes: str = ""
    """A pattern of characters with which it is not."""
    left: str = ""
    right: str = ""
    capital: frozenset[str] = frozenset()
    """Words that are dates only with a capital letter, unless the slot ends in `_any`."""
    past: str = r"(?!)"
    future: str = r"(?!)"
    perfect: str = r"(?!)"
    clause_end: str = r"[.!?;,:\n()]"
    phrases: Mapping[Grain, str]
    months: tuple[str, ...] = ()
    seasons: tuple[str, ...] = ()

    def may_be(self, text: str) -> bool:
        """Whether the characters of `text` allow it to be in this language."""
        if self.needs and not re.search(self.needs, text):
            return False
        return not (self.excludes and re.search(self.excludes, text))
