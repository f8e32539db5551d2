"""What a number stands for: "option 2" and "2 not yet" mean an item of the message before."""

import json
import re
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cache
from importlib import resources
from typing import NamedTuple

from remanence.observing.extractive.cues import DECIDED
from remanence.observing.extractive.passage import Passage
from remanence.observing.extractive.wording import words
from remanence.types import Message

_ITEM = re.compile(
    r"^[ \t>#*-]*(?:\w+[ \t]+)?(\d{1,2}|[A-D])[ \t]*[.):：][ \t]*\**[ \t]*([^\s*].{2,})$",
    re.MULTILINE,
)
_ROWS = re.compile(r"^[ \t]*\|[ :|-]+\|?[ \t]*\n((?:[ \t]*\|.+\n?)+)", re.MULTILINE)
_ANSWER = re.compile(r"(?:^|[.!?…]\s+|\n)[ \t]*(\d{1,2})[.):]?[ \t]+(?=(\S.{3}))")
_MOST_CHARS = 40
_MAX_WORDS = 6


class _Names(NamedTuple):
    """Patterns of a clause that names an item, by its number or by its place."""

    number: re.Pattern[str]
    place: re.Pattern[str]


def with_items(
    said: Iterator[Passage | None], text: str, offers: Sequence[Message]
) -> Generator[Passage | None, None, None]:
    """The passages, those that name an item of the latest offer that has it led by its words."""
    answers = answered(text) if offers else {}
    for p in said:
        if p is None or p.is_question or not offers:
            yield p
            continue
        choice = chosen(p.source)
        number = choice or next((n for start, n in answers.items() if start in p.source[:8]), None)
        known = items_of if choice else numbered_items
        yield p if number is None else _led(p, number, offers, known, chooses=choice is not None)


def _led(
    p: Passage,
    number: str,
    offers: Sequence[Message],
    known: Callable[[str], Mapping[str, str]],
    *,
    chooses: bool,
) -> Passage:
    for offer in reversed(offers):
        item = words(known(offer.text).get(number, ""), p.vocabulary, opens=True)
        if told := tuple(word for word in item if not word.dropped)[:_MAX_WORDS]:
            cue = DECIDED if chooses else p.cue
            return replace(p, context=told, first_seq=offer.seq, cue=cue)
    return p


def numbered_items(text: str) -> dict[str, str]:
    """The items of a message by the number or letter that they bear; the first that bears it."""
    items: dict[str, str] = {}
    for number, item in _ITEM.findall(text):
        items.setdefault(number.lower(), item)
    return items


def items_of(text: str) -> Mapping[str, str]:
    """The numbered items of a message, else the rows of its table."""
    items = numbered_items(text)
    if not items and (rows := _ROWS.search(text)):
        for place, row in enumerate(rows[1].splitlines(), 1):
            items[str(place)] = ", ".join(cell for cell in map(str.strip, row.split("|")) if cell)
    return items


def chosen(clause: str) -> str | None:
    """The number or letter that a short clause names as one of several."""
    if len(clause) > _MOST_CHARS:
        return None
    names = _names()
    if named := names.number.search(clause):
        return next(part for part in named.groups() if part).lower()
    place = names.place.match(clause)
    return str(place.lastindex) if place else None


def answered(text: str) -> Mapping[str, str]:
    """The numbers of the items that a message answers one by one, by how each answer begins.

    None unless they count up: "3 times" answers nothing.
    """
    found: list[tuple[str, str]] = _ANSWER.findall(text)
    numbers = [int(number) for number, _ in found]
    counts_up = len(numbers) > 1 and numbers[0] == 1 and numbers == sorted(set(numbers))
    return {start: number for number, start in found} if counts_up else {}


@cache
def _names() -> _Names:
    folder = resources.files("remanence.observing.extractive")
    data: dict[str, str] = json.loads((folder / "choices.json").read_text("utf-8"))
    places = "|".join(f"({words})" for words in data["ordinals"].split(" "))
    number = rf"\b(?:{data['nouns']}) ?(\d{{1,2}}|[A-D])\b|^(\d|[A-D]) ?[.!]?$|{data['parts']}"
    place = rf"(?:(?:{data['before']})[ ,]+)*(?:{places})\b[ ,]*(?:{data['after']})? *[.!]?$"
    return _Names(re.compile(number, re.IGNORECASE), re.compile(place, re.IGNORECASE))
