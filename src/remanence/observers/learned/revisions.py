"""Score of what a user says after a reply: that it gives an earlier statement of theirs another value.

The words are compared with the statement and the reply by their numbers, weekdays and months, by
what they share, and by the classes of their function words. No word of content is a feature.
"""

import re
from collections.abc import Iterator, Mapping
from functools import lru_cache
from itertools import pairwise, product
from math import inf
from typing import NamedTuple

from remanence.observers.learned.features import (
    QUESTION,
    UNSPACED,
    level,
    symbol_of,
    tag,
    word_grams,
)
from remanence.observers.learned.function_words import WORD
from remanence.observers.learned.pairs import Groups, score_of_groups

FILE = "revisions.bin"
REVISES = "revises"
"""The head: that the words give the statement another value."""

MAX_BACK = 8
"""Messages back to the first whose statement the words may revise."""

MAX_SECONDS = 2 * 3600
"""Age of such a statement when the words are said, if both have a time."""

_DATES = ("weekday", "month")
_KINDS = ("number", *_DATES)
_STEM = 4
"""Letters of a weekday or a month that are the same with any ending: "Freitag", "freitags"; also
those of a word that both texts have, so that it is more than an article."""
_MAX_NEW = 2
"""Words of content beside another value where the words share none with the statement."""
_VERBS = frozenset({"be", "was", "will", "have", "had"})
"""Classes of verbs whose subject stands before them."""
_DAY, _MAX_DAY = "month", 31
_UNITS = frozenset({"unit", _DAY})
"""Classes of what a number counts: "3 hours", "3 May"."""
_SHORT = re.compile(r"\d{1,2}")  # no "②", which is a digit as well
_UNCOUNTED = re.compile(r"[.,]\d{1,2}$|\D")
_NUMBER = re.compile(r"\d+(?::\d+)+|\d+(?:(?:[.,]|[\s/()-]{1,3})\d+(?![\d:]))*")
"""A time, or a number in any groups of digits: "079 123 45 67", "120 000"."""
_MAX_MORE_DIGITS = 4
"""By how many digits, without decimals, values of one thing differ: no flat 14 becomes 0785512340.

Zeros at the end may count or not: 2 million becomes 1800000.
"""
_PAUSE = re.compile(r"[,;،؛](?=\s)|[，、；]|\s[-–—]\s|[.!]\s")
_PLACES = 8
"""Tokens at the beginning whose order counts."""

_HEAD = re.compile(r"([^\s:：]{1,30}(?: [^\s:：]{1,30})?)[:：](?!\d)")
"""One or two words before a colon, as before an item; more may say a time: "Lunch on 3 May: …"."""
_ORDINAL = re.compile(r"\d+|\b\w\b")
"""What tells one item of a list from another in the words before its colon."""


class _Text(NamedTuple):
    """A text: its values by kind, units of numbers, words of content with their parts, and features.

    The `subjects` are words of content behind "my" or before "is", "has", "will" and the like.
    """

    values: Mapping[str, frozenset[str]]
    units: Mapping[str, str]
    content: frozenset[str]
    subjects: frozenset[str]
    grams: frozenset[str]
    traits: tuple[str, ...]
    order: tuple[str, ...]
    digits: Mapping[str, str]
    """Digits without decimals of the number to which a group of digits belongs."""


def score_of_revision(earlier: str, reply: str, words: str) -> float:
    """Return how far the score is above its cutoff; *reply* is the end of the message between.

    Words give a statement another value only if they have another number, weekday or month where it
    has one, and say little else and no subject of their own, or another word beside one of its own. A
    number of another unit, or of many more or fewer digits, is none. The next item of a list revises
    none before it.
    """
    said, own = _read(earlier), _read(words)
    if not _has_other_value(said, words) or _is_parallel(said, own) or _are_items(earlier, words):
        return -inf
    return score_of_groups(revision_features(earlier, reply, words), FILE)


def digits_apart(earlier: str, words: str) -> int:
    """Return how many more or fewer digits another number in the words has than one of a statement.

    It is the fewest of all their numbers, and 0 if one of the texts has none.
    """
    said, own = ({*_read(text).digits.values()} for text in (earlier, words))
    pairs = product(map(len, said), map(len, own - said))
    return min((abs(one - other) for one, other in pairs), default=0)


def _has_other_value(said: _Text, words: str) -> bool:
    own = _read(words)
    if _named_again(said, own):
        return bool(own.content - said.content) or _has_other_date_or_number(said, own)
    for end in (*(pause.start() for pause in _PAUSE.finditer(words)), len(words)):
        if _has_other_date_or_number(said, until := _read(words[:end])):
            new = until.content - said.content
            return len(new) <= _MAX_NEW and new.isdisjoint(until.subjects)
    return False


def _has_other_date_or_number(said: _Text, own: _Text) -> bool:
    if any(said.values[kind] and own.values[kind] - said.values[kind] for kind in _DATES):
        return True
    pairs = product(said.values["number"], own.values["number"] - said.values["number"])
    return any(
        _may_replace((number, said.units.get(number)), (other, own.units.get(other)))
        and _are_alike(said.digits.get(number), own.digits.get(other))
        for number, other in pairs
    )


def _may_replace(*numbers: tuple[str, str | None]) -> bool:
    """Return whether numbers with their units may be values of one thing.

    A number of another unit, or above 31, is no time of day and no day of a month.
    """
    if any(_is_time(*one) for one in numbers):
        return all(_is_time(*one) or _may_be_time(*one) for one in numbers)
    units = {unit for _, unit in numbers}
    return None in units or len(units) == 1


