"""Read a request to forget: the things that it names, and whether it denies them."""

import re
from collections.abc import Sequence
from functools import lru_cache
from itertools import dropwhile, pairwise, takewhile

from remanence.facts.meaning import Meaning, meaning_of
from remanence.languages.vocabulary import determiners, vocabulary_of
from remanence.observers.learned.features import Line, tag
from remanence.observers.learned.forgetting import (
    NEGATIONS,
    asks_to_forget,
    is_sure_request,
    may_request,
    nearly_asks,
    score_of_request,
)
from remanence.observers.learned.function_words import (
    WORD,
    Classes,
    language_of,
    likely_languages,
    lower_words,
)

PAUSES = re.compile(r"[,;:،؛、，；：]|\s[-–—]\s")
_NAMING = frozenset({"i", "my", "all", "always"})
"""Classes of words with which a request names something in other words than those of a fact."""
OWN = frozenset({"i", "my", "we"})
_PERSONS = frozenset({"he", "you", "your"})
"""Classes of a pronoun of somebody else, which may also be the polite "you" in German or Italian."""
_AROUND = frozenset(
    {"please", "thanks", "for", "and", "also", "again", "now", "already", "okay", "yes", "um", "so"}
)
"""Classes of words around a thing that is asked for: "ok, just my address again pls"."""


def asks_for_own(text: str) -> bool:
    """Return whether a text is only words around a thing of the speaker, a polite one among them."""
    said = [one for one in tokens_of(text) if one[0][0].isalnum()]
    mine = next((at for at, (_, classes) in enumerate(said) if "my" in classes), len(said))
    thing = list(takewhile(lambda one: not one[1] and one[0].isalpha(), said[mine + 1 :]))
    around = [classes for _, classes in (*said[:mine], *said[mine + 1 + len(thing) :])]
    is_polite = any("please" in classes for classes in around)
    return bool(thing) and is_polite and not any(map(_AROUND.isdisjoint, around))


def points_back(request: Line, statement: str = "") -> bool:
    """Return whether a request surely is one, and all its words ask: "Please don't keep that.".

    One that says "I", "my", "all" or "everything" names a thing or more than was just said, and one
    such as "forget what she takes" does not mean a statement that says "I".
    """
    means_other = "i" in classes_of(statement) and is_about_another(request.text)
    if means_other or not _NAMING.isdisjoint(classes_of(request.text)):
        return False
    return all(map(asks_to_forget, content_of(request.text))) and is_sure_request(request)


def without_reason(line: Line) -> Line:
    """Return a line without the reason behind a request that only denies: "The code is 9, don't save it, …"."""
    for pause in PAUSES.finditer(line.text):
        request = line._replace(text=line.text[: pause.start()])
        clause = line._replace(text=PAUSES.split(request.text)[-1])
        denied = not NEGATIONS.isdisjoint(classes_of(clause.text)) and content_of(clause.text)
        if denied and points_back(clause) and score_of_request(line) < 0 and may_request(request):
            return request
    return line


def things_named(asked: Meaning) -> Sequence[Meaning]:
    """Return a request for each thing that one names by "my": "forget my plate and my email".

    What "and" adds in other words is left out: "and remember that I moved". So is a first word that
    nearly asks before one that does, as in "Veuillez oublier mon adresse".
    """
    tokens, tagged = list(WORD.finditer(asked.text)), tokens_of(asked.text)
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
    return "and" in classes and any(not OWN.isdisjoint(found) for _, found in behind)


def _before(tagged: Sequence[tuple[str, Classes]], at: int, text: str) -> int:
    """Return the place of the word before another, without articles and polite words between."""
    dropped = vocabulary_of(text).drop
    at -= 1
    while at > 0 and tagged[at][0] in dropped and {"and", "this"}.isdisjoint(tagged[at][1]):
        at -= 1
    return max(at, 0)


def last_name(asked: Meaning) -> frozenset[str]:
    """Return the words side by side of the name that a request ends with, if it has no other.

    Words that ask may be behind a name beside "about": "alles, was ich über Ana gesagt habe".
    """
    names = {name for name in asked.names if not asks_to_forget(name)}
    tagged = [one for one in tokens_of(asked.text) if one[0][0].isalnum()]
    content = [word for word, classes in reversed(tagged) if not classes]
    about = (pair for pair in pairwise(tagged) if any("about" in classes for _, classes in pair))
    if any(word in names for pair in about for word, _ in pair):
        content = list(dropwhile(asks_to_forget, content))
    ending = frozenset(takewhile(names.__contains__, content))
    return ending if ending == names else frozenset()


def last_words(asked: Meaning) -> frozenset[str]:
    """Return the words of content with which a request ends: of "about my ex Ana" the last two."""
    said = [one for one in tokens_of(asked.text) if one[0][0].isalnum()]
    ending = takewhile(lambda one: not one[1], reversed(said))
    return frozenset(word for word, _ in ending)


@lru_cache(maxsize=4_096)
def is_about_another(part: str) -> bool:
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
        says_own = any(not OWN.isdisjoint(classes) for _, classes in tagged)
        if not says_own and any(word[0].isalnum() and not classes for word, classes in behind):
            return True
    return False


def complement_of(text: str) -> frozenset[str]:
    """Return the words of content behind "my … of": "pasaporte" in "mi número de pasaporte"."""
    tagged = tokens_of(text)
    mine = next((at for at, (_, classes) in enumerate(tagged) if "my" in classes), len(tagged))
    behind = dropwhile(lambda one: not one[1] and one[0].isalpha(), tagged[mine + 1 :])
    if "from" not in next(behind, ("", ()))[1]:
        return frozenset()
    named = takewhile(lambda one: not one[1] and one[0].isalnum(), behind)
    return content_of(text).intersection(word for word, _ in named)


def denies(part: str) -> bool:
    """Return whether a part of a request denies a thing, and not that it be kept: "don't store"."""
    tagged = tokens_of(part)
    for at, (_, classes) in enumerate(tagged):
        if not NEGATIONS.isdisjoint(classes):
            behind = (word for word, known in tagged[at + 1 :] if word[0].isalnum() and not known)
            denied = next(behind, None)
            if denied is None or not asks_to_forget(denied):
                return True
    return False


@lru_cache(maxsize=4_096)
def content_of(text: str) -> frozenset[str]:
    """Return the words of a text that are no function words; one with an ending such as "my" counts."""
    known = language_of(text).words.keys() | vocabulary_of(text).function_words
    return frozenset(
        word
        for word, _ in tag(text)
        if word[0].isalnum() and known.isdisjoint((word, word.partition("'")[0]))
    )


@lru_cache(maxsize=4_096)
def tokens_of(text: str) -> Sequence[tuple[str, Classes]]:
    """Return the words of a text in lower case, each with its classes as a function word.

    A short text may be of several languages: "my" in any of them is "my".
    """
    words = lower_words(text)
    tagged = tag(text, words)
    languages = likely_languages(text, words)
    if len(languages) == 1:
        return tagged
    mine = {word for word in words if any("my" in each.words.get(word, ()) for each in languages)}
    return [(word, (*found, "my") if word in mine else found) for word, found in tagged]


def classes_of(text: str) -> frozenset[str]:
    """Return the classes of all function words of a text."""
    return frozenset(each for _, classes in tokens_of(text) for each in classes)
