"""Mentions of forgotten texts in files that people maintain."""

import re
import unicodedata
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from typing import Final

from remanence.dates.language import languages
from remanence.languages.vocabulary import vocabulary_of
from remanence.notes.literals import NOUNS_IN_CAPITALS, find_literals
from remanence.notes.plain_text import contains_any, plain_text
from remanence.notes.terms import terms

_MIN_CHARACTERS: Final = 8
"""Minimum length of a text to search for: shorter ones match everywhere."""
_NUMBER: Final = re.compile(r"\d[\d ./()-]+\d")  # in groups, such as a phone number
_WORD: Final = re.compile(r"\w+")


@dataclass(frozen=True, slots=True, kw_only=True)
class Mentions:
    """Texts with their values, and words that may be names, all in plain form."""

    texts: frozenset[str]
    names: frozenset[str]

    def are_in(self, text: str) -> bool:
        """Return whether a text has one of the texts, or one of the names with a capital letter."""
        return contains_any(text, self.texts) or not self.names.isdisjoint(_capital_words(text))


def mentions_of(forgotten: Iterable[str]) -> Mentions:
    """Return what mentions the *forgotten* texts, as far as it is long enough to be searched for."""
    texts: set[str] = set()
    names: set[str] = set()
    for text in forgotten:
        are_nouns = vocabulary_of(text).language in NOUNS_IN_CAPITALS
        texts.update((text, *_NUMBER.findall(text), *_values(text, are_nouns=are_nouns)))
        # The first word of a sentence may be a name, too.
        names |= set() if are_nouns else _capital_words(text)
    return Mentions(
        texts=_searchable(map(plain_text, texts)), names=_searchable(filter(_is_name, names))
    )


def _values(text: str, *, are_nouns: bool) -> Iterator[str]:
    """Yield the literals of a text, without single words that may be nouns or are of a date."""
    for literal in find_literals(text):
        is_word = literal.kind == "name" and " " not in literal.text
        if not is_word or (_is_name(literal.text) and not are_nouns):
            yield literal.text


def _searchable(texts: Iterable[str]) -> frozenset[str]:
    return frozenset(text for text in texts if len(text) >= _MIN_CHARACTERS)


def _capital_words(text: str) -> set[str]:
    words = _WORD.findall(unicodedata.normalize("NFC", text))
    return {plain_text(word) for word in words if word[0].isupper()}


def _is_name(word: str) -> bool:
    """Return whether a word has content, other than that of a date."""
    return bool(terms(word) - _date_words())


@cache
def _date_words() -> frozenset[str]:
    words = (word for language in languages() for word in language.trigger_words)
    return frozenset(map(plain_text, words))
