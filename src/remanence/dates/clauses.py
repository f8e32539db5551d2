"""The tenses of the clause around a position."""

import re
from bisect import bisect_right

from remanence.dates.grammar import Grammar
from remanence.dates.meanings import Tense

_SENTENCE_ENDS = frozenset(".!?;:\n。！？；")


class Clauses:
    """The clauses of a text, with their tenses; both are computed on demand and cached."""

    def __init__(self, text: str, grammar: Grammar) -> None:
        self._text = text
        self._grammar = grammar
        self._starts: list[int] = []
        self._continues: list[bool] = []
        self._cache: dict[int, frozenset[Tense]] = {}

    def tenses(self, position: int) -> frozenset[Tense]:
        """Return the tenses of the clause at `position`; if none, of the next in its sentence."""
        if not self._starts:
            ends = list(self._grammar.clause_end.finditer(self._text))
            self._starts = [0, *(end.end() for end in ends)]
            self._continues = [end[0][0] not in _SENTENCE_ENDS for end in ends]
        index = bisect_right(self._starts, position) - 1
        found = self._tenses_of(index)
        if not found and index < len(self._continues) and self._continues[index]:
            return self._tenses_of(index + 1)
        return found

    def _tenses_of(self, index: int) -> frozenset[Tense]:
        if index not in self._cache:
            self._cache[index] = self._find_tenses(index)
        return self._cache[index]

    def _find_tenses(self, index: int) -> frozenset[Tense]:
        start = self._starts[index]
        end = self._starts[index + 1] if index + 1 < len(self._starts) else len(self._text)
        cues: tuple[tuple[Tense, re.Pattern[str]], ...] = (
            ("past", self._grammar.past),
            ("future", self._grammar.future),
            ("perfect", self._grammar.perfect),
        )
        return frozenset(tense for tense, cue in cues if cue.search(self._text, start, end))
