"""A language's table as compiled patterns."""

import re
from dataclasses import dataclass
from functools import cache

from remanence.observing.dates.language import Language, Rule

_NAME = re.compile(r"\{([a-z_]+)\}")
_SPACE = r"(?:[ \t\u00a0]{1,3}|\n)"
_DIGITS = {"number": r"\d{1,3}", "day": r"\d{1,2}", "year": r"(?:19|20)\d\d", "monthnumber": r"\d{1,2}"}
_TELLING_SLOTS = ("unit", "minutes", "weekday", "weekdays", "month", "season")
"""Slots whose words are rare enough to say that a rule can be skipped when a text has none of them."""
_WORD = re.compile(r"\w+")


@dataclass(frozen=True, slots=True)
class CompiledRule:
    """A pattern, its rule (none for a trap) and the sets of words of each of which a matching text holds one."""

    pattern: re.Pattern[str]
    rule: Rule | None
    needed_words: tuple[frozenset[str], ...]

    def may_match(self, words: frozenset[str]) -> bool:
        return not any(needed.isdisjoint(words) for needed in self.needed_words)


@dataclass(frozen=True, slots=True, kw_only=True)
class Grammar:
    """What the search needs of a language."""

    language: Language
    rules: tuple[CompiledRule, ...]
    trigger_words: frozenset[str]
    trigger: re.Pattern[str]
    past: re.Pattern[str]
    future: re.Pattern[str]
    perfect: re.Pattern[str]
    clause_end: re.Pattern[str]

    def may_match(self, text: str, words: frozenset[str]) -> bool:
        """Whether `text`, which holds `words` in lower case, is worth searching."""
        if self.trigger_words:
            return not self.trigger_words.isdisjoint(words)
        return self.trigger.search(text) is not None


def words_of(text: str) -> frozenset[str]:
    return frozenset(_WORD.findall(text.lower()))


@cache
def compiled(language: Language) -> Grammar:
    """The grammar of `language`, made once."""
    rules = [_compiled(language, rule.pattern, rule) for rule in language.rules]
    traps = [_compiled(language, trap, None) for trap in language.traps]
    return Grammar(
        language=language,
        rules=(*rules, *traps),
        trigger_words=_trigger_words(language),
        trigger=re.compile(language.trigger),
        past=re.compile(language.past, re.IGNORECASE),
        future=re.compile(language.future, re.IGNORECASE),
        perfect=re.compile(language.perfect, re.IGNORECASE),
        clause_end=re.compile(language.clause_end),
    )


def _compiled(language: Language, pattern: str, rule: Rule | None) -> CompiledRule:
    while any(name in language.macros for name in _NAME.findall(pattern)):
        pattern = _NAME.sub(lambda name: language.macros.get(name[1], name[0]), pattern)
    names = _NAME.findall(pattern)
    body = _NAME.sub(
        lambda name: f"({f'?P<{name[1]}>' if rule else '?:'}{_words(language, name[1])})",
        pattern.replace(" ", _SPACE),
    )
    needed = [_words_of_slot(language, name) for name in names if _is_telling(name) and rule]
    return CompiledRule(
        re.compile(f"{language.left}(?:{body})(?:{language.right})", re.IGNORECASE),
        rule,
        tuple(needed) if language.trigger_words else (),
    )


def _words(language: Language, name: str) -> str:
    """What may fill a slot: digits if it takes any, then its words, the longest first."""
    words = sorted(language.slots.get(name, ()), key=len, reverse=True)
    digits = [_DIGITS[name]] if name in _DIGITS else []
    strict = language.capital if not name.endswith("_any") else frozenset()
    return "|".join(digits + [_word(word, capital=word in strict) for word in words])


def _word(word: str, *, capital: bool) -> str:
    if capital:
        return f"(?-i:{word.capitalize()}|{word.upper()})"
    return re.escape(word).replace(r"\ ", _SPACE).replace("'", "['’]")


def _is_telling(name: str) -> bool:
    return name.split("_")[0] in _TELLING_SLOTS


def _words_of_slot(language: Language, name: str) -> frozenset[str]:
    return frozenset(_WORD.findall(" ".join(language.slots[name])))


def _trigger_words(language: Language) -> frozenset[str]:
    if not language.trigger_words:
        return frozenset()
    telling = [_words_of_slot(language, name) for name in language.slots if _is_telling(name)]
    return language.trigger_words.union(*telling)
