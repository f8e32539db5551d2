"""Languages, each read from its file in `languages/`: words and phrases."""

import re
import tomllib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache, cached_property
from importlib import resources
from typing import Any, NamedTuple

from remanence.dates import meanings
from remanence.dates.clause import ClauseWords, clause_words
from remanence.dates.meanings import DateReading
from remanence.dates.periods import Period
from remanence.languages.vocabulary import vocabulary

LETTERS = r"0-9A-Za-z_\u00c0-\u024f\u0400-\u04ff"
"""Letters of the scripts with spaces; another script may follow directly, as particles do."""
WORD = re.compile(f"[{LETTERS}]+")
_NEVER = r"(?!)"
_INTEGER = re.compile(r"-?\d+")
_NAME = re.compile(r"\{([a-z_]+)\}")
_SPACE = r"(?:[ \t\u00a0]{1,3}|\n)"
_FIGURE = r"\d(?!\d?(?:[:.h]\d\d|\s?(?:[ap]m|[hu]|uhr|uur)\b))"
"""A figure that may be the year of the day before it, not the time: "5 March 20"."""
_DIGITS = {"number": r"\d{1,3}", "day": r"\d{1,2}", "year": r"(?:19|20)\d\d"}
_LISTS = {"triggers", "confusable", "capital"}
_PATTERNS = {"trigger", "needs", "excludes", "particle"}
_RARE_SLOTS = ("unit", "minutes", "weekday", "month", "season")
"""Slots whose words are rare enough to signal a date."""

Meaning = Callable[[DateReading], Period | None]


class Phrase(NamedTuple):
    """A pattern, its meaning, the slots whose values it implies, and a sentence that has it.

    `{name}` in a pattern is a slot of its language; a space matches short white space.
    A phrase without a meaning is a trap: it looks like a date but is not. With `clause=1` among the
    implied values it is a date only where its clause lies ahead.
    """

    pattern: str
    meaning: Meaning | None
    implied: Mapping[str, int | str]
    sentence: str = ""
    dates: str = ""
    """The dates of the sentence, as rendered on Monday 2023-05-08."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Language:
    """A language as data; its patterns are compiled on first use.

    Attributes:
        name: The name of its file.
        slots: Values of words; a suffix after `_` in the name only distinguishes variants.
        phrases: Dates and traps. The rendering keeps the group `word`.
        render: Formats of a rendered date, by grain.
        note: Formats of a date in a note, by grain, and that of a year other than the note's.
        months: Names of the months for the rendering, if it has any.
        seasons: Names of the seasons for the rendering, from spring on.
        triggers: Words, besides those of slots, that may signal a date in a script with spaces.
        trigger: A pattern in place of `triggers`, for scripts without spaces.
        code: Code of its function words, if texts may be confused with another language.
        confusable: Names of the languages with some of the same words.
        rank: Place among the languages; of two that fit alike the first is taken.
        capital: Words that are dates only if capitalised, unless the slot ends in `_any`.
        needs: A pattern of characters that every text in this language has.
        excludes: A pattern of characters that no text in this language has.
        left: A pattern that holds where a phrase begins.
        right: A pattern that holds where a phrase ends.
        particle: A pattern of what may precede the words of a date, but would govern the date.
        clause: Words that tell a time ahead from one that is over or only lasts, and words of habits.
        is_monday_first: Weeks begin on Monday in all countries where it is the language of most.
        has_capital_nouns: Its nouns are capitalised, and often the first of several date words too.
    """

    name: str
    slots: Mapping[str, Mapping[str, int | str]]
    phrases: tuple[Phrase, ...]
    months: tuple[str, ...]
    seasons: tuple[str, ...]
    clause: ClauseWords
    render: Mapping[str, str] = field(default_factory=dict)
    note: Mapping[str, str] = field(default_factory=dict)
    triggers: frozenset[str] = frozenset()
    trigger: re.Pattern[str] = re.compile("")
    code: str = ""
    confusable: frozenset[str] = frozenset()
    rank: int = 9
    capital: frozenset[str] = frozenset()
    needs: re.Pattern[str] = re.compile("")
    excludes: re.Pattern[str] = re.compile(_NEVER)
    left: str = rf"(?<![{LETTERS}@#$\\])(?<!\w[.-])(?<!\d[,/])"
    right: str = rf"(?![{LETTERS}(=\\]|\.(?-i:[a-z0-9_])|-\w)"
    particle: re.Pattern[str] = re.compile(_NEVER)
    is_monday_first: bool = False
    has_capital_nouns: bool = False

    @cached_property
    def patterns(self) -> "tuple[PhrasePattern, ...]":
        return tuple(PhrasePattern(language=self, phrase=phrase) for phrase in self.phrases)

    @cached_property
    def trigger_words(self) -> frozenset[str]:
        """Words that may signal a date; none for a script without spaces."""
        rare = (
            WORD.findall(phrase)
            for name, phrases in self.slots.items()
            if name.split("_")[0] in _RARE_SLOTS
            for phrase in phrases
        )
        return self.triggers and self.triggers.union(*rare)

    @cached_property
    def known_words(self) -> frozenset[str]:
        """The function words of the language and those that may signal a date."""
        small = vocabulary(self.code).function_words if self.code else frozenset()
        return self.trigger_words | small

    def may_be(self, text: str) -> bool:
        """Return whether the characters of `text` permit this language."""
        return bool(self.needs.search(text)) and not self.excludes.search(text)


@dataclass(frozen=True, kw_only=True, eq=False)
class PhrasePattern:
    """The pattern of a phrase in its language."""

    language: Language
    phrase: Phrase

    @cached_property
    def regex(self) -> re.Pattern[str]:
        pattern = self.phrase.pattern.replace(" ", _SPACE)
        body = _NAME.sub(lambda name: self._slot(name[1]), pattern)
        language = self.language
        return re.compile(f"{language.left}(?:{body})(?:{language.right})", re.IGNORECASE)

    def _slot(self, name: str) -> str:
        """Return a group (named in dates) of the slot's digits, if any, and its words, longest first."""
        words = sorted(self.language.slots.get(name, ()), key=len, reverse=True)
        choices = [_DIGITS[name]] if name in _DIGITS else []
        for word in words:
            if word in self.language.capital and not name.endswith("_any"):
                choices.append(f"(?-i:{word.capitalize()}|{word.upper()})")
            else:
                choices.append(re.escape(word).replace(r"\ ", _SPACE).replace("'", "['’]"))
        return f"(?{f'P<{name}>' if self.phrase.meaning else ':'}{'|'.join(choices)})"


