"""The clauses of a text, with their tenses."""

import re
from bisect import bisect_left, bisect_right
from typing import cast

from remanence.dates.language import Language, words_of
from remanence.dates.meanings import Clause, Tense

_SENTENCE_ENDS = frozenset(".!?;:\n。！？；")
_LETTER = re.compile(r"[^\W\d_]")
_MAX_PARTICLE = 2
"""Letters of a particle or a part of the day, in a script without spaces."""
_ALONE_CHARACTERS = 80
"""Characters of function words beside a mention that is alone; so the work for each is bounded."""
_TARGET_CHARACTERS = 24
"""Characters beside a mention in which a word such as "for" or "until" refers to it."""


class Clauses:
    """The clauses of a text; boundaries and cues are computed on demand and cached."""

    def __init__(self, text: str, language: Language) -> None:
        self._text = text
        self._language = language
        self._patterns = language.clause
        self._starts: list[int] = []
        self._continues: list[bool] = []
        self._cache: dict[int, tuple[list[int], list[str | None], Clause]] = {}

    def at(self, start: int, end: int) -> Clause:
        """Return the clause of a mention; a mention alone ("On Friday, we left") is part of the next.

        A past clause with a date that it aims at ("booked for Friday") is undecided, and so is one
        that has no tense before one in the past ("Dentist Friday, I took the day off").
        """
        if not self._starts:
            ends = list(self._patterns["end"].finditer(self._text))
            self._starts = [0, *(found.end() for found in ends)]
            self._continues = [found[0][0] not in _SENTENCE_ENDS for found in ends]
        index = bisect_right(self._starts, start) - 1
        clause = self._read(index, start)
        follows = index < len(self._continues) and self._continues[index]
        if clause.tense is None and not (clause.yearly or clause.weekly) and follows:
            following = self._read(index + 1, start)
            if self._is_alone(index, start, end):
                clause = following
            elif following.tense == "past":
                return clause._replace(tense="past", undecided=True)
        aims = self._is_target(start, end)
        if clause.tense == "past":
            return clause._replace(undecided=aims or clause.undecided)
        return clause._replace(tense="future" if aims else clause.tense, undecided=False)

    def _read(self, index: int, position: int) -> Clause:
        """Return a clause by its future cue, else by the last cue before `position`, else the first."""
        if index not in self._cache:
            self._cache[index] = self._find_cues(index)
        starts, cues, clause = self._cache[index]
        if not cues:
            return clause
        cue = cues[max(0, bisect_left(starts, position) - 1)]
        if cue == "birth":
            return clause._replace(tense="present", yearly=True)
        return clause._replace(tense=cast("Tense", cue))  # the groups are tenses

    def _find_cues(self, index: int) -> tuple[list[int], list[str | None], Clause]:
        """Return where the tense cues of a clause are, their groups, and the clause without one."""
        span = self._span(index)
        found = list(self._patterns["tense"].finditer(self._text, *span))
        perfect, arranging, yearly, weekly = (
            self._patterns[name].search(self._text, *span) is not None
            for name in ("perfect", "arranging", "yearly", "weekly")
        )
        clause = Clause(None, perfect=perfect, undecided=arranging, yearly=yearly, weekly=weekly)
        cues = [cue.lastgroup for cue in found]
        if "future" in cues:
            found, cues = found[:1], ["future"]
        return [cue.start() for cue in found], cues, clause

    def _span(self, index: int) -> tuple[int, int]:
        return self._starts[index], (*self._starts[index + 1 : index + 2], len(self._text))[0]

    def _is_alone(self, index: int, start: int, end: int) -> bool:
        """Return whether a clause has only function words beside the mention."""
        first, last = self._span(index)
        if last - first - (end - start) > _ALONE_CHARACTERS:
            return False
        rest = f"{self._text[first:start]} {self._text[end:last]}"
        if self._language.triggers:
            return words_of(rest) <= self._language.known_words
        return len(_LETTER.findall(rest)) <= _MAX_PARTICLE

    def _is_target(self, start: int, end: int) -> bool:
        before = self._text[max(0, start - _TARGET_CHARACTERS) : start]
        after = self._text[end : end + _TARGET_CHARACTERS]
        aimed_at = self._patterns["target"].search(before)
        return bool(aimed_at or self._patterns["target_after"].match(after))
