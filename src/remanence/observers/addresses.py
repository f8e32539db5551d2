"""The mention with which a message addresses somebody: "@memo forget my age"."""

import re

from remanence.observers.extractive.sentences import sentences
from remanence.observers.learned.features import Line
from remanence.observers.learned.forgetting import behind_reply, score_of_request
from remanence.observers.learned.function_words import WORD, language_of

_MAX_OPENING = 300
_MENTION = r"(?:<@[^<>\n]{1,100}>|@\w[\w.-]{0,99})"
_ADDRESS = re.compile(rf"\s*(?:{_MENTION}\s*)+(?:(?P<pause>[,،、，]|[-–—]\s)\s*|(?<=[\s>]))(?=\S)")
_OWN = frozenset({"i", "my", "we", "please"})
"""Classes of words that begin a sentence of which a mention before it is not the subject."""


def without_address(text: str) -> str:
    """Return a message without the mentions with which it begins, and a greeting before them.

    They are written `@memo`, in Slack and Discord `<@U024BE7LH>`. One that may belong to the sentence, or
    name whose words follow, stays: "@kat lives in Rome", "@kat: I live in Rome".
    """
    opening = text[:_MAX_OPENING]
    found = _ADDRESS.match(said := behind_reply(opening)) if "@" in opening else None
    if found is None:
        return text
    rest = said[found.end() :]
    return text[len(opening) - len(rest) :] if found["pause"] or _is_own(rest) else text


def _is_own(text: str) -> bool:
    """Return whether a text begins with a request to forget, or in its speaker's own name."""
    first = next(iter(sentences(text)))
    line = Line(text[first.start : first.end], "user")
    words = [word.lower() for word in WORD.findall(line.text)]
    _, classes = language_of(line.text, words).tag(line.text.lower(), words)[0]
    return score_of_request(line) >= 0 or not _OWN.isdisjoint(classes)
