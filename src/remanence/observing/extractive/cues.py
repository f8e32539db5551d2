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
    cues = _cues()
    names = {
        phrase.name
        for index, key in enumerate(keys)
        for phrase in cues.phrases.get(key, ())
        if tuple(keys[index : index + len(phrase.words)]) == phrase.words
    }
    plain = text.replace("’", "'")
    names |= {name for name, pattern in cues.patterns.items() if pattern.search(plain)}
    if not text.isascii():
        names |= {name for name, pattern in cues.parts.items() if pattern.search(text)}
    return names


class _Cues(NamedTuple):
    """Phrases by their first word, patterns of them, and patterns for scripts without spaces."""

    phrases: Mapping[str, Sequence[_Phrase]]
    patterns: Mapping[str, re.Pattern[str]]
    parts: Mapping[str, re.Pattern[str]]


@cache
def _cues() -> _Cues:
    folder = resources.files("remanence.observing.extractive")
    data: dict[str, dict[str, str]] = json.loads((folder / "cues.json").read_text("utf-8"))
    phrases: dict[str, list[_Phrase]] = {}
    for name, cues in data.items():
        for phrase in cues["words"].split("|"):
            words = tuple(phrase.split())
            phrases.setdefault(words[0], []).append(_Phrase(words, name))
    return _Cues(
        phrases,
        {n: re.compile(c["pattern"], re.IGNORECASE) for n, c in data.items() if "pattern" in c},
        {n: re.compile(c["parts"]) for n, c in data.items()},
    )
