"""The facts that a request to forget names."""

from collections.abc import Sequence
from itertools import pairwise, takewhile

from remanence.facts.meaning import ALIKE, Meaning, meaning, meaning_of
from remanence.facts.requests import (
    OWN,
    PAUSES,
    classes_of,
    complement_of,
    content_of,
    denies,
    is_about_another,
    last_name,
    last_words,
    things_named,
    tokens_of,
)
from remanence.observers.extractive.render import terms
from remanence.observers.learned.features import UNSPACED
from remanence.observers.learned.forgetting import asks_to_forget, clearly_asks, nearly_asks
from remanence.types import Fact

_MAX_OF_TOPIC = 2
"""Facts that have the words of a request; where it is more, they share a word and no topic."""


def find_named(request: Fact, facts: Sequence[Fact]) -> Sequence[Fact]:
    """Return the facts that a request to forget repeats, else those about what it names.

    To repeat the first clause of a fact is enough, as the others mostly add to that. What a request
    names is a thing of the speaker, or somebody whose name it ends with: "forget the stuff about Ana",
    or else a topic by all words that do not ask: "forget the rule about commands". Words without
    spaces between them name none. Whoever is not the user has no say about facts of others, and a
    request about "her" names nothing of the user's own.
    """
    asked = meaning(request)
    if asked.speaker:
        facts = [fact for fact in facts if meaning(fact).speaker == asked.speaker]
    facts = [fact for fact in facts if not _is_of_another(meaning(fact), asked)]
    named = [fact for fact in facts if _is_named(meaning(fact), asked)]
    repeated = [fact for fact in facts if _is_restated(meaning(fact), asked)]
    things = things_named(asked)
    about = [fact for fact in facts if any(_is_thing(meaning(fact), one) for one in things)]
    found = repeated or about or _about_somebody(things[0], facts)
    if found or UNSPACED.search(asked.text):
        return found
    of_topic = [fact for fact in named if _is_of_topic(meaning(fact), asked)]
    return of_topic if len(of_topic) <= _MAX_OF_TOPIC else ()


def _about_somebody(asked: Meaning, facts: Sequence[Fact]) -> Sequence[Fact]:
    """Return the facts that have the name, of one word or more, with which a request ends.

    If the request has other words, only those that have one of these; but "my ex Ana" is Ana.
    """
    name = last_name(asked)
    found = [fact for fact in facts if name and name.issubset(meaning(fact).names)]
    others = {word for word in content_of(asked.text) - name if not nearly_asks(word)}
    of_these = [fact for fact in found if any(_has(meaning(fact), word) for word in others)]
    return found if not of_these and others <= last_words(asked) else of_these


def _is_thing(known: Meaning, asked: Meaning) -> bool:
    """Return whether a fact is about a thing that a request names by "my", or begins with it."""
    return _is_restated(known, asked) or (_is_named(known, asked) and _is_about(known, asked.text))


def _is_named(known: Meaning, asked: Meaning) -> bool:
    """Return whether a fact has all that a request says, besides words that ask to forget.

    "My number" is not "my number of the passport". What a request says between commas without a word
    of the fact, such as a reason, does not count. If it asks there for something to be forgotten, a
    fact of which it has words behind that is not named.
    """
    parts = PAUSES.split(asked.text)
    owners = frozenset[str]().union(*(meaning_of(part).owners for part in parts))
    if known.speaker != asked.speaker or not known.bag.issuperset(
        owner for owner in owners if not asks_to_forget(owner)
    ):
        return False
    if "my" in classes_of(asked.text) and not complement_of(known.text) <= content_of(asked.text):
        return False
    told = [part for part in parts if any(_has(known, word) for word in content_of(part))]
    if any(map(_asks_for_thing, takewhile(lambda part: part not in told, parts))):
        return False
    if not told or any(map(denies, told)) != known.is_negative:
        return False
    said = {word for part in told for word in content_of(part)}
    return all(_has(known, word) or asks_to_forget(word) for word in said)


def _asks_for_thing(part: str) -> bool:
    """Return whether a part of a request has a verb that asks, and a word that surely does not."""
    said = content_of(part)
    return any(map(clearly_asks, said)) and not all(map(nearly_asks, said))


def _is_of_another(known: Meaning, asked: Meaning) -> bool:
    """Return whether a request says of somebody else what a fact says of the user: "where she lives".

    A fact that says neither "I" nor "my" and names somebody may be about them.
    """
    if OWN.isdisjoint(classes_of(known.text)) and (known.names or known.owners):
        return False
    parts = filter(is_about_another, PAUSES.split(asked.text))
    return any(_has(known, word) for part in parts for word in content_of(part))


def _is_of_topic(known: Meaning, asked: Meaning) -> bool:
    """Return whether a fact that a request names is about its topic, and of the same person.

    A fact that names somebody and says neither "I" nor "my" is not of a request about "my" thing.
    """
    topic = {word for word in content_of(asked.text) if not asks_to_forget(word)}
    if not known.owners <= asked.bag or not any(_has(known, word) for word in topic):
        return False
    is_own = not classes_of(known.text).isdisjoint(("my", "i"))
    return is_own or "my" not in classes_of(asked.text) or asked.words.issuperset(known.names)


def _has(known: Meaning, word: str) -> bool:
    if UNSPACED.match(word):
        return word in known.text.casefold()
    return word in known.words or not known.bag.isdisjoint((word, *terms(word)))


def _is_restated(known: Meaning, asked: Meaning) -> bool:
    """Return whether a request repeats a fact, or its first clause unless all words of that ask."""
    opening = meaning_of(PAUSES.split(known.text)[0], known.speaker)
    asks = all(map(asks_to_forget, content_of(opening.text)))
    parts = [known] if asks else [known, opening]
    return any(_is_named(part, asked) and _is_repeated(part, asked) for part in parts)


def _is_repeated(known: Meaning, asked: Meaning) -> bool:
    """Return whether a request has nearly all words of a fact, all its numbers, and its owners."""
    if UNSPACED.search(known.text):
        return all(word in asked.text.casefold() for word in content_of(known.text))
    if not (known.bag and known.numbers <= asked.numbers and known.owners <= asked.bag):
        return False
    return len(known.bag & asked.bag) >= ALIKE * len(known.bag)


def _is_about(known: Meaning, text: str) -> bool:
    """Return whether a request such as "delete my phone number" names what a fact is about.

    "My" follows the word that asks: "the address of my sister" names nothing of hers.
    """
    tagged = tokens_of(text)
    for at, ((before, _), (_, classes)) in enumerate(pairwise(tagged), 2):
        if "my" in classes and asks_to_forget(before):
            words_after = takewhile(lambda one: not one[1] and one[0].isalnum(), tagged[at:])
            owned = {word for word, _ in words_after}
            owners = known.owners - known.numbers
            return (
                bool(owners)
                and owners <= {term for word in owned for term in (word, *terms(word))}
                and all(_has(known, word) for word in owned)
            )
    return False
