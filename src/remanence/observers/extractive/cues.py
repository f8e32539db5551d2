"""Classifies clauses by cue words: decision, issue, plan, preference, outcome, correction."""

import json
import re
from collections.abc import Mapping, Sequence
from functools import cache
from importlib import resources
from typing import Any, NamedTuple

from remanence.notes import usual_priority
from remanence.types import Priority, Tag

_ORDER: tuple[Tag, ...] = ("Decision", "Outcome", "Issue", "NextStep", "Preference")
DONE: frozenset[Tag] = frozenset({"Decision", "Outcome"})
"""Tags that a negated or conditional clause cannot have."""
_REACH = 4
_WORD = re.compile(r"\w+")


class Cue(NamedTuple):
    """The tag and priority of a clause, and whether it corrects an earlier one.

    `stands` marks a decision, a standing request or an open point: valid until withdrawn.
    """

    tag: Tag = "Fact"
    priority: Priority = "NOTE"
    corrects: bool = False
    stands: bool = False


NO_CUE = Cue()
DECIDED = Cue("Decision", usual_priority("Decision"), stands=True)
_NONE_OF_IT = re.compile(
    r"\b(?:no|without|0|zero|keine?|sans|sin) (?:\w+ )?(?:errors?|bugs?|fail)", re.IGNORECASE
)

_SOME_FAILED = re.compile(
    r"\b[1-9]\d* (?:failed|errors?|failures?)\b|\b(?:failed|errors|failures):? [1-9]", re.IGNORECASE
)


class Pattern(NamedTuple):
    """A cue given by a regular expression, which is tried on texts with one of its `words`."""

    words: tuple[str, ...]
    name: str
    regex: re.Pattern[str]


class _Phrase(NamedTuple):
    """A cue of several words."""

    words: tuple[str, ...]
    name: str


def cue_of(text: str, keys: Sequence[str], *, is_question: bool, for_agent: bool = False) -> Cue:
    """Return the cue of a clause with the words *keys*; a question is never a decision.

    A wish or a conclusion is a decision if it is addressed to an agent, who acts on it.
    """
    if is_question:
        return NO_CUE
    names = _names(text, keys)
    if for_agent and not names and _concludes(text):
        return DECIDED
    tag: Tag = next((name for name in _ORDER if name in names), "Fact")
    if tag == "Issue" and _NONE_OF_IT.search(text):
        tag = "Fact"
    if tag == "Outcome" and _SOME_FAILED.search(text):
        tag = "Issue"
    if tag == "Fact" and "Standing" in names:
        tag = "Preference"
    elif tag in ("Fact", "Decision") and "Open" in names:
        tag = "NextStep"
    corrects = "Correction" in names
    stands = tag == "Decision" or not names.isdisjoint(("Standing", "Open"))
    if "Critical" in names and (tag != "Fact" or corrects):
        return Cue(tag, "CRITICAL", corrects, stands)
    return Cue(tag, usual_priority(tag), corrects, stands)


def is_request(text: str) -> bool:
    """Return whether a question asks for an action: "can you send it?"."""
    return "Request" in matches(_plain(text), all_cues().requests)


def _concludes(text: str) -> bool:
    """Return whether a clause states a wish or a conclusion."""
    cues = all_cues()
    if "Conclusion" in matches(_plain(text), cues.conclusions):
        return True
    return not text.isascii() and cues.concluded.search(text) is not None


def _plain(text: str) -> str:
    """Return the text in the spelling of the patterns: lower case, straight apostrophes."""
    return text.replace("’", "'").lower()


def _names(text: str, keys: Sequence[str]) -> set[str]:
    cues = all_cues()
    names = {
        phrase.name
        for index, key in enumerate(keys)
        for phrase in cues.phrases.get(key, ())
        if tuple(keys[index : index + len(phrase.words)]) == phrase.words
        and not (phrase.name in DONE and cues.deny(keys[max(0, index - _REACH) : index]))
    }
    names |= matches(_plain(text), cues.patterns)
    if not text.isascii():
        parts = {name for name, pattern in cues.parts.items() if pattern.search(text)}
        names |= parts - DONE if cues.unless.search(text) else parts
    return names


def matches(text: str, patterns: Mapping[str, Sequence[Pattern]]) -> set[str]:
    """Return the names of the patterns that match a lower-case text."""
    names: set[str] = set()
    for word in set(_WORD.findall(text)):
        for pattern in patterns.get(word, ()):
            if pattern.name not in names and pattern.regex.search(text):
                names.add(pattern.name)
    return names


class Cues(NamedTuple):
    """The cue table: phrases by their first word, patterns by each word that triggers them.

    `parts` are patterns for scripts without spaces. After one of `denials`, and in a text that
    matches `unless`, nothing counts as done or decided. `refusals` reject the name that follows
    them, with `links` allowed in between.
    """

    phrases: Mapping[str, Sequence[_Phrase]]
    patterns: Mapping[str, Sequence[Pattern]]
    parts: Mapping[str, re.Pattern[str]]
    denials: frozenset[str]
    unless: re.Pattern[str]
    refusals: frozenset[str]
    links: frozenset[str]
    requests: Mapping[str, Sequence[Pattern]]
    proposals: frozenset[str]
    proposed: re.Pattern[str]
    conclusions: Mapping[str, Sequence[Pattern]]
    concluded: re.Pattern[str]

    def deny(self, before: Sequence[str]) -> bool:
        """Return whether the words before a cue negate it."""
        return any(key in self.denials or key.endswith("n't") for key in before)

    def propose(self, text: str, keys: Sequence[str]) -> bool:
        """Return whether a line before a list introduces its items as alternatives."""
        return not self.proposals.isdisjoint(keys) or self.proposed.search(text) is not None


@cache
def all_cues() -> Cues:
    """Return the cues of `cues.json`."""
    folder = resources.files("remanence.observers.extractive")
    data: dict[str, dict[str, Any]] = json.loads((folder / "cues.json").read_text("utf-8"))
    special = ("NotDone", "Refusal", "Request", "Proposal", "Conclusion")
    not_done, refusal, request, proposal, conclusion = (data.pop(name) for name in special)
    phrases: dict[str, list[_Phrase]] = {}
    for name, cues in data.items():
        for phrase in cues["words"].split("|"):
            words = tuple(phrase.split())
            phrases.setdefault(words[0], []).append(_Phrase(words, name))
    return Cues(
        phrases,
        _patterns(data),
        {n: re.compile(c["parts"]) for n, c in data.items()},
        denials=frozenset(not_done["words"].split("|")),
        unless=re.compile(not_done["parts"]),
        refusals=frozenset(refusal["words"].split("|")),
        links=frozenset(refusal["links"].split("|")),
        requests=_patterns({"Request": request}),
        proposals=frozenset(proposal["words"].split("|")),
        proposed=re.compile(proposal["parts"]),
        conclusions=_patterns({"Conclusion": conclusion}),
        concluded=re.compile(conclusion["parts"]),
    )


def _patterns(data: Mapping[str, Mapping[str, Any]]) -> Mapping[str, Sequence[Pattern]]:
    by_word: dict[str, list[Pattern]] = {}
    for name, cues in data.items():
        table: Mapping[str, str] = cues.get("patterns", {})
        for needed, regex in table.items():
            pattern = Pattern(tuple(needed.split("|")), name, re.compile(regex))
            for word in pattern.words:
                by_word.setdefault(word, []).append(pattern)
    return by_word
