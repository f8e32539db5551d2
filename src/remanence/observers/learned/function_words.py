"""Function words by language: pronouns, negations, question words, numbers and the like.

`languages/<code>.txt` has a line `class: words` per class; the classes are the same in every
language, so that one language teaches the others. `_` in a word is a space, `-x` the end of a
word, `x-` its beginning. `script: FROM-TO` names the code points of a script that belongs to the
language, `spaces: no` a script without spaces, where words are found anywhere in the text.
"""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import cache
from importlib import resources

from remanence.languages.letters import LETTER

Classes = tuple[str, ...]

WORD = re.compile(rf"{LETTER}+(?:['’]{LETTER}+)*|\d+(?:[.,:/-]\d+)*|[^\w\s]|_")
"""A word, a number with its marks, or a single sign."""

_APOSTROPHE = re.compile("['’]")
_MAX_AFFIX = 4
_MIN_SHARE = 0.1
"""Of the characters of a text, for a script to decide its language."""


@dataclass(frozen=True, slots=True, eq=False)
class Language:
    """The function words of a language."""

    code: str
    words: dict[str, Classes]
    ends: dict[str, Classes]
    beginnings: dict[str, Classes]
    script: re.Pattern[str] | None
    anywhere: re.Pattern[str] | None
    """Finds the words of a script without spaces."""
    _known: dict[str, Classes] = field(default_factory=dict)

    def is_subject(self, word: str, name: str) -> bool:
        """Return whether a word in lower case is the pronoun of a class as a subject: "I", not "me".

        That is the first word of the class in the language's file.
        """
        subject = next((known for known, found in self.words.items() if name in found), None)
        return _APOSTROPHE.split(word)[0] == subject

    def tag(self, text: str, words: Sequence[str]) -> list[tuple[str, Classes]]:
        """Tokens of a lower-case text with their classes; *words* are its words by `WORD`."""
        if self.anywhere is not None:
            return self._tag_anywhere(text, self.anywhere)
        known, pairs = self._known, self.words
        tagged = []
        before = previous = ""
        for word in words:
            classes = known.get(word)
            if classes is None:
                classes = known[word] = self._classes(word)
            more = pairs.get(f"{before}-{word}" if previous == "-" else f"{previous} {word}")
            tagged.append((word, classes + more if more else classes))
            before, previous = previous, word
        return tagged

    def _classes(self, word: str) -> Classes:
        found = self.words.get(word, ())
        if not found and "'" in word:
            head, _, tail = word.partition("'")
            found = self.words.get(head, ()) + self.words.get(tail, ())
        if found or not word[0].isalpha():
            return found
        for size in range(1, min(_MAX_AFFIX, len(word) - 2) + 1):
            found += self.ends.get(word[-size:], ()) + self.beginnings.get(word[:size], ())
        return found

    def _tag_anywhere(self, text: str, anywhere: re.Pattern[str]) -> list[tuple[str, Classes]]:
        tagged: list[tuple[str, Classes]] = []
        position = 0
        for match in anywhere.finditer(text):
            if match.start() > position:
                tagged.append((text[position : match.start()], ()))
            if not match[0].isspace():
                tagged.append((match[0], self.words.get(match[0], ())))
            position = match.end()
        if position < len(text):
            tagged.append((text[position:], ()))
        return tagged


def lower_words(text: str) -> list[str]:
    """The words of a text by `WORD`, in lower case."""
    return [word.lower() for word in WORD.findall(text)]


def language_of(text: str, words: Iterable[str] | None = None) -> Language:
    """The language of a text: by its script, else by the share of its *words* that are known."""
    if not text.isascii():
        for language in languages():
            script = language.script
            if script and len(script.findall(text)) > _MIN_SHARE * len(text):
                return language
    words = lower_words(text) if words is None else words
    plain = [language for language in languages() if language.script is None]
    return max(plain, key=lambda language: sum(map(language.words.__contains__, words)))


def likely_languages(text: str, words: Sequence[str]) -> list[Language]:
    """The language of a text, and others that know as many of its *words*: a question may have two."""
    first = language_of(text, words)
    if first.script:
        return [first]
    known = sum(map(first.words.__contains__, words))
    plain = (language for language in languages() if language.script is None)
    return [each for each in plain if sum(map(each.words.__contains__, words)) == known]


@cache
def languages() -> tuple[Language, ...]:
    """All languages that have a file, by code."""
    folder = resources.files(__package__) / "languages"
    files = sorted((f for f in folder.iterdir() if f.name.endswith(".txt")), key=lambda f: f.name)
    return tuple(parse(f.name.removesuffix(".txt"), f.read_text("utf-8")) for f in files)


def parse(code: str, text: str) -> Language:
    """Read the file of a language."""
    fields = dict(line.split(": ", 1) for line in text.splitlines())
    script = fields.pop("script", None)
    spaced = fields.pop("spaces", "yes") == "yes"
    tables: tuple[dict[str, Classes], ...] = ({}, {}, {})
    words, ends, beginnings = tables
    for name, entries in fields.items():
        for entry in entries.split():
            word = entry.strip("-").replace("_", " ") or entry
            table = ends if entry[0] == "-" else beginnings if entry[-1] == "-" else words
            table[word] = (*table.get(word, ()), name)
    return Language(
        code=code,
        words=words,
        ends=ends,
        beginnings=beginnings,
        script=_script(script) if script else None,
        anywhere=None if spaced else _anywhere(words),
    )


def _script(span: str) -> re.Pattern[str]:
    first, last = (chr(int(point, 16)) for point in span.split("-"))
    return re.compile(f"[{first}-{last}]")


def _anywhere(words: Iterable[str]) -> re.Pattern[str]:
    longest_first = sorted(words, key=lambda word: (-len(word), word))
    known = "|".join(map(re.escape, longest_first))
    return re.compile(rf"{known}|\d+(?:[.,:/-]\d+)*|[a-z]+|[^\w\s]|\s+")
