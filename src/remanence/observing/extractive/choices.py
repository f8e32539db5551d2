"""A choice told by its number: "option 2" stands for the words of that item."""

import json
import re
from collections.abc import Mapping
from functools import cache
from importlib import resources
from typing import NamedTuple

_ITEM = re.compile(
    r"^[ \t>#*-]*(?:\w+[ \t]+)?(\d{1,2}|[A-D])[ \t]*[.):：][ \t]*\**[ \t]*([^\s*].{2,})$", re.MULTILINE
)
_MOST_CHARS = 40


class _Numbers(NamedTuple):
    """A clause that names an item; `ordinals` say which by the group of their place."""

    numbered: re.Pattern[str]
    ordinal: re.Pattern[str]


def items_of(text: str) -> Mapping[str, str]:
    """The items of a message by the number or letter that they bear; the first that bears it."""
    items: dict[str, str] = {}
    for number, item in _ITEM.findall(text):
        items.setdefault(number.lower(), item)
    return items


def chosen(clause: str) -> str | None:
    """The number or letter that a short clause names as one of several."""
    if len(clause) > _MOST_CHARS:
        return None
    numbers = _numbers()
    if named := numbers.numbered.search(clause):
        return next(part for part in named.groups() if part).lower()
    ordinal = numbers.ordinal.match(clause)
    return str(ordinal.lastindex) if ordinal else None


@cache
def _numbers() -> _Numbers:
    folder = resources.files("remanence.observing.extractive")
    data: dict[str, str] = json.loads((folder / "choices.json").read_text("utf-8"))
    nouns, before, after = data["nouns"], data["before"], data["after"]
    ordinals = "|".join(f"({words})" for words in data["ordinals"].split(" "))
    return _Numbers(
        re.compile(
            rf"\b(?:{nouns})[ ]?(\d{{1,2}}|[A-D])\b|^(\d|[A-D])[ ]?[.!]?$|{data['parts']}", re.IGNORECASE
        ),
        re.compile(rf"(?:(?:{before})[ ,]+)*(?:{ordinals})\b[ ,]*(?:{after})?[ ]*[.!]?$", re.IGNORECASE),
    )
