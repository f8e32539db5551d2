"""Small words and cue phrases of languages, from a file for each.

A cue phrase is given with a sentence that has it; one for facts with two, of which the second
replaces the first.
"""

import re
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from importlib import resources

from remanence.languages.letters import LETTER

_ALPHABETIC = ("en", "de", "es", "fr", "it", "nl", "pt", "tr", "vi")
_SCRIPTS = {
    "ja": re.compile(r"[\u3040-\u30ff]"),
    "ko": re.compile(r"[\uac00-\ud7af]"),
    "zh": re.compile(r"[\u4e00-\u9fff]"),
    "ru": re.compile(r"[\u0400-\u04ff]"),
    "ar": re.compile(r"[\u0600-\u06ff]"),
    "hi": re.compile(r"[\u0900-\u097f]"),
}
LANGUAGES = (*_ALPHABETIC, *_SCRIPTS, "pl")
_GLUED = ("ja", "ko", "zh")
"""Languages that write particles or other words directly beside a phrase."""

_CUES = ("home", "abbreviation", "before_number")
_WORD = re.compile(rf"{LETTER}+(?:['’]{LETTER}+)*")
_SAMPLE_CHARS = 2000


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Vocabulary:
    """The small words of a language, one instance per table: compared by identity.

    Attributes:
        language: Code of the language, "" for the empty table.
        drop: Left out of a telegraphic line.
        glue: Kept, but without meaning of their own.
        weak: Kept, with little meaning.
        first: Pronouns of the speaker.
        second: Pronouns of the person spoken to.
        determiners: Words before a noun that are pronouns elsewhere, such as the Spanish "la".
        small: Function characters of a script without spaces.
        topic: Marks of such a script behind whoever a clause is about.
        denials: Words that deny what follows them.
        light: Words that a plain clause may leave out, unless a value follows.
        function_words: `drop` and `glue` together.
        slight: `glue` and `weak` together.
        cues: Phrases by the use that they have, each with its test sentences: a person has one
            `home`. No sentence ends with the period of an `abbreviation`, nor with that of one
            `before_number` that has a number beside it.
    """

    language: str
    drop: frozenset[str] = frozenset()
    glue: frozenset[str] = frozenset()
    weak: frozenset[str] = frozenset()
    first: frozenset[str] = frozenset()
    second: frozenset[str] = frozenset()
    determiners: frozenset[str] = frozenset()
    small: frozenset[str] = frozenset()
    topic: frozenset[str] = frozenset()
    denials: frozenset[str] = frozenset()
    light: frozenset[str] = frozenset()
    function_words: frozenset[str] = frozenset()
    slight: frozenset[str] = frozenset()
    cues: Mapping[str, Mapping[str, str]]

    def denies(self, keys: Iterable[str]) -> bool:
        """Return whether one of these words in lower case denies; in any language if it is unknown."""
        denials = self.denials if self.language else _denials()
        return any(key in denials or "n't" in key for key in keys)


@cache
def cue_phrases(use: str) -> frozenset[str]:
    """Return the phrases of a use in all languages, in lower case."""
    return frozenset(
        phrase.casefold() for name in LANGUAGES for phrase in vocabulary(name).cues.get(use, ())
    )


NO_VOCABULARY = Vocabulary(language="", cues={})


def vocabulary_of(text: str) -> Vocabulary:
    """Return the table of the language a text is written in, `NO_VOCABULARY` if none fits."""
    sample = text[:_SAMPLE_CHARS]
    if not sample.isascii():
        for name, script in _SCRIPTS.items():
            if len(script.findall(sample)) * 5 > len(sample):
                return vocabulary(name)
    tokens = " ".join(_WORD.findall(sample)).lower().replace("’", "'").split(" ")
    best, most_hits = NO_VOCABULARY, len(tokens) / 8
    for name in _ALPHABETIC:
        own = vocabulary(name)
        hits = sum(map(own.function_words.__contains__, tokens))
        if hits > most_hits:
            best, most_hits = own, hits
        if hits * 3 > len(tokens):
            break
    return best


@cache
def determiners() -> frozenset[str]:
    """Return the determiners of all languages that are pronouns elsewhere."""
    return frozenset().union(*(vocabulary(language).determiners for language in LANGUAGES))


@cache
def _denials() -> frozenset[str]:
    return frozenset().union(*(vocabulary(language).denials for language in LANGUAGES))


@cache
def vocabulary(language: str) -> Vocabulary:
    """Return the table of a language by its code, such as "en"."""
    file = resources.files("remanence.languages") / f"{language}.toml"
    table = tomllib.loads(file.read_text("utf-8"))
    cues = {use: table.pop(use) for use in _CUES if use in table}
    words = {
        key: frozenset(text if key == "small" else text.split()) for key, text in table.items()
    }
    drop, glue, weak = (words.get(key, frozenset()) for key in ("drop", "glue", "weak"))
    return Vocabulary(
        language=language, function_words=drop | glue, slight=glue | weak, cues=cues, **words
    )


def find_cue(text: str, use: str) -> re.Match[str] | None:
    """Return the first cue phrase of a text that has this use, as found in lower case."""
    return _pattern(use).search(text.replace("’", "'").casefold())


@cache
def _pattern(use: str) -> re.Pattern[str]:
    phrases: dict[str, str] = {}
    for language in LANGUAGES:
        edges = ("", "") if language in _GLUED else (r"(?<!\w)", r"(?!\w)")
        for phrase in vocabulary(language).cues.get(use, ()):
            phrases[phrase.casefold()] = re.escape(phrase.casefold()).join(edges)
    longest_first = sorted(phrases, key=len, reverse=True)
    return re.compile("|".join(phrases[phrase] for phrase in longest_first))
