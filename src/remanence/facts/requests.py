"""Requests to forget: which facts they name."""

import re
from collections.abc import Sequence
from functools import lru_cache
from itertools import pairwise, takewhile

from remanence.facts.meaning import ALIKE, Meaning, meaning, meaning_of
from remanence.languages.vocabulary import vocabulary_of
from remanence.observers.extractive.render import terms
from remanence.observers.learned.features import UNSPACED, tag
from remanence.observers.learned.forgetting import asks_to_forget
from remanence.observers.learned.function_words import WORD, language_of
from remanence.types import Fact

_PARTS = re.compile("[,;:،؛、，；：]")


def find_named(request: Fact, facts: Sequence[Fact]) -> Sequence[Fact]:
    """Return the facts that a request to forget repeats, else those about what it names.

    To repeat the first clause of a fact is enough, as the others mostly add to that. What a request
    names is a thing of the speaker, or somebody whose name it ends with: "forget the stuff about Ana".
    Whoever is not the user has no say about facts of others.
    """
    asked = meaning(request)
    if asked.speaker:
        facts = [fact for fact in facts if meaning(fact).speaker == asked.speaker]
    named = [fact for fact in facts if _is_named(meaning(fact), asked)]
    repeated = [fact for fact in facts if _is_restated(meaning(fact), asked)]
    about = [fact for fact in named if _is_about(meaning(fact), asked.text)]
    return repeated or about or _about_somebody(asked, facts)


def _about_somebody(asked: Meaning, facts: Sequence[Fact]) -> Sequence[Fact]:
    """Return the facts that name somebody with whose name a request ends.

    If some of these have another word of the request, only those.
    """
    name = _last_name(asked)
    found = [fact for fact in facts if name and name in meaning(fact).names]
    others = {word for word in _content(asked.text) if word != name and not asks_to_forget(word)}
    of_these = [fact for fact in found if any(_has(meaning(fact), word) for word in others)]
    return of_these or found


def _last_name(asked: Meaning) -> str | None:
    """Return the name that a request ends with, if it has no other."""
    said = [word.lower() for word in WORD.findall(asked.text)]
    content = [word for word, classes in tag(asked.text, said) if word[0].isalnum() and not classes]
    names = {name for name in asked.names if not asks_to_forget(name)}
    return content[-1] if names and names == {*content[-1:]} else None


def _is_named(known: Meaning, asked: Meaning) -> bool:
    """Return whether a fact has all that a request says, besides words that ask to forget.

    What a request says between commas without a word of the fact, such as a reason, does not count.
    """
    if known.speaker != asked.speaker or not asked.owners <= known.bag:
        return False
    told = [
        part
        for part in _PARTS.split(asked.text)
        if any(_has(known, word) for word in _content(part))
    ]
    if not told or any(meaning_of(part).is_negative for part in told) != known.is_negative:
        return False
    said = {word for part in told for word in _content(part)}
    return all(_has(known, word) or asks_to_forget(word) for word in said)


@lru_cache(maxsize=4_096)
def _content(text: str) -> frozenset[str]:
    """The words of a text that are no function words; one with an ending such as "my" counts."""
    said = [word.lower() for word in WORD.findall(text)]
    known = language_of(text, said).words.keys() | vocabulary_of(text).function_words
    return frozenset(
        word
        for word, _ in tag(text, said)
        if word[0].isalnum() and known.isdisjoint((word, word.partition("'")[0]))
    )


def _has(known: Meaning, word: str) -> bool:
    if UNSPACED.match(word):
        return word in known.text.casefold()
    return not known.bag.isdisjoint((word, *terms(word)))


def _is_restated(known: Meaning, asked: Meaning) -> bool:
    """Return whether a request repeats a fact, or its first clause unless all words of that ask."""
    opening = meaning_of(_PARTS.split(known.text)[0], known.speaker)
    asks = all(map(asks_to_forget, _content(opening.text)))
    parts = [known] if asks else [known, opening]
    return any(_is_named(part, asked) and _is_repeated(part, asked) for part in parts)


def _is_repeated(known: Meaning, asked: Meaning) -> bool:
    """Return whether a request has nearly all words of a fact, all its numbers, and its owners."""
    if UNSPACED.search(known.text):
        return all(word in asked.text.casefold() for word in _content(known.text))
    if not (known.bag and known.numbers <= asked.numbers and known.owners <= asked.bag):
        return False
    return len(known.bag & asked.bag) >= ALIKE * len(known.bag)


def _is_about(known: Meaning, text: str) -> bool:
    """Return whether a request such as "delete my phone number" names what a fact is about.

    "My" follows the word that asks: "the address of my sister" names nothing of hers.
    """
    tagged = tag(text, [word.lower() for word in WORD.findall(text)])
    for at, ((before, _), (_, classes)) in enumerate(pairwise(tagged), 2):
        if "my" in classes and asks_to_forget(before):
            words_after = takewhile(lambda one: not one[1] and one[0].isalnum(), tagged[at:])
            owned = {word for word, _ in words_after}
            return (
                bool(known.owners)
                and known.owners <= {term for word in owned for term in (word, *terms(word))}
                and all(_has(known, word) for word in owned)
            )
    return False
