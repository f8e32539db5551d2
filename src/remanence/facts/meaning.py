"""Meaning of a fact, as merging compares it: its terms, numbers and names, and whose it is."""

import re
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import groupby

from remanence.facts.tags import HOME, speaker_of
from remanence.languages.vocabulary import Vocabulary, find_cue, vocabulary_of
from remanence.observers.extractive.render import Word, has_digit, terms_of, words
from remanence.observers.learned.function_words import (
    WORD,
    Language,
    language_of,
    likely_languages,
)
from remanence.types import Fact, FactDraft
from remanence.wire.parts import fold_name

ALIKE = 0.8
"""Share of the terms of two facts that both have if they say the same."""
STEM = 3
"""Letters of a word that may have an ending in another fact."""
_OWNED = 2
"""Words after "my" of which one names the thing: "my new phone"."""
_BESIDE = frozenset({"and", "with", "since"})
"""Classes of a word before somebody who is with the user, or before a place: "从"."""
_PAUSE = re.compile(r"[,，、;；。]")


@dataclass(frozen=True, slots=True)
class Meaning:
    """The terms of a summary: all, and those with digits.

    `text` is the summary without its speaker, and `words` are all of its words and signs. `stems`
    are the terms that may have an ending in another fact.
    `names` are names in the order of the text. `owners` are the user's people and things that it
    names: "my sister", "my flight". `possessors` are the owners beside each other, in "my sister's
    car's plate" both. `person` names whose home it tells: empty for the user, None if it tells no
    home.
    """

    speaker: str
    text: str
    words: frozenset[str]
    bag: frozenset[str]
    stems: tuple[str, ...]
    owners: frozenset[str]
    possessors: frozenset[str]
    person: frozenset[str] | None
    names: tuple[str, ...]
    is_negative: bool
    numbers: frozenset[str]


def meaning(said: Fact | FactDraft) -> Meaning:
    """Return the meaning of a fact, whose speaker is the user unless a tag names another."""
    if not said.tags:
        return meaning_of(said.summary)
    speaker = speaker_of(said)
    return meaning_of(said.summary.removeprefix(f"{speaker}: "), speaker)


@lru_cache(maxsize=4_096)
def meaning_of(text: str, speaker: str = "") -> Meaning:
    """Return the meaning of a summary without its speaker."""
    vocabulary = vocabulary_of(text)
    small = vocabulary.function_words
    said = list(words(text, vocabulary, opens=False))
    content = [word for word in said if word.key not in small]
    bag = _all_terms(content)
    cue = find_cue(text, "home")
    person = _person(text, said, cue, vocabulary) if cue else None
    return Meaning(
        speaker=fold_name(speaker),
        text=text,
        words=frozenset(WORD.findall(text.casefold())),
        bag=bag,
        stems=tuple(term for term in bag if len(term) >= STEM and not term.isdigit()),
        owners=_owners(said, vocabulary),
        possessors=_all_terms(_possessors(said, _classes(said))),
        person=person,
        names=tuple(word.key for word in content if word.is_name),
        is_negative=vocabulary.denies(word.key for word in said),
        numbers=frozenset(word.key for word in content if has_digit(word)),
    )


def _person(
    text: str, said: Sequence[Word], cue: re.Match[str], vocabulary: Vocabulary
) -> frozenset[str] | None:
    """Return the terms that name who lives or moves, empty for the user; None if a thing does.

    Somebody is a name that opens the text, or a word or two after "my". Where nothing follows the
    phrase, the place is before it, and it is of the user.
    """
    if vocabulary.small:
        names_other = _names_other(text[: cue.start()], language_of(text), vocabulary)
        return None if names_other else frozenset()
    before = said[: sum(1 for _ in words(text[: cue.start()], vocabulary, opens=False))]
    classes = _classes(said)[: len(before)]
    is_place_before = not any(map(str.isalnum, text[cue.end() :]))
    if is_place_before or any("i" in found for found in classes):
        return frozenset()
    mine = max((at + 1 for at, found in enumerate(classes) if "my" in found), default=0)
    named = [word for word in before[mine:] if word.key not in vocabulary.function_words]
    opening = [word for word in before[:1] if word.is_name]
    is_person = len(named) <= _OWNED if mine else named in ([], opening)
    return _all_terms(named) if is_person else None


def _names_other(before: str, language: Language, vocabulary: Vocabulary) -> bool:
    """Return whether a clause names somebody before its phrase, in a script without spaces.

    "我和姐姐" is the user, too, and what follows "from" is a place. In Japanese, whoever a clause is
    about is before a mark such as "は".
    """
    if vocabulary.topic:
        before = before[: max(map(before.rfind, vocabulary.topic)) + 1]
    clause = _PAUSE.split(before)[-1]
    small = "".join(vocabulary.small)
    behind = frozenset[str]()
    for word, classes in language.tag(clause.lower(), ()):
        is_named = (not classes or "my" in classes) and word.strip(small).isalnum()
        if is_named and behind.isdisjoint(_BESIDE):
            return True
        behind = frozenset(classes)
    return False


def _classes(said: Sequence[Word]) -> list[Collection[str]]:
    """Return the grammatical classes of the words of a text; a word of content has none.

    Those of a short text that may be of several languages are of all: "Mi matrícula es 4471."
    """
    keys = [word.key for word in said]
    likely = [language.words for language in likely_languages(" ".join(keys), keys)]
    return [
        [name for known in likely for name in known.get(key) or known.get(head, ())]
        for key, head in ((key, key.partition("'")[0]) for key in keys)
    ]


def _possessors(said: Sequence[Word], classes: Sequence[Collection[str]]) -> list[Word]:
    """Return the last words with "'s" beside each other: "my sister's car's plate"."""
    runs = groupby(
        zip(said, classes, strict=True),
        lambda one: one[0].key.endswith("'s") and not one[1],  # not "it's" or "she's"
    )
    named = [[word for word, _ in run] for is_possessor, run in runs if is_possessor]
    return named[-1] if named else []


def _owners(said: Sequence[Word], vocabulary: Vocabulary) -> frozenset[str]:
    """Return the terms of the last owner in "my sister's flight", or of words of content after "my"."""
    classes = _classes(said)
    named = _possessors(said, classes)[-1:]
    if not named:
        mine = [at + 1 for at, found in enumerate(classes) if "my" in found]
        behind = (at for start in mine for at in range(len(said))[start : start + _OWNED])
        named = [said[at] for at in behind if not classes[at]]
    return _all_terms(word for word in named if word.key not in vocabulary.function_words)


def _all_terms(said: Iterable[Word]) -> frozenset[str]:
    return frozenset(term for word in said for term in terms_of(word))


def is_home(fact: Fact) -> bool:
    """Return whether a fact tells where somebody lives, by its tag or its words."""
    return HOME in fact.tags or meaning(fact).person is not None
