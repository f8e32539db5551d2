"""Requests to forget: which facts they name."""

import re
from collections.abc import Sequence
from functools import lru_cache
from itertools import pairwise, takewhile

from remanence.facts.meaning import ALIKE, Meaning, meaning, meaning_of
from remanence.languages.vocabulary import determiners, vocabulary_of
from remanence.observers.extractive.render import terms
from remanence.observers.learned.features import UNSPACED, Line, tag
from remanence.observers.learned.forgetting import (
    NEGATIONS,
    asks_to_forget,
    is_sure_request,
    may_request,
    nearly_asks,
    score_of_request,
)
from remanence.observers.learned.function_words import WORD, Classes, language_of, likely_languages
from remanence.types import Fact

_PARTS = re.compile(r"[,;:،؛、，；：]|\s[-–—]\s")
_NAMING = frozenset({"i", "my", "all", "always"})
"""Classes of words with which a request names something in other words than those of a fact."""
_OWN = frozenset({"i", "my", "we"})
_PERSONS = frozenset({"he", "you", "your"})
"""Classes of a pronoun of somebody else, which may also be the polite "you" in German or Italian."""
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
    things = _things(asked)
    about = [fact for fact in facts if any(_is_thing(meaning(fact), one) for one in things)]
    found = repeated or about or _about_somebody(things[0], facts)
    if found or UNSPACED.search(asked.text):
        return found
    of_topic = [fact for fact in named if _is_of_topic(meaning(fact), asked)]
    return of_topic if len(of_topic) <= _MAX_OF_TOPIC else ()


def points_back(request: Line, statement: str = "") -> bool:
    """Return whether a request surely is one, and all its words ask: "Please don't keep that.".

    One that says "I", "my", "all" or "everything" names a thing or more than was just said, and one
    such as "forget what she takes" does not mean a statement that says "I".
    """
    means_other = "i" in _classes(statement) and _is_about_another(request.text)
    if means_other or not _NAMING.isdisjoint(_classes(request.text)):
        return False
    return all(map(asks_to_forget, _content(request.text))) and is_sure_request(request)


def without_reason(line: Line) -> Line:
    """Return a line without the reason behind a request that only denies: "The code is 9, don't save it, …"."""
    for pause in _PARTS.finditer(line.text):
        request = line._replace(text=line.text[: pause.start()])
        clause = line._replace(text=_PARTS.split(request.text)[-1])
        denies = not NEGATIONS.isdisjoint(_classes(clause.text)) and _content(clause.text)
        if denies and points_back(clause) and score_of_request(line) < 0 and may_request(request):
            return request
    return line


def _about_somebody(asked: Meaning, facts: Sequence[Fact]) -> Sequence[Fact]:
    """Return the facts that have the name, of one word or more, with which a request ends.

    If some of these have another word of the request, only those.
    """
    name = _last_name(asked)
    found = [fact for fact in facts if name and name.issubset(meaning(fact).names)]
    others = {word for word in _content(asked.text) - name if not asks_to_forget(word)}
    of_these = [fact for fact in found if any(_has(meaning(fact), word) for word in others)]
    return of_these or found


def _last_name(asked: Meaning) -> frozenset[str]:
    """Return the words side by side of the name that a request ends with, if it has no other."""
    names = {name for name in asked.names if not asks_to_forget(name)}
    content = [word for word, classes in _tokens(asked.text) if word[0].isalnum() and not classes]
    ending = frozenset(takewhile(names.__contains__, reversed(content)))
    return ending if ending == names else frozenset()


def _things(asked: Meaning) -> Sequence[Meaning]:
    """Return a request for each thing that one names by "my": "forget my plate and my email".

    What "and" adds in other words is left out: "and remember that I moved". So is a first word that
    nearly asks before one that does, as in "Veuillez oublier mon adresse".
    """
    tokens, tagged = list(WORD.finditer(asked.text)), _tokens(asked.text)
    if len(tokens) != len(tagged):
        return [asked]
    mine = [at for at, (_, classes) in enumerate(tagged) if at and "my" in classes]
    before = {_before(tagged, at, asked.text): at for at in reversed(mine)}
    verb = next((at for at in sorted(before) if asks_to_forget(tagged[at][0])), None)
    if verb is None:
        return [asked]
    commas = {at for at in before if tagged[at][0] == ","}
    ends = [at for at in range(verb + 1, len(tagged)) if at in commas or _adds(tagged[at:])]
    spans = zip([verb, *ends], [*ends, len(tokens)], strict=True)
    opening = 1 if verb == 1 and nearly_asks(tagged[0][0]) else 0
    head = asked.text[tokens[opening].start() : tokens[verb].end()]
    named = (
        asked.text[tokens[before[at]].start() : tokens[end - 1].end()]
        for at, end in spans
        if at in before
    )
    return [meaning_of(f"{head} {thing}", asked.speaker) for thing in named]


