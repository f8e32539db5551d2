"""Repetitions: texts that say what a note says, with the same values and by the same speaker."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from remanence.languages.vocabulary import Vocabulary
from remanence.observers.extractive.passage import AGENT, TOOL
from remanence.observers.extractive.render import Word, terms_of

_ENOUGH = 3
"""Terms of a text that is more than a short answer, which may answer anything."""
_RELATED = 0.5
"""Share of a text's terms that another one about the same thing has."""
_VALUE = re.compile(r"[a-z0-9$€£¥#][a-z0-9$€£¥#%.:/_-]*")


@dataclass(frozen=True, slots=True, kw_only=True)
class Statement:
    """A text as the terms that count, its values with digits, and its names in order."""

    speaker: str | None
    terms: frozenset[str]
    values: frozenset[str]
    names: tuple[str, ...]
    denies: bool

    def repeats(self, noted: "Statement") -> bool:
        """Return whether a note says all of it."""
        is_enough = len(self.terms) >= _ENOUGH or (self.terms and self.terms == noted.terms)
        return bool(is_enough) and self._may_repeat(noted) and self._is_within(noted)

    def is_changed_by(self, later: Iterable["Statement"]) -> bool:
        """Return whether something else was said of the same thing later."""
        related = (
            other for other in later if len(self.terms & other.terms) >= _RELATED * len(self.terms)
        )
        return not all(map(self._is_within, related))

    def _may_repeat(self, noted: "Statement") -> bool:
        """Return whether the speakers allow it: what people say of themselves is theirs alone."""
        if self.speaker is None or noted.speaker is None or self.speaker == noted.speaker:
            return True
        return self.speaker.partition(" ")[0] in (AGENT, TOOL)

    def _is_within(self, other: "Statement") -> bool:
        is_contained = self.terms <= other.terms and self.values <= other.values
        return is_contained and self._agrees_with(other)

    def _agrees_with(self, other: "Statement") -> bool:
        """Return whether both affirm or both deny, with the names that both have in one order."""
        common = [name for name in self.names if name in other.names]
        return self.denies == other.denies and common == [
            name for name in other.names if name in self.names
        ]


def statement(
    speaker: str | None, said: Sequence[Word], content: Iterable[Word], vocabulary: Vocabulary
) -> Statement:
    """Return what the words of a text say; its *content* words count."""
    counted = tuple(content)
    keys = frozenset(word.key for word in said)
    values = (value.rstrip(".:") for key in keys for value in _VALUE.findall(key))
    return Statement(
        speaker=speaker,
        terms=frozenset(term for word in counted for term in terms_of(word)),
        values=frozenset(value for value in values if any(map(str.isdigit, value))),
        names=tuple(word.key for word in counted if word.is_name),
        denies=vocabulary.denies(keys),
    )
