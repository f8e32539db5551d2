"""Extract the words that a pattern requires, so that most patterns need not be tried."""

import re
from collections.abc import Iterable, Mapping

LETTERS = r"0-9A-Za-z_\u00c0-\u024f\u0400-\u04ff"
"""Letters of the scripts with spaces; another script may follow directly, as particles do."""
WORD = re.compile(f"[{LETTERS}]+")

_WORD_SLOTS = ("unit", "minutes", "weekday", "month", "season", "shift")
"""Slots that match words only, never figures."""
_OPAQUE = "\0"
"""A placeholder for parts of a pattern that are neither plain words nor slots."""

_ESCAPE_OR_CLASS = re.compile(r"\\.|\[[^\]]*\]")
_GROUP = re.compile(r"\((\?(?:[=!]|<[=!])|)(?:\?:|\?P<\w+>)?([^()]*)\)[?*]?")
_SLOT = re.compile(r"\{([a-z_]+)\}(?![?*])")
_SPACED_WORD = re.compile(r"(?<![\w\0?{-])[^\W\d_]{2,}(?![\w\0?*}-])")
_UNSPACED_WORD = re.compile(r"[^\x00-\x7f]+(?![?*])")


def keywords(
    pattern: str, slots: Mapping[str, Iterable[str]], *, spaced: bool
) -> tuple[frozenset[str], ...]:
    """Return sets of words; every matching text has at least one word of each set.

    `pattern` has its macros expanded and has no alternatives outside groups.
    """
    outside = _ESCAPE_OR_CLASS.sub(_OPAQUE, pattern)
    while _GROUP.search(outside):
        outside = _GROUP.sub(_without_group, outside)
    needed = [
        slot_words(slots.get(slot, ()), spaced=spaced)
        for slot in _SLOT.findall(outside)
        if slot.split("_")[0] in _WORD_SLOTS
    ]
    word = _SPACED_WORD if spaced else _UNSPACED_WORD
    literals = word.findall(_SLOT.sub(_OPAQUE, outside))
    return (*needed, *(frozenset({literal}) for literal in literals))


def slot_words(phrases: Iterable[str], *, spaced: bool) -> frozenset[str]:
    """Return the words of a slot, split like the words of a text in scripts with spaces."""
    if not spaced:
        return frozenset(phrases)
    return frozenset(word for phrase in phrases for word in WORD.findall(phrase))


def _without_group(group: re.Match[str]) -> str:
    """Replace a group with a gap that splits a word only if the group could continue it."""
    looks_around, inside = group.groups()
    if looks_around:
        return " "
    return (" " if inside.startswith(" ") else _OPAQUE) + (" " if inside.endswith(" ") else _OPAQUE)
