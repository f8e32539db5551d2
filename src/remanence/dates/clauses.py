"""The clauses of a text, with their tenses."""

import re
from bisect import bisect_left, bisect_right
from typing import NamedTuple, cast

from remanence.dates.language import Language, words_of
from remanence.dates.meanings import Clause, Tense

_SENTENCE_ENDS = frozenset(".!?;:\n。！？；")
_LETTER = re.compile(r"[^\W\d_]")
_MAX_PARTICLE = 2
"""Letters of a particle or a part of the day, in a script without spaces."""
_ALONE_CHARACTERS = 80
"""Characters of function words beside a mention that is alone; so the work for each is bounded."""
_BESIDE_CHARACTERS = 24
"""Characters beside a mention in which a word such as "for" or "until" refers to it."""
_HOUR = re.compile(
    r"(?<![\d-])\d{1,2}(?:[:.h]\d\d)?(?: ?(?:uhr|[ap]m|h)\b)?(?![\d-])", re.IGNORECASE
)


class _Cues(NamedTuple):
    """Where the cues of a clause are, their tenses, the first one of each, and all but the tense."""

    starts: list[int]
    tenses: list[str | None]
    first: dict[str | None, int]
    clause: Clause


class Clauses:
    """The clauses of a text; boundaries and cues are computed on demand and cached."""

    def __init__(self, text: str, language: Language) -> None:
        self._text = text
        self._language = language
        self._patterns = language.clause
        self._starts: list[int] = []
        self._continues: list[bool] = []
        self._cache: dict[int, _Cues] = {}

    def at(self, start: int, end: int) -> Clause:
        """Return the clause of a mention; a mention alone ("On Friday, we left") is part of the next.

        A past clause with a date that it aims at ("booked for Friday") is undecided, and so is one
        that has no tense before one in the past ("Dentist Friday, I took the day off"). A day that
        is an attribute ("the meeting of Friday") has only a past tense.
        """
        if not self._starts:
            ends = list(self._patterns["end"].finditer(self._text))
            self._starts = [0, *(found.end() for found in ends)]
            self._continues = [found[0][0] not in _SENTENCE_ENDS for found in ends]
        index = bisect_right(self._starts, start) - 1
        clause = self._read(index, start)
        if self._is_beside("since", start, end):
            return clause._replace(tense="past", undecided=False)
        if clause.tense is None and not (clause.yearly or clause.weekly):
            clause = self._of_neighbors(clause, index, start, end)
        if clause.tense != "past" and self._is_beside("attribute", start, end):
            return clause._replace(tense=None)
        aims = self._is_beside("target", start, end)
        if clause.tense == "past":
            return clause._replace(undecided=aims or clause.undecided)
        return clause._replace(tense="future" if aims else clause.tense, undecided=False)

    def _of_neighbors(self, clause: Clause, index: int, start: int, end: int) -> Clause:
        """Return a clause without a tense with that of the clause beside it.

        A message of a mention alone ("Thursday 19:00") is about what is ahead.
        """
        is_alone = self._is_alone(*self._span(index), start, end)
        if index < len(self._continues) and self._continues[index]:
            following = self._read(index + 1, start)
            if is_alone and self._lists_another(index + 1):
                following = self._read(index + 2, start)
            if is_alone:
                return following
            if following.tense == "past":
                return clause._replace(tense="past", undecided=True)
        elif is_alone and index and self._continues[index - 1]:
            before = self._read(index - 1, start)
            return clause._replace(tense=before.tense, undecided=before.undecided)
        elif is_alone and self._is_alone(0, len(self._text), start, end):
            return clause._replace(tense="present")
        return clause

    def _lists_another(self, index: int) -> bool:
        """Return whether a clause is a date alone, before a further clause of its sentence."""
        first, last = self._span(index)
        is_continued = index < len(self._continues) and self._continues[index]
        return is_continued and self._is_alone(first, last, first, first)

    def _read(self, index: int, position: int) -> Clause:
        """Return a clause by its future cue, else by the last cue before `position`, else the first.

        A future cue after `position` does not count if the past was there first: "the splint you
        made me Thursday is hurting me".
        """
        if index not in self._cache:
            self._cache[index] = self._find_cues(index)
        starts, cues, first, clause = self._cache[index]
        if not cues:
            return clause
        future, past = (first.get(tense, len(self._text)) for tense in ("future", "past"))
        if "future" in first and (future < position or past >= position):
            return clause._replace(tense="future")
        cue = cues[max(0, bisect_left(starts, position) - 1)]
        if cue == "birth":
            return clause._replace(yearly=True)
        return clause._replace(tense=cast("Tense", cue))  # the groups are tenses

    def _find_cues(self, index: int) -> _Cues:
        """Return the tense cues of a clause, and the clause without one."""
        span = self._span(index)
        found = list(self._patterns["tense"].finditer(self._text, *span))
        perfect, arranging, yearly, weekly = (
            self._patterns[name].search(self._text, *span) is not None
            for name in ("perfect", "arranging", "yearly", "weekly")
        )
        clause = Clause(None, perfect=perfect, undecided=arranging, yearly=yearly, weekly=weekly)
        cues = [cue.lastgroup for cue in found]
        if not cues and self._has_plan(span):
            clause = clause._replace(tense="present")
        starts = [cue.start() for cue in found]
        first = dict(zip(reversed(cues), reversed(starts), strict=True))
        return _Cues(starts, cues, first, clause)

    def _has_plan(self, span: tuple[int, int]) -> bool:
        """Return whether a clause without a cue has a verb in the present tense, of plans."""
        plan, doubt = self._patterns["plan"], self._patterns["doubt"]
        return bool(plan.search(self._text, *span)) and not doubt.search(self._text, *span)

    def _span(self, index: int) -> tuple[int, int]:
        return self._starts[index], (*self._starts[index + 1 : index + 2], len(self._text))[0]

    def _is_alone(self, first: int, last: int, start: int, end: int) -> bool:
        """Return whether `first..last` has only function words and hours beside the mention."""
        if last - first - (end - start) > _ALONE_CHARACTERS:
            return False
        rest = _HOUR.sub(" ", f"{self._text[first:start]} {self._text[end:last]}")
        if self._language.triggers:
            return words_of(rest) <= self._language.known_words
        return len(_LETTER.findall(rest)) <= _MAX_PARTICLE

    def _is_beside(self, cue: str, start: int, end: int) -> bool:
        """Return whether a word of this cue ends before or begins after the mention."""
        before = self._text[max(0, start - _BESIDE_CHARACTERS) : start]
        after = self._patterns[f"{cue}_after"].match(self._text, end, end + _BESIDE_CHARACTERS)
        return bool(after or self._patterns[cue].search(before))
