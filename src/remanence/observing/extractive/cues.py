"""What a clause is: decision, issue, plan, preference, outcome, correction; by words that tell."""

import json
import re
from collections.abc import Mapping, Sequence
from functools import cache
from importlib import resources
from typing import NamedTuple

from remanence.observing.notes import usual_priority
from remanence.types import Priority, Tag

_ORDER: tuple[Tag, ...] = ("Decision", "Outcome", "Issue", "NextStep", "Preference")


class Cue(NamedTuple):
    """The tag and priority of a clause, and whether it takes back something said before."""

    tag: Tag = "Fact"
    priority: Priority = "NOTE"
    corrects: bool = False


NO_CUE = Cue()
_NONE_OF_IT = re.compile(
    r"\b(?:no|without|0|zero|keine?|sans|sin) (?:\w+ )?(?:errors?|bugs?|fail)", re.IGNORECASE
)


class Pattern(NamedTuple):
    """A cue that words alone do not tell; a text without any of `needs` is not searched."""

    needs: tuple[str, ...]
    regex: re.Pattern[str]

    def is_in(self, text: str) -> bool:
        """Whether a text in lower case has the cue."""
        return any(part in text for part in self.needs) and self.regex.search(text) is not None


class _Phrase(NamedTuple):
    """A cue of several words."""

    words: tuple[str, ...]
    name: str


def cue_of(text: str, keys: Sequence[str], *, is_question: bool) -> Cue:
    """The cue of a clause of these words; a question decides nothing."""
    if is_question:
        return NO_CUE
    names = _names(text, keys)
    tag: Tag = next((name for name in _ORDER if name in names), "Fact")
    if tag == "Issue" and _NONE_OF_IT.search(text):
        tag = "Fact"
    corrects = "Correction" in names
    if "Critical" in names and (tag != "Fact" or corrects):
        return Cue(tag, "CRITICAL", corrects)
    return Cue(tag, usual_priority(tag), corrects)


def _names(text: str, keys: Sequence[str]) -> set[str]:
    cues = all_cues()
    names = {
        phrase.name
        for index, key in enumerate(keys)
        for phrase in cues.phrases.get(key, ())
        if tuple(keys[index : index + len(phrase.words)]) == phrase.words
    }
    plain = text.replace("’", "'").lower()
    names |= {name for name, pattern in cues.patterns.items() if pattern.is_in(plain)}
    if not text.isascii():
        names |= {name for name, pattern in cues.parts.items() if pattern.search(text)}
    return names


class Cues(NamedTuple):
    """Phrases by their first word, patterns of them, and patterns for scripts without spaces."""

    phrases: Mapping[str, Sequence[_Phrase]]
    patterns: Mapping[str, Pattern]
    parts: Mapping[str, re.Pattern[str]]


@cache
def all_cues() -> Cues:
    """The cues of the table `cues.json`."""
    folder = resources.files("remanence.observing.extractive")
    data: dict[str, dict[str, str]] = json.loads((folder / "cues.json").read_text("utf-8"))
    phrases: dict[str, list[_Phrase]] = {}
    for name, cues in data.items():
        for phrase in cues["words"].split("|"):
            words = tuple(phrase.split())
            phrases.setdefault(words[0], []).append(_Phrase(words, name))
    return Cues(
        phrases,
        {n: _pattern(c) for n, c in data.items() if "pattern" in c},
        {n: re.compile(c["parts"]) for n, c in data.items()},
    )


def _pattern(cue: Mapping[str, str]) -> Pattern:
    return Pattern(tuple(cue["needs"].split("|")), re.compile(cue["pattern"]))
