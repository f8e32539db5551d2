"""Which tenses the clause around a position shows."""

import re
from bisect import bisect_right

from remanence.observing.dates.grammar import Grammar
from remanence.observing.dates.meanings import Tense


class Clauses:
    """The clauses of one text, cut and judged when first asked for, each once."""

    def __init__(self, text: str, grammar: Grammar) -> None:
        self._text = text
        self._grammar = grammar
        self._starts: list[int] = []
        self._judged: dict[int, frozenset[Tense]] = {}

    def tenses(self, position: int) -> frozenset[Tense]:
        if not self._starts:
            ends = self._grammar.clause_end.finditer(self._text)
            self._starts = [0, *(end.end() for end in ends)]
        index = bisect_right(self._starts, position)
        if index not in self._judged:
            self._judged[index] = self._judge(index)
        return self._judged[index]

    def _judge(self, index: int) -> frozenset[Tense]:
        start = self._starts[index - 1]
        end = self._starts[index] if index < len(self._starts) else len(self._text)
        cues: tuple[tuple[Tense, re.Pattern[str]], ...] = (
            ("past", self._grammar.past),
            ("future", self._grammar.future),
            ("perfect", self._grammar.perfect),
        )
        return frozenset(tense for tense, cue in cues if cue.search(self._text, start, end))
