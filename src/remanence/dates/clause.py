"""Judge by its clause whether "in three years" lies ahead, and whether the clause is about a habit.

"We leave in two weeks" does; "my first holiday in three years" and "I read it in two weeks" are
durations, and 两年后他们离婚了 tells of the past. Of the words that show one or the other, the nearest
before the phrase decides, then the nearest after it.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass

_REACH = 120
"""Characters to read before the phrase, and after it."""
_KINDS = ("ahead", "not_ahead", "amount", "auxiliary", "participle")
_SENTENCE_END = r"[.!?…]+(?:\s|$)|[;:\n。！？]|\s[-–—]\s"
_COMMA = re.compile("[,，、]")
_OPENS_PART = re.compile(r"\s+(?:\w+\s+)?")
_NEVER = r"(?!)"


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ClauseWords:
    """The words of a language that show when something happens.

    Attributes:
        shown: The words in a group for each kind. Verbs of the present and the future are `ahead`.
            Verbs of the past, negations and words for what may be or often is are `not_ahead`.
            Ordinals, superlatives and other counts are an `amount`, which says something only
            before the phrase. An `auxiliary` of the perfect says something only with a
            `participle` in its clause, and the participle only with it.
        habit: Words for what happens always, every week or never.
        joint: A comma, "and" or "but".
        report: Past verbs of saying and thinking.
        long_ago: Words that place a sentence in an earlier time of life.
        boundary: What ends a clause.
        is_verb_last: The verb follows the phrase, so that words before it are of another clause.
    """

    shown: re.Pattern[str]
    habit: re.Pattern[str]
    joint: re.Pattern[str]
    report: re.Pattern[str]
    long_ago: re.Pattern[str]
    boundary: re.Pattern[str]
    is_verb_last: bool

    def is_ahead(self, text: str, start: int, end: int) -> bool:
        """Return whether nothing near `start..end` speaks against a time that lies ahead."""
        before = self._before(text[max(0, start - _REACH) : start])
        left = self._kinds(before)
        right = self._kinds(self._after(text[end : end + _REACH], is_first=not before))
        if {"auxiliary", "participle"} <= {*left, *right}:
            return False
        nearest = next((kind for kind in reversed(left) if kind != "participle"), None)
        if nearest in (None, "auxiliary"):
            nearest = next((kind for kind in right if kind in ("ahead", "not_ahead")), None)
        return nearest in (None, "ahead")

    def is_habit(self, text: str, start: int, end: int) -> bool:
        """Return whether the clause around `start..end` is about a habit.

        It reaches to a comma on either side, to "and" or "but" after the phrase, and to one directly
        before it.
        """
        before = _COMMA.split(text[max(0, start - _REACH) : start])[-1]
        if _OPENS_PART.fullmatch(self.joint.split(before)[-1]):  # "but tomorrow"
            before = ""
        after = self.joint.split(text[end : end + _REACH], maxsplit=1)[0]
        clause = self.boundary.split(before)[-1] + text[start:end]
        return self.habit.search(clause + self.boundary.split(after, maxsplit=1)[0]) is not None

    def _kinds(self, clause: str) -> list[str | None]:
        return [found.lastgroup for found in self.shown.finditer(clause)]

    def _before(self, text: str) -> str:
        """Return the part of the clause before the phrase, "" if it has no words."""
        return "" if self.is_verb_last else self.boundary.split(text)[-1].strip(" ,\"'“”„«»()[]*")

    def _after(self, text: str, *, is_first: bool) -> str:
        """Return the rest of the clause, up to a comma unless the phrase comes first in it."""
        if not is_first:
            text = _COMMA.split(text, maxsplit=1)[0]
        return self.boundary.split(text.lstrip(",，、 "), maxsplit=1)[0]


def clause_words(table: Mapping[str, str], *, is_spaced: bool, is_verb_last: bool) -> ClauseWords:
    """Return the words of the table `[clause]` of a language, a pattern for each kind.

    `ends` is a pattern of what ends a clause within a sentence.
    """
    edge = r"\b" if is_spaced else ""

    def pattern(words: str) -> re.Pattern[str]:
        return re.compile(f"{edge}(?:{words}){edge}", re.IGNORECASE)

    kinds = [f"(?P<{kind}>{table[kind]})" for kind in _KINDS if kind in table]
    return ClauseWords(
        shown=pattern("|".join(kinds) or _NEVER),
        habit=pattern(table.get("habit", _NEVER)),
        joint=re.compile(f"{_COMMA.pattern}|{pattern(table.get('joint', _NEVER)).pattern}"),
        report=pattern(table.get("report", _NEVER)),
        long_ago=pattern(table.get("long_ago", _NEVER)),
        boundary=re.compile(f"{_SENTENCE_END}|{table.get('ends', _NEVER)}", re.IGNORECASE),
        is_verb_last=is_verb_last,
    )