def fold(text: str) -> str:
    """Return `text` in lower case, a Turkish capital as one letter too."""
    return text.lower().replace("i\u0307", "i")


def words_of(text: str) -> frozenset[str]:
    """Return the words of `text` in lower case."""
    return frozenset(WORD.findall(fold(text)))


@cache
def languages() -> tuple[Language, ...]:
    """Return all languages, each read once from its file."""
    files = (resources.files("remanence.dates") / "languages").iterdir()
    tables = {file.name: file for file in files if file.name.endswith(".toml")}
    found = (
        _language(name.removesuffix(".toml"), tomllib.loads(tables[name].read_text("utf-8")))
        for name in tables
    )
    return tuple(sorted(found, key=lambda language: (language.rank, language.name)))


@cache
def language_of(name: str) -> Language:
    """Return the language of this name."""
    return next(language for language in languages() if language.name == name)


def _language(name: str, table: dict[str, Any]) -> Language:  # values of a TOML file
    words = {
        slot: {_value(value): _words(text) for value, text in values.items()}
        for slot, values in table.pop("words", {}).items()
    }
    macros = {"figure": _FIGURE, **table.pop("macros", {})}
    lines = {kind: _expand(text, macros) for kind, text in table.pop("phrases").items()}
    clause = {kind: _expand(text, macros) for kind, text in table.pop("clause", {}).items()}
    is_verb_last = table.pop("is_verb_last", False)
    lists = {key: frozenset(_words(table[key])) for key in _LISTS & table.keys()}
    patterns = {key: re.compile(table[key], re.IGNORECASE) for key in _PATTERNS & table.keys()}
    return Language(
        name=name,
        slots={
            slot: {word.lower(): value for value, each in values.items() for word in each}
            for slot, values in words.items()
        },
        phrases=(*_dates(lines["dates"]), *_traps(lines.get("traps", ""))),
        months=tuple(each[0] for each in words.get("month", {}).values()),
        seasons=tuple(each[0] for each in words.get("season", {}).values()),
        clause=clause_words(clause, is_spaced="triggers" in table, is_verb_last=is_verb_last),
        **table | lists | patterns,
    )


def _expand(text: str, macros: Mapping[str, str]) -> str:
    """Replace the `{name}` of each macro, which may have others in it."""
    while any(name in macros for name in _NAME.findall(text)):
        text = _NAME.sub(lambda name: macros.get(name[1], name[0]), text)
    return text


def _words(text: str) -> list[str]:
    return text.split(", ") if text else []


def _value(text: str) -> int | str:
    return int(text) if _INTEGER.fullmatch(text) else text


def _dates(lines: str) -> Iterator[Phrase]:
    """Yield phrases from lines of the form "pattern => meaning slot=value => sentence => dates"."""
    for line in filter(None, lines.splitlines()):
        pattern, meaning, *example = line.split(" => ")
        name, *settings = meaning.split()
        implied = dict(setting.split("=") for setting in settings)
        values = {slot: _value(text) for slot, text in implied.items()}
        yield Phrase(pattern, getattr(meanings, name), values, *example)


def _traps(lines: str) -> Iterator[Phrase]:
    """Yield traps from lines of the form "pattern => sentence"."""
    for line in filter(None, lines.splitlines()):
        pattern, *example = line.split(" => ")
        yield Phrase(pattern, None, {}, *example)
