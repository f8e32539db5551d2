"""Extract the words that a pattern requires, so that most patterns need not be tried."""

import re
from collections.abc import Iterator

from remanence.dates.language import LETTERS, Language

_RARE_SLOTS = ("unit", "minutes", "weekday", "month", "season")
"""Slots whose words are rare enough to signal a date."""
_WORD_SLOTS = (*_RARE_SLOTS, "shift")
"""Slots that match words only, never figures."""
_OPAQUE = "\0"
"""A placeholder for parts of a pattern that are neither plain words nor slots."""

_ESCAPE_OR_CLASS = re.compile(r"\\.|\[[^\]]*\]")
_CHOICE = re.compile(r"\((?:\?:|\?P<\w+>)([^\W\d_]+(?:\|[^\W\d_]+)*)\)(?![?*])")
_GROUP = re.compile(r"\((\?(?:[=!]|<[=!])|)(?:\?:|\?P<\w+>)?([^()]*)\)[?*]?")
_SLOT = re.compile(r"\{([a-z_]+)\}(?![?*])")
_SPACED_WORD = re.compile(r"(?<![\w\0?{-])[^\W\d_]{2,}(?![\w\0?*}-])")
_UNSPACED_WORD = re.compile(r"[^\x00-\x7f]+(?![?*])")
_WORD = re.compile(f"[{LETTERS}]+")


def keywords(language: Language, pattern: str) -> tuple[frozenset[str], ...]:
    """Return sets of words; every matching text has at least one word of each set.

    `pattern` has its macros expanded and has no alternatives outside groups.
    """
    plain = _ESCAPE_OR_CLASS.sub(_OPAQUE, pattern)
    outside = plain
    while _GROUP.search(outside):
        outside = _GROUP.sub(_without_group, outside)
    if "|" in outside:
        return ()
    return tuple(_sets(language, plain, outside))


def rare_words(language: Language) -> frozenset[str]:
    """Return the words of the language's slots that signal a date."""
    names = (name for name in language.slots if _kind(name) in _RARE_SLOTS)
    return frozenset(word for name in names for word in _slot_words(language, name))


def _without_group(group: re.Match[str]) -> str:
    """Replace a group with a gap that splits a word only if the group could continue it."""
    looks_around, inside = group.groups()
    if looks_around:
        return " "
    return (" " if inside.startswith(" ") else _OPAQUE) + (" " if inside.endswith(" ") else _OPAQUE)


def _sets(language: Language, plain: str, outside: str) -> Iterator[frozenset[str]]:
    for slot in _SLOT.finditer(outside):
        if _kind(slot[1]) in _WORD_SLOTS:
            yield _slot_words(language, slot[1])
    word = _SPACED_WORD if language.triggers else _UNSPACED_WORD
    for literal in word.findall(_SLOT.sub(_OPAQUE, outside)):
        yield frozenset({literal})
    for choice in _CHOICE.finditer(plain):
        if _is_separate(plain, choice):
            yield frozenset(choice[1].split("|"))


def _is_separate(pattern: str, choice: re.Match[str]) -> bool:
    """Return whether the choice is neither inside another group nor part of a word."""
    before, after = pattern[: choice.start()], pattern[choice.end() :]
    return (
        before.count("(") == before.count(")")
        and before[-1:] in {"", " "}
        and after[:1] in {"", " "}
    )


def _slot_words(language: Language, name: str) -> frozenset[str]:
    """Return the words of a slot, split like the words of a text in scripts with spaces."""
    phrases = language.slots.get(name, {})
    if not language.triggers:
        return frozenset(phrases)
    return frozenset(word for phrase in phrases for word in _WORD.findall(phrase))


def _kind(slot: str) -> str:
    return slot.split("_")[0]
