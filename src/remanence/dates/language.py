"""The table of a language, read from its file in `languages/`: words, phrases and tenses."""

import re
import tomllib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import Any, NamedTuple

from remanence.dates import meanings
from remanence.dates.meanings import DateReading
from remanence.dates.periods import Period

LETTERS = r"0-9A-Za-z_\u00c0-\u024f\u0400-\u04ff"
"""Letters of the scripts with spaces; another script may follow directly, as particles do."""
_BEFORE_WORD = rf"(?<![{LETTERS}@#$\\])(?<!\w[.-])(?<!\d[,/])"
_AFTER_WORD = rf"(?![{LETTERS}(=\\]|\.(?-i:[a-z0-9_])|-\w)"
_NEVER = r"(?!)"
_LAST_RANK = 9
_INTEGER = re.compile(r"-?\d+")

Meaning = Callable[[DateReading], Period | None]


class Phrase(NamedTuple):
    """A pattern, its meaning, the slots whose values it implies, and a sentence that has it.

    `{name}` in a pattern is a slot or a macro of its language; a space matches short white space.
    A phrase without a meaning is a trap: it looks like a date but is not.
    """

    pattern: str
    meaning: Meaning | None
    implied: Mapping[str, int | str]
    sentence: str = ""
    dates: str = ""
    """The dates of the sentence, as rendered on Monday 2023-05-08."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Language:
    """A language as data.

    Attributes:
        name: The name of its file.
        slots: Values of words; a suffix after `_` in the name only distinguishes variants.
        phrases: Dates and traps. The rendering keeps the group `word`.
        macros: Parts of patterns, by name.
        render: Formats of a rendered date, by grain.
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
        clause: Patterns that find clauses and read their tense, with an alternative on each line.
    """

    name: str
    slots: Mapping[str, Mapping[str, int | str]]
    phrases: tuple[Phrase, ...]
    macros: Mapping[str, str]
    render: Mapping[str, str]
    months: tuple[str, ...]
    seasons: tuple[str, ...]
    triggers: frozenset[str]
    trigger: str
    code: str
    confusable: tuple[str, ...]
    rank: int
    capital: frozenset[str]
    needs: str
    excludes: str
    left: str
    right: str
    clause: Mapping[str, str]


@cache
def languages() -> tuple[Language, ...]:
    """Return all languages, each read once from its file."""
    files = (resources.files("remanence.dates") / "languages").iterdir()
    tables = {
        file.name.removesuffix(".toml"): file for file in files if file.name.endswith(".toml")
    }
    found = (_language(name, tomllib.loads(tables[name].read_text("utf-8"))) for name in tables)
    return tuple(sorted(found, key=lambda language: (language.rank, language.name)))


@cache
def language_of(name: str) -> Language:
    """Return the language of this name, English if there is none."""
    by_name = {language.name: language for language in languages()}
    return by_name.get(name, by_name["english"])


def _language(name: str, table: Mapping[str, Any]) -> Language:  # values of a TOML file
    words = {slot: _by_value(values) for slot, values in table.get("words", {}).items()}
    lines = table["phrases"]
    return Language(
        name=name,
        slots={
            slot: {word.lower(): value for value, each in values.items() for word in each}
            for slot, values in words.items()
        },
        phrases=(*_dates(lines["dates"]), *_traps(lines.get("traps", ""))),
        macros=table.get("macros", {})
        | {macro: _after(each) for macro, each in table.get("after", {}).items()},
        render=table.get("render", {}),
        months=tuple(each[0] for each in words.get("month", {}).values()),
        seasons=tuple(each[0] for each in words.get("season", {}).values()),
        triggers=frozenset(_words(table.get("triggers", ""))),
        code=table.get("code", ""),
        confusable=tuple(_words(table.get("confusable", ""))),
        rank=table.get("rank", _LAST_RANK),
        capital=frozenset(_words(table.get("capital", ""))),
        clause={name: text.strip("\n") for name, text in table.get("clause", {}).items()},
        **{key: table.get(key, default) for key, default in _PATTERNS.items()},
    )


_PATTERNS = {
    "trigger": "",
    "needs": "",
    "excludes": _NEVER,
    "left": _BEFORE_WORD,
    "right": _AFTER_WORD,
}
"""The patterns of a language, with those of a file that does not set them."""


def _words(text: str) -> list[str]:
    return text.split(", ") if text else []


def _by_value(values: Mapping[str, str]) -> dict[int | str, list[str]]:
    return {
        int(value) if _INTEGER.fullmatch(value) else value: _words(text)
        for value, text in values.items()
    }


def _after(text: str) -> str:
    """Return a pattern of the places after one of these words; a prefix ends in a hyphen."""
    words = (word if word.endswith("-") else rf"{word}\s" for word in _words(text))
    return "(?:" + "|".join(rf"(?<=\b{word})".replace(" ", r"\s") for word in words) + ")"


def _dates(lines: str) -> Iterator[Phrase]:
    """Yield phrases from lines of the form "pattern => meaning slot=value => sentence => dates"."""
    for line in filter(None, lines.splitlines()):
        pattern, meaning, *example = line.split(" => ")
        name, *settings = meaning.split()
        implied = dict(setting.split("=") for setting in settings)
        values = {k: int(v) if _INTEGER.fullmatch(v) else v for k, v in implied.items()}
        yield Phrase(pattern, getattr(meanings, name), values, *example)


def _traps(lines: str) -> Iterator[Phrase]:
    """Yield traps from lines of the form "pattern => sentence"."""
    for line in filter(None, lines.splitlines()):
        pattern, *example = line.split(" => ")
        yield Phrase(pattern, None, {}, *example)
