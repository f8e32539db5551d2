"""Answers by number: "option 2" and "2 not yet" refer to an item of an earlier message."""

import json
import re
from collections.abc import Generator, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cache
from importlib import resources
from typing import NamedTuple

from remanence.observers.extractive.cues import DECIDED
from remanence.observers.extractive.passage import Passage
from remanence.observers.extractive.render import words
from remanence.types import Message

_ITEM = re.compile(
    r"^[ \t>#*-]*(?:\w+[ \t]+)?(\d{1,2}|[A-D])[ \t]*[.):：][ \t]*+\**+[ \t]*+([^\s*].{2,})$",
    re.MULTILINE,
)
_ROWS = re.compile(r"^[ \t]*\|[ :|-]++[ \t]*+\n((?:[ \t]*+\|.++\n?)++)", re.MULTILINE)
_ANSWER = re.compile(r"(?:^|[.!?…]\s++|\n)[ \t]*+(\d{1,2})[.):]?[ \t]+(?=(\S.{3}))")
_MAX_MESSAGE_CHARS = 20_000
"""Characters searched in a message that offers or answers."""
_MAX_CHOICE_CHARS = 40
_MAX_WORDS = 6
_ITEM_CHARS = 300
"""Characters of an item from which its first words are taken."""


class _Names(NamedTuple):
    """Patterns of a clause that names an item by its number or by its position."""

    number: re.Pattern[str]
    place: re.Pattern[str]


class Offer(NamedTuple):
    """A message with its items by number or letter; the rows of a table count as items."""

    message: Message
    items: Mapping[str, str]
    is_numbered: bool


def offer_of(message: Message) -> Offer | None:
    """Return the items that a message offers or asks about, or None if it has no such items."""
    text = message.text[:_MAX_MESSAGE_CHARS]
    numbered = items_by_number(text)
    items = numbered or rows_of(text)
    return Offer(message, items, bool(numbered)) if items else None


def with_items(
    said: Iterator[Passage | None], text: str, offers: Sequence[Offer]
) -> Generator[Passage | None, None, None]:
    """Yield the passages; one that names an item of an offer is led by the item's first words.

    If several offers have the item, the latest counts.
    """
    answers = answers_by_number(text[:_MAX_MESSAGE_CHARS])
    for p in said:
        if p is None or p.is_question:
            yield p
            continue
        choice = choice_of(p.source)
        number = choice or next((n for start, n in answers.items() if start in p.source[:8]), None)
        yield p if number is None else _with_item(p, number, offers, chooses=choice is not None)


def _with_item(p: Passage, number: str, offers: Sequence[Offer], *, chooses: bool) -> Passage:
    for offer in reversed(offers):
        if not (chooses or offer.is_numbered):
            continue
        item = words(offer.items.get(number, "")[:_ITEM_CHARS], p.vocabulary, opens=True)
        if lead := tuple(word for word in item if not word.dropped)[:_MAX_WORDS]:
            cue = DECIDED if chooses else p.cue
            return replace(p, context=lead, first_seq=offer.message.seq, cue=cue)
    return p


def items_by_number(text: str) -> dict[str, str]:
    """Return the items of a message by number or letter; the first of a number counts."""
    items: dict[str, str] = {}
    for number, item in _ITEM.findall(text):
        items.setdefault(number.lower(), item)
    return items


def rows_of(text: str) -> dict[str, str]:
    """Return the rows of the first table of a message below its head, numbered from 1."""
    table = _ROWS.search(text)
    rows = table[1].splitlines() if table else ()
    return {
        str(place): ", ".join(cell for cell in map(str.strip, row.split("|")) if cell)
        for place, row in enumerate(rows, 1)
    }


def choice_of(clause: str) -> str | None:
    """Return the number or letter that a short clause chooses, or None."""
    if len(clause) > _MAX_CHOICE_CHARS:
        return None
    names = _names()
    if named := names.number.search(clause):
        return next(part for part in named.groups() if part).lower()
    place = names.place.match(clause)
    return str(place.lastindex) if place else None


def answers_by_number(text: str) -> Mapping[str, str]:
    """Map the first characters of each numbered answer to its number.

    Empty unless the numbers count up from 1: "3 times" is not an answer.
    """
    answers: list[tuple[str, str]] = _ANSWER.findall(text)
    numbers = [int(number) for number, _ in answers]
    counts_up = len(numbers) > 1 and numbers[0] == 1 and numbers == sorted(set(numbers))
    return {start: number for number, start in answers} if counts_up else {}


@cache
def _names() -> _Names:
    folder = resources.files("remanence.observers.extractive")
    data: dict[str, str] = json.loads((folder / "choices.json").read_text("utf-8"))
    places = "|".join(f"({words})" for words in data["ordinals"].split(" "))
    number = rf"\b(?:{data['nouns']}) ?(\d{{1,2}}|[A-D])\b|^(\d|[A-D]) ?[.!]?$|{data['parts']}"
    place = rf"(?:(?:{data['before']})[ ,]+)*(?:{places})\b[ ,]*(?:{data['after']})? *[.!]?$"
    return _Names(re.compile(number, re.IGNORECASE), re.compile(place, re.IGNORECASE))