def _adds(tagged: Sequence[tuple[str, Classes]]) -> bool:
    """Return whether an "and" is before words with "I" or "my"."""
    (_, classes), *behind = tagged
    return "and" in classes and any(not _OWN.isdisjoint(found) for _, found in behind)


def _before(tagged: Sequence[tuple[str, Classes]], at: int, text: str) -> int:
    """Return the place of the word before another, without articles and polite words between."""
    dropped = vocabulary_of(text).drop
    at -= 1
    while at > 0 and tagged[at][0] in dropped and {"and", "this"}.isdisjoint(tagged[at][1]):
        at -= 1
    return max(at, 0)


def _is_thing(known: Meaning, asked: Meaning) -> bool:
    """Return whether a fact is about a thing that a request names by "my", or begins with it."""
    return _is_restated(known, asked) or (_is_named(known, asked) and _is_about(known, asked.text))


def _is_named(known: Meaning, asked: Meaning) -> bool:
    """Return whether a fact has all that a request says, besides words that ask to forget.

    What a request says between commas without a word of the fact, such as a reason, does not count.
    """
    parts = _PARTS.split(asked.text)
    owners = frozenset[str]().union(*(meaning_of(part).owners for part in parts))
    if known.speaker != asked.speaker or not known.bag.issuperset(
        owner for owner in owners if not asks_to_forget(owner)
    ):
        return False
    told = [part for part in parts if any(_has(known, word) for word in _content(part))]
    if not told or any(map(_denies, told)) != known.is_negative:
        return False
    said = {word for part in told for word in _content(part)}
    return all(_has(known, word) or asks_to_forget(word) for word in said)


def _is_of_another(known: Meaning, asked: Meaning) -> bool:
    """Return whether a request says of somebody else what a fact says of the user: "where she lives".

    A fact that says neither "I" nor "my" and names somebody may be about them.
    """
    if _OWN.isdisjoint(_classes(known.text)) and (known.names or known.owners):
        return False
    parts = filter(_is_about_another, _PARTS.split(asked.text))
    return any(_has(known, word) for part in parts for word in _content(part))


@lru_cache(maxsize=4_096)
def _is_about_another(part: str) -> bool:
    """Return whether a word is behind a pronoun of somebody else, and none says "I" or "my".

    "Sie" within a German sentence is "you".
    """
    said = WORD.findall(part)
    words = [word.lower() for word in said]
    for language in likely_languages(part, words):
        tagged = language.tag(part.lower(), words)
        pronouns = (
            at
            for at, (word, classes) in enumerate(tagged)
            if "he" in classes
            and _PERSONS.issuperset(classes)
            and word not in determiners()
            and ("you" not in classes or word in said)
        )
        behind = tagged[next(pronouns, len(tagged)) :]
        says_own = any(not _OWN.isdisjoint(classes) for _, classes in tagged)
        if not says_own and any(word[0].isalnum() and not classes for word, classes in behind):
            return True
    return False


def _denies(part: str) -> bool:
    """Return whether a part of a request denies a thing, and not that it be kept: "don't store"."""
    tagged = _tokens(part)
    for at, (_, classes) in enumerate(tagged):
        if not NEGATIONS.isdisjoint(classes):
            behind = (word for word, known in tagged[at + 1 :] if word[0].isalnum() and not known)
            denied = next(behind, None)
            if denied is None or not asks_to_forget(denied):
                return True
    return False


def _is_of_topic(known: Meaning, asked: Meaning) -> bool:
    """Return whether a fact that a request names is about its topic, and of the same person.

    A fact that names somebody and says neither "I" nor "my" is not of a request about "my" thing.
    """
    topic = {word for word in _content(asked.text) if not asks_to_forget(word)}
    if not known.owners <= asked.bag or not any(_has(known, word) for word in topic):
        return False
    is_own = not _classes(known.text).isdisjoint(("my", "i"))
    return is_own or "my" not in _classes(asked.text) or asked.words.issuperset(known.names)


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


@lru_cache(maxsize=4_096)
def _tokens(text: str) -> Sequence[tuple[str, Classes]]:
    """The words of a text in lower case, each with its classes as a function word.

    A short text may be of several languages: "my" in any of them is "my".
    """
    words = [word.lower() for word in WORD.findall(text)]
    tagged = tag(text, words)
    languages = likely_languages(text, words)
    if len(languages) == 1:
        return tagged
    mine = {word for word in words if any("my" in each.words.get(word, ()) for each in languages)}
    return [(word, (*found, "my") if word in mine else found) for word, found in tagged]


def _classes(text: str) -> frozenset[str]:
    return frozenset(each for _, classes in _tokens(text) for each in classes)


def _has(known: Meaning, word: str) -> bool:
    if UNSPACED.match(word):
        return word in known.text.casefold()
    return word in known.words or not known.bag.isdisjoint((word, *terms(word)))


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
    tagged = _tokens(text)
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
