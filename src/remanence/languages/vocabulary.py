"""Word tables per language: the role of each small word in a note."""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib import resources

_ALPHABETIC = ("en", "de", "es", "fr", "it", "nl", "pt", "tr", "vi")
_SCRIPTS: tuple[tuple[str, str], ...] = (
    ("ja", r"[\u3040-\u30ff]"),
    ("ko", r"[\uac00-\ud7af]"),
    ("zh", r"[\u4e00-\u9fff]"),
    ("ru", r"[\u0400-\u04ff]"),
    ("ar", r"[\u0600-\u06ff]"),
    ("hi", r"[\u0900-\u097f]"),
)
_SCRIPT_PATTERNS = tuple((name, re.compile(pattern)) for name, pattern in _SCRIPTS)
_WORD = re.compile(r"[^\W\d_]+(?:['’][^\W\d_]+)*")
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
        small: Function characters of a script without spaces.
        denials: Words that deny what follows them.
        lasting: Words that make a sentence hold from now on.
        light: Words that a plain clause may leave out, unless a value follows.
        function_words: `drop` and `glue` together.
        slight: `glue` and `weak` together.
    """

    language: str
    drop: frozenset[str] = frozenset()
    glue: frozenset[str] = frozenset()
    weak: frozenset[str] = frozenset()
    first: frozenset[str] = frozenset()
    second: frozenset[str] = frozenset()
    small: frozenset[str] = frozenset()
    denials: frozenset[str] = frozenset()
    lasting: frozenset[str] = frozenset()
    light: frozenset[str] = frozenset()
    function_words: frozenset[str] = frozenset()
    slight: frozenset[str] = frozenset()

    def is_lasting(self, text: str) -> bool:
        """Return whether a sentence has one of the `lasting` words."""
        if self.small or self.language == "ko":
            return any(word in text for word in self.lasting)
        own = f" {' '.join(_WORD.findall(text.lower()))} "
        return any(f" {word} " in own for word in self.lasting)


NO_VOCABULARY = Vocabulary(language="")


def vocabulary_of(text: str) -> Vocabulary:
    """Return the table of the language a text is written in, `NO_VOCABULARY` if none fits."""
    sample = text[:_SAMPLE_CHARS]
    if not sample.isascii():
        for name, pattern in _SCRIPT_PATTERNS:
            if len(pattern.findall(sample)) * 5 > len(sample):
                return _table(name)
    tokens = " ".join(_WORD.findall(sample)).lower().replace("’", "'").split(" ")
    best, most_hits = NO_VOCABULARY, len(tokens) / 8
    for name in _ALPHABETIC:
        function_words = _table(name).function_words
        hits = sum(map(function_words.__contains__, tokens))
        if hits > most_hits:
            best, most_hits = _table(name), hits
        if hits * 3 > len(tokens):
            break
    return best


def function_words(language: str) -> frozenset[str]:
    """Return the function words of a language by its code, such as "en"."""
    return _table(language).function_words


@cache
def _table(name: str) -> Vocabulary:
    file = resources.files("remanence.languages") / "words" / f"{name}.json"
    data: Mapping[str, str] = json.loads(file.read_text("utf-8"))
    sets = {
        key: frozenset(value if key == "small" else value.split("|" if key == "lasting" else None))
        for key, value in data.items()
    }
    return Vocabulary(
        language=name,
        function_words=sets.get("drop", frozenset()) | sets.get("glue", frozenset()),
        slight=sets.get("glue", frozenset()) | sets.get("weak", frozenset()),
        **sets,
    )
