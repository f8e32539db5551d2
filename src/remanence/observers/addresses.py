"""The mention with which a message addresses somebody: "@memo forget my age"."""

import re

from remanence.observers.extractive.sentences import sentences
from remanence.observers.learned.features import Line
from remanence.observers.learned.forgetting import behind_reply, clearly_asks, is_sure_request
from remanence.observers.learned.function_words import WORD, language_of

_MAX_OPENING = 300
_MENTION = r"(?:<@[^<>\n]{1,100}>|@\w[\w.-]{0,99})"
_ADDRESS = re.compile(rf"\s*(?:{_MENTION}\s*)+(?:[,،、，]\s*|(?<=[\s>]))(?=\S)")
_APOSTROPHE = re.compile("['’]")


def without_address(text: str) -> str:
    """Return a message without the mentions with which it begins, and a greeting before them.

    They are written `@memo`, in Slack and Discord `<@U024BE7LH>`. One that may belong to the sentence, or
    name whose words follow, stays: "@kat lives in Rome", "@kat, vegan", "@kat: I live in Rome".
    """
    opening = text[:_MAX_OPENING]
    found = _ADDRESS.match(said := behind_reply(opening)) if "@" in opening else None
    if found is None:
        return text
    rest = said[found.end() :]
    return text[len(opening) - len(rest) :] if _is_own(rest) else text


def _is_own(text: str) -> bool:
    """Return whether a text begins with "I" or "please", or with the verb of a sure request to forget.

    Of other words a mention may be the subject: "@kat deleted my number", "@kat me debe 30 euros". In
    the file of a language "I" comes before "me".
    """
    first = next(iter(sentences(text)))
    line = Line(text[first.start : first.end], "user")
    words = [word.lower() for word in WORD.findall(line.text)]
    language = language_of(line.text, words)
    word, classes = next(iter(language.tag(line.text.lower(), words)), ("", ()))
    speaker = next(known for known, found in language.words.items() if "i" in found)
    if "please" in classes or _APOSTROPHE.split(word)[0] == speaker:
        return True
    return clearly_asks(word) and is_sure_request(line)
