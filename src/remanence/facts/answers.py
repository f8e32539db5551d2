"""Parse a model's list of facts leniently: JSON, perhaps in a fence, introduced or malformed."""

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import get_args

from remanence.notes.redact import redact
from remanence.types import FactType
from remanence.wire.message_rules import storable

_TRAILING_COMMA = re.compile(r",(?=\s*[\]}])")
_EMPTY = re.compile(r'^[ \t]*`*(?:\{\s*"\w+"\s*:\s*\[\s*\]\s*\}|\[\s*\])`*\s*$', re.MULTILINE)
"""An empty list, perhaps as the only value of an object, on a line of its own."""

_MAX_TAGS = 8
_MAX_SUMMARY_CHARACTERS = 1_000


@dataclass(frozen=True, slots=True, kw_only=True)
class AnsweredFact:
    """One element of an answer: `source` has message numbers, `replaces` that of a known fact."""

    summary: str
    type: FactType
    tags: tuple[str, ...]
    source: tuple[int, ...]
    replaces: int | None


def read_facts(text: str) -> tuple[AnsweredFact, ...] | None:
    """Return the facts of an answer; None if it is not a list of facts.

    Malformed objects and the text around objects are skipped.
    """
    objects = list(_objects(_TRAILING_COMMA.sub("", text)))
    facts = tuple(fact for item in objects if (fact := _fact(item)) is not None)
    if facts:
        return facts
    return () if not objects and _EMPTY.search(text) else None


def _objects(text: str) -> Iterator[Mapping[str, object]]:
    decoder = json.JSONDecoder(strict=False)
    start = text.find("{")
    while start >= 0:
        try:
            value, end = decoder.raw_decode(text, start)
        except (ValueError, RecursionError):
            end = start + 1
        else:
            yield from _flat(value)
        start = text.find("{", end)


def _flat(value: Mapping[str, object]) -> Iterator[Mapping[str, object]]:
    """Yield the object itself, or the objects of the lists in it."""
    lists = [item for item in value.values() if isinstance(item, list)]
    if "summary" in value or not lists:
        yield value
        return
    yield from (item for inner in lists for item in inner if isinstance(item, dict))


def _fact(item: Mapping[str, object]) -> AnsweredFact | None:
    summary = item.get("summary")
    if not isinstance(summary, str) or not (line := _one_line(summary)):
        return None
    return AnsweredFact(
        summary=redact(line)[:_MAX_SUMMARY_CHARACTERS],
        type=_type(str(item.get("type", "")).strip().lower()),
        tags=_tags(item.get("tags")),
        source=_numbers(item.get("source")),
        replaces=next(iter(_numbers(item.get("replaces"))), None),
    )


def _one_line(text: str) -> str:
    """Return a text on one line, without characters that cannot be stored, which JSON can escape."""
    return " ".join(storable(text).split())


def _type(kind: str) -> FactType:
    if kind in ("behaviour", "preference"):
        return "behavior"
    return next((known for known in get_args(FactType) if known == kind), "knowledge")


def _tags(value: object) -> tuple[str, ...]:
    items = value.split(",") if isinstance(value, str) else value
    if not isinstance(items, list):
        return ()
    tags = (_one_line(item).lower() for item in items if isinstance(item, str))
    return tuple(dict.fromkeys(tag for tag in tags if tag))[:_MAX_TAGS]


def _numbers(value: object) -> tuple[int, ...]:
    """Return the integers of a number, a text or a list of these."""
    items = value if isinstance(value, list) else [value]
    return tuple(
        int(digits)
        for item in items
        if isinstance(item, int | str) and not isinstance(item, bool)
        for digits in re.findall(r"\d{1,12}", str(item))
    )
