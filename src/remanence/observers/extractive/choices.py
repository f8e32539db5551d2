"""What a number stands for: "option 2" and "2 not yet" mean an item of the message before."""

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
_LOOKED_AT = 20_000
"""Characters of a message that offers or answers."""
_MOST_CHARS = 40
_MAX_WORDS = 6
_ITEM_CHARS = 300
"""Of an item: its first words."""


class _Names(NamedTuple):
    """Patterns of a clause that names an item, by its number or by its place."""

    number: re.Pattern[str]
    place: re.Pattern[str]


class Offer(NamedTuple):
    """A message with its items, by the number or letter that they bear, or rows of a table."""

    message: Message
    items: Mapping[str, str]
    is_numbered: bool


def offer_of(message: Message) -> Offer | None:
    """What a message offers to choose from or asks one by one; None if it has no such items."""
    text = message.text[:_LOOKED_AT]
    numbered = items_by_number(text)
    items = numbered or rows_of(text)
    return Offer(message, items, bool(numbered)) if items else None


def with_items(
    said: Iterator[Passage | None], text: str, offers: Sequence[Offer]
) -> Generator[Passage | None, None, None]:
    """The passages, those that name an item of the latest offer that has it led by its words."""
    answers = answers_by_number(text[:_LOOKED_AT])
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
        if told := tuple(word for word in item if not word.dropped)[:_MAX_WORDS]:
            cue = DECIDED if chooses else p.cue
            return replace(p, context=told, first_seq=offer.message.seq, cue=cue)
    return p


def items_by_number(text: str) -> dict[str, str]:
    """The items of a message by the number or letter that they bear; the first that bears it."""
    items: dict[str, str] = {}
    for number, item in _ITEM.findall(text):
        items.setdefault(number.lower(), item)
    return items


def rows_of(text: str) -> dict[str, str]:
    """The rows of the first table of a message below its head, numbered from 1."""
    table = _ROWS.search(text)
    rows = table[1].splitlines() if table else ()
    return {
        str(place): ", ".join(cell for cell in map(str.strip, row.split("|")) if cell)
        for place, row in enumerate(rows, 1)
    }


def choice_of(clause: str) -> str | None:
    """The number or letter that a short clause names as one of several."""
    if len(clause) > _MOST_CHARS:
        return None
    names = _names()
    if named := names.number.search(clause):
        return next(part for part in named.groups() if part).lower()
    place = names.place.match(clause)
    return str(place.lastindex) if place else None


def answers_by_number(text: str) -> Mapping[str, str]:
    """The numbers of the items that a message answers one by one, by how each answer begins.

    None unless they count up: "3 times" answers nothing.
    """
    found: list[tuple[str, str]] = _ANSWER.findall(text)
    numbers = [int(number) for number, _ in found]
    counts_up = len(numbers) > 1 and numbers[0] == 1 and numbers == sorted(set(numbers))
    return {start: number for number, start in found} if counts_up else {}


@cache
def _names() -> _Names:
    folder = resources.files("remanence.observers.extractive")
    data: dict[str, str] = json.loads((folder / "choices.json").read_text("utf-8"))
    places = "|".join(f"({words})" for words in data["ordinals"].split(" "))
    number = rf"\b(?:{data['nouns']}) ?(\d{{1,2}}|[A-D])\b|^(\d|[A-D]) ?[.!]?$|{data['parts']}"
    place = rf"(?:(?:{data['before']})[ ,]+)*(?:{places})\b[ ,]*(?:{data['after']})? *[.!]?$"
    return _Names(re.compile(number, re.IGNORECASE), re.compile(place, re.IGNORECASE))
