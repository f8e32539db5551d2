"""The patterns of a language's table, each compiled on first use."""

import re
from dataclasses import dataclass
from functools import cache, cached_property
from typing import NamedTuple

from remanence.dates.language import LETTERS, Language, Phrase, language_of, languages
from remanence.dates.required_words import keywords, rare_words
from remanence.languages.vocabulary import vocabulary

_NAME = re.compile(r"\{([a-z_]+)\}")
_SPACE = r"(?:[ \t\u00a0]{1,3}|\n)"
_DIGITS = {"number": r"\d{1,3}", "day": r"\d{1,2}", "year": r"(?:19|20)\d\d"}
_NEVER = r"(?!)"
_CLAUSE_END = r"[.!?;,:\n]"
_TENSE_CUES = ("birth", "future", "past", "present")
WORD = re.compile(f"[{LETTERS}]+")


class ClausePatterns(NamedTuple):
    """Patterns that find clauses and read their tense."""

    end: re.Pattern[str]
    tense: re.Pattern[str]
    """Verbs and other words, in groups by the tense that they give."""
    perfect: re.Pattern[str]
    arranging: re.Pattern[str]
    """Verbs whose date, though they are past, may be ahead: "booked"."""
    yearly: re.Pattern[str]
    """Words for what returns every year: "birthday"."""
    weekly: re.Pattern[str]
    """Words for a habit: "usually"."""
    target: re.Pattern[str]
    """A word before a date at which something aims: "for", "until"."""
    target_after: re.Pattern[str]


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
    """The patterns and words of a language."""

    language: Language

    @cached_property
    def patterns(self) -> tuple[Pattern, ...]:
        return tuple(_pattern(self.language, phrase) for phrase in self.language.phrases)

    @cached_property
    def trigger_words(self) -> frozenset[str]:
        """Words that may signal a date; none for a script without spaces."""
        words = self.language.triggers
        return words and words | rare_words(self.language)

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
    def known_words(self) -> frozenset[str]:
        """The function words of the language and those that may signal a date."""
        code = self.language.code
        return self.trigger_words | (vocabulary(code).function_words if code else frozenset())

    @cached_property
    def trigger(self) -> re.Pattern[str]:
        return re.compile(self.language.trigger)

    @cached_property
    def clause(self) -> ClausePatterns:
        """The patterns of clauses, compiled together."""
        cues = {name: "|".join(text.split("\n")) for name, text in self.language.clause.items()}
        tense = "|".join(f"(?P<{name}>{cues[name]})" for name in _TENSE_CUES if name in cues)
        before = rf"\b(?:{cues['target']})\s{{1,2}}$" if "target" in cues else _NEVER
        texts = {**dict.fromkeys(ClausePatterns._fields, _NEVER), "end": _CLAUSE_END, **cues}
        texts |= {"tense": tense or _NEVER, "target": before}
        return ClausePatterns(
            **{name: re.compile(texts[name], re.IGNORECASE) for name in ClausePatterns._fields}
        )


def fold(text: str) -> str:
    """Return `text` in lower case, a Turkish capital as one letter too."""
    return text.lower().replace("i\u0307", "i")


def words_of(text: str) -> frozenset[str]:
    """Return the words of `text` in lower case."""
    return frozenset(WORD.findall(fold(text)))


def _pattern(language: Language, phrase: Phrase) -> Pattern:
    text = phrase.pattern
    while any(name in language.macros for name in _NAME.findall(text)):
        text = _NAME.sub(lambda name: language.macros.get(name[1], name[0]), text)
    return Pattern(language=language, text=text, phrase=phrase, keywords=keywords(language, text))


def _spell(word: str, *, capital: bool) -> str:
    if capital:
        return f"(?-i:{word.capitalize()}|{word.upper()})"
    return re.escape(word).replace(r"\ ", _SPACE).replace("'", "['’]")


@cache
def grammar_of(name: str) -> Grammar:
    """Return the grammar of a language by its name."""
    return Grammar(language=language_of(name))


@cache
def grammars() -> tuple[Grammar, ...]:
    """Return the grammars of all languages, in their order."""
    return tuple(grammar_of(language.name) for language in languages())
