"""The mention with which a message addresses somebody: "@memo forget my age"."""

import re

from remanence.observers.extractive.sentences import sentences
from remanence.observers.learned.features import Line
from remanence.observers.learned.forgetting import behind_reply, clearly_asks, is_sure_request
from remanence.observers.learned.function_words import language_of, lower_words

_MAX_OPENING = 300
_MENTION = r"(?:<@[^<>\n]{1,100}>|@\w[\w.-]{0,99})"
_ADDRESS = re.compile(rf"\s*(?:{_MENTION}\s*)+(?:[,،、，]\s*|(?<=[\s>]))(?=\S)")


def without_address(text: str) -> str:
    """Return a message without the mentions with which it begins, and a greeting before them.

    They are written `@memo`, in Slack and Discord `<@U024BE7LH>`. One that may belong to the sentence, or
    name whose words follow, stays: "@kat lives in Rome", "@kat, vegan", "@kat: I live in Rome".
    """
    opening = text[:_MAX_OPENING]
    if "@" not in opening:
        return text
    rest = behind_mentions(said := behind_reply(opening))
    return text[len(opening) - len(rest) :] if rest != said and _is_own(rest) else text


def behind_mentions(text: str) -> str:
    """Return a text without the mentions with which it begins, whatever follows."""
    found = _ADDRESS.match(text)
    return text[found.end() :] if found else text


def _is_own(text: str) -> bool:
    """Return whether a text begins with "I" or "please", or with the verb of a sure request to forget.

    Of other words a mention may be the subject: "@kat deleted my number", "@kat me debe 30 euros".
    """
    first = next(iter(sentences(text)))
    line = Line(text[first.start : first.end], "user")
    words = lower_words(line.text)
    language = language_of(line.text, words)
    word, classes = next(iter(language.tag(line.text.lower(), words)), ("", ()))
    if "please" in classes or language.is_subject(word, "i"):
        return True
    return clearly_asks(word) and is_sure_request(line)
