"""The patterns of a language's table, each compiled on first use."""

import re
from dataclasses import dataclass
from functools import cache, cached_property

from remanence.dates.language import LETTERS, Language, Phrase
from remanence.dates.required_words import keywords, rare_words

_NAME = re.compile(r"\{([a-z_]+)\}")
_SPACE = r"(?:[ \t\u00a0]{1,3}|\n)"
_DIGITS = {"number": r"\d{1,3}", "day": r"\d{1,2}", "year": r"(?:19|20)\d\d"}
WORD = re.compile(f"[{LETTERS}]+")


@dataclass(frozen=True, kw_only=True, eq=False)
class Pattern:
    """A phrase of a language with its macros expanded."""

    language: Language
    text: str
    phrase: Phrase
    keywords: tuple[frozenset[str], ...]

    def may_match(self, window: str, words: frozenset[str]) -> bool:
        """Return whether `window`, which has `words` in lower case, may match."""
        if self.language.triggers:
            return not any(map(words.isdisjoint, self.keywords))
        return all(any(word in window for word in needed) for needed in self.keywords)

    @cached_property
    def regex(self) -> re.Pattern[str]:
        body = _NAME.sub(lambda name: self._slot(name[1]), self.text.replace(" ", _SPACE))
        language = self.language
        return re.compile(f"{language.left}(?:{body})(?:{language.right})", re.IGNORECASE)

    def _slot(self, name: str) -> str:
        """Return a group (named in dates) of the slot's digits, if any, and its words, longest first."""
        words = sorted(self.language.slots.get(name, ()), key=len, reverse=True)
        digits = [_DIGITS[name]] if name in _DIGITS else []
        strict = frozenset() if name.endswith("_any") else self.language.capital
        choice = "|".join(digits + [_spell(word, capital=word in strict) for word in words])
        return f"(?P<{name}>{choice})" if self.phrase.meaning else f"(?:{choice})"


@dataclass(frozen=True, kw_only=True, eq=False)
class Grammar:
    """The patterns and trigger words of a language."""

    language: Language
    patterns: tuple[Pattern, ...]
    trigger_words: frozenset[str]

    def may_be(self, text: str) -> bool:
        """Return whether the characters of `text` permit this language."""
        return bool(self._needs.search(text)) and not self._excludes.search(text)

    @cached_property
    def _needs(self) -> re.Pattern[str]:
        return re.compile(self.language.needs)

    @cached_property
    def _excludes(self) -> re.Pattern[str]:
        return re.compile(self.language.excludes)

    @cached_property
    def trigger(self) -> re.Pattern[str]:
        return re.compile(self.language.trigger)

    @cached_property
    def past(self) -> re.Pattern[str]:
        return re.compile(self.language.past, re.IGNORECASE)

    @cached_property
    def future(self) -> re.Pattern[str]:
        return re.compile(self.language.future, re.IGNORECASE)

    @cached_property
    def perfect(self) -> re.Pattern[str]:
        return re.compile(self.language.perfect, re.IGNORECASE)

    @cached_property
    def clause_end(self) -> re.Pattern[str]:
        return re.compile(self.language.clause_end)


def words_of(text: str) -> frozenset[str]:
    """Return the words of `text` in lower case."""
    return frozenset(WORD.findall(text.lower()))


@cache
def grammar_of(language: Language) -> Grammar:
    """Return the grammar of `language`, built once."""
    return Grammar(
        language=language,
        patterns=tuple(_pattern(language, phrase) for phrase in language.phrases),
        trigger_words=language.triggers and language.triggers | rare_words(language),
    )


def _pattern(language: Language, phrase: Phrase) -> Pattern:
    text = phrase.pattern
    while any(name in language.macros for name in _NAME.findall(text)):
        text = _NAME.sub(lambda name: language.macros.get(name[1], name[0]), text)
    return Pattern(language=language, text=text, phrase=phrase, keywords=keywords(language, text))


def _spell(word: str, *, capital: bool) -> str:
    if capital:
        return f"(?-i:{word.capitalize()}|{word.upper()})"
    return re.escape(word).replace(r"\ ", _SPACE).replace("'", "['’]")
