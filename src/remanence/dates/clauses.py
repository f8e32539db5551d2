"""The clauses of a text, with their tenses."""

from bisect import bisect_right
from typing import cast

from remanence.dates.grammar import Grammar
from remanence.dates.meanings import Clause, Tense

_SENTENCE_ENDS = frozenset(".!?;:\n。！？；")
_TARGET_CHARACTERS = 24
"""Characters beside a mention in which a word such as "for" or "until" refers to it."""


class Clauses:
    """The clauses of a text; boundaries are computed on demand."""

    def __init__(self, text: str, grammar: Grammar) -> None:
        self._text = text
        self._grammar = grammar
        self._starts: list[int] = []
        self._continues: list[bool] = []

    def at(self, start: int, end: int) -> Clause:
        """Return the clause of a mention; without a tense, it has that of the next in its sentence.

        A past clause with a date that it aims at ("booked for Friday") is undecided.
        """
        if not self._starts:
            ends = list(self._grammar.clause.end.finditer(self._text))
            self._starts = [0, *(found.end() for found in ends)]
            self._continues = [found[0][0] not in _SENTENCE_ENDS for found in ends]
        index = bisect_right(self._starts, start) - 1
        clause = self._read(index, start)
        follows = index < len(self._continues) and self._continues[index]
        if clause.tense is None and not clause.yearly and follows:
            clause = self._read(index + 1, start)
        aims = self._is_target(start, end)
        if clause.tense == "past":
            return clause._replace(undecided=aims or clause.undecided)
        return clause._replace(tense="future" if aims else clause.tense, undecided=False)

    def _read(self, index: int, position: int) -> Clause:
        """Return a clause by its future cue, else by the last cue before `position`, else the first."""
        begin = self._starts[index]
        end = self._starts[index + 1] if index + 1 < len(self._starts) else len(self._text)
        patterns, cue = self._grammar.clause, None
        for found in patterns.tense.finditer(self._text, begin, end):
            if cue is None or found.start() < position or found.lastgroup == "future":
                cue = found.lastgroup
            if cue == "future":
                break
        is_birth = cue == "birth"
        return Clause(
            tense="present" if is_birth else cast("Tense | None", cue),  # the groups are tenses
            perfect=patterns.perfect.search(self._text, begin, end) is not None,
            undecided=patterns.arranging.search(self._text, begin, end) is not None,
            yearly=is_birth or patterns.yearly.search(self._text, begin, end) is not None,
        )

    def _is_target(self, start: int, end: int) -> bool:
        before = self._text[max(0, start - _TARGET_CHARACTERS) : start]
        after = self._text[end : end + _TARGET_CHARACTERS]
        patterns = self._grammar.clause
        return bool(patterns.target.search(before) or patterns.target_after.match(after))