def _are_alike(*digits: str | None) -> bool:
    """Return whether numbers are about as long, with or without zeros at their ends; words always are."""
    one, other = digits
    if one is None or other is None:
        return True
    pairs = ((one, other), (one.rstrip("0"), other.rstrip("0")))
    return min(abs(len(a) - len(b)) for a, b in pairs) <= _MAX_MORE_DIGITS


def _is_time(number: str, unit: str | None) -> bool:
    return ":" in number or unit == _DAY


def _may_be_time(number: str, unit: str | None) -> bool:
    is_small = not number[0].isdigit() or (_SHORT.fullmatch(number) and int(number) <= _MAX_DAY)
    return unit is None and bool(is_small)


def _named_again(said: _Text, own: _Text) -> list[str]:
    shared = said.content & own.content
    return [word for word in shared if len(word) >= _STEM or UNSPACED.match(word)]


def _is_parallel(said: _Text, own: _Text) -> bool:
    """Return whether words say the same of another thing: "my work phone", "my home phone"."""
    left_out, new = said.content - own.content, own.content - said.content
    if len(_named_again(said, own)) < max(1, len(left_out)):
        return False
    pairs = [(said.values[kind], own.values[kind]) for kind in _KINDS]
    others = [min(len(theirs - mine), len(mine - theirs)) for theirs, mine in pairs]
    return sum(others) + min(len(left_out), len(new)) > 1 and any(others)


def _are_items(*texts: str) -> bool:
    """Return whether texts are items with other numbers or letters: "Picture 1: …", "Picture 2: …"."""
    heads = [found[1].casefold() for text in texts if (found := _HEAD.match(text))]
    kinds = {_ORDINAL.sub("#", head) for head in heads}
    return len(heads) == len(set(heads)) == len(texts) and len(kinds) == 1


def revision_features(earlier: str, reply: str, words: str) -> Groups:
    """Groups of features of a statement, of a reply, and of the words after that."""
    said, between, own = map(_read, (earlier, reply, words))
    groups = (
        (*own.traits, *own.order),
        (f"reply {trait}" for trait in between.traits),
        _compare(said, between, own),
        _compare_values(said, between, own),
    )
    return tuple(filter(None, (tuple(dict.fromkeys(group)) for group in groups)))


@lru_cache(maxsize=4_096)
def _read(text: str) -> _Text:
    tagged = tag(text)
    symbols = [symbol_of(*one) for one in tagged]
    content = frozenset(word for word, classes in tagged if not classes and word[0].isalpha())
    return _Text(
        values={
            kind: frozenset(
                token if token[0].isdigit() else token[:_STEM]
                for (token, classes), symbol in zip(tagged, symbols, strict=True)
                if kind in (*classes, symbol)
            )
            for kind in _KINDS
        },
        units={
            token: _DAY if _DAY in classes else unit[:_STEM]
            for (token, _), (unit, classes) in pairwise(tagged)
            if not _UNITS.isdisjoint(classes)
        },
        content=content,
        subjects=frozenset(
            word
            for (before, mine), (after, verb) in pairwise(tagged)
            for word, is_subject in (
                (after, "my" in mine),
                (before, len(before) >= _STEM and not _VERBS.isdisjoint(verb)),
            )
            if is_subject and word in content
        ),
        grams=frozenset(gram for word in content for gram in word_grams(word)),
        traits=(
            *(f"has {name}" for _, classes in tagged for name in classes),
            f"bytes {level(len(text.encode()), 6, 10, 16, 24, 32, 40, 60, 100)}",
            f"asks {bool(QUESTION.search(text))}",
        ),
        order=tuple(map(" ".join, pairwise(("^", *symbols, "$")[: _PLACES + 1]))),
        digits=_digits(text),
    )


def _digits(text: str) -> Mapping[str, str]:
    """Return the digits of the numbers in a text by each group of them, and by their whole token."""
    return {
        token: _UNCOUNTED.sub("", number[0])
        for number in _NUMBER.finditer(text)
        for token in WORD.findall(number[0])
        if token[0].isdigit()
    }


def _compare(said: _Text, between: _Text, own: _Text) -> Iterator[str]:
    """Yield how much of the words was said before, and which kinds of values the statement shares."""
    covered = len(own.grams & said.grams) / (len(own.grams) or 1)
    yield f"covered {level(covered, 0.01, 0.05, 0.2, 0.4, 0.6, 0.8)}"
    yield f"new {min(4, len(own.content - between.content - said.content))}"
    for kind in _KINDS:
        mine, theirs = own.values[kind], said.values[kind]
        yield f"{kind} {bool(mine & theirs)} {bool(mine - theirs)} {bool(theirs - mine)}"


def _compare_values(said: _Text, between: _Text, own: _Text) -> Iterator[str]:
    """Yield which texts have the values of the statement, and others of their kind."""
    found = []
    for kind in _KINDS:
        theirs, replied, mine = (text.values[kind] for text in (said, between, own))
        if theirs:
            sets = (mine & theirs, mine - theirs, mine & replied - theirs, replied - theirs)
            found.append(" ".join(str(bool(values)) for values in (*sets, replied & theirs)))
    yield from found
    yield f"all {', '.join(found)}"
