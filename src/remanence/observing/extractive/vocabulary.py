"""What the words of a language are good for in a note: tables written for this package."""

import json
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from importlib import resources

LANGUAGES = ("en",)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Vocabulary:
    """The small words of a language; each table is there once, so that identity is equality.

    `drop` stands in no telegraphic line, `glue` is kept but tells nothing by itself, `weak` tells
    little. `first` and `second` are the pronouns of who speaks and who is spoken to, `caption` the verbs of a
    shared picture, `filler` the openings of clauses that are courtesy or narrate the work,
    `small` the characters of a script without spaces that tell nothing.
    """

    language: str
    drop: frozenset[str] = frozenset()
    glue: frozenset[str] = frozenset()
    weak: frozenset[str] = frozenset()
    first: frozenset[str] = frozenset()
    second: frozenset[str] = frozenset()
    caption: frozenset[str] = frozenset()
    filler: tuple[str, ...] = ()
    small: frozenset[str] = frozenset()


NO_VOCABULARY = Vocabulary(language="")


@cache
def vocabularies() -> tuple[Vocabulary, ...]:
    """All tables that ship with the package."""
    folder = resources.files("remanence.observing.extractive") / "words"
    return tuple(
        _vocabulary(name, json.loads((folder / f"{name}.json").read_text("utf-8")))
        for name in LANGUAGES
    )


def vocabulary_of(words: Iterable[str]) -> Vocabulary:
    """The table whose function words are the most frequent in *words*; an empty one for none."""
    tables = vocabularies()
    counts = [0] * len(tables)
    total = 0
    for word in words:
        total += 1
        for index, table in enumerate(tables):
            counts[index] += word in table.drop
    best = max(range(len(tables)), key=counts.__getitem__)
    return tables[best] if counts[best] * 20 > total else NO_VOCABULARY


def _vocabulary(name: str, data: dict[str, str]) -> Vocabulary:
    filler = tuple(data.pop("filler", "").split("|")) if data.get("filler") else ()
    return Vocabulary(
        language=name,
        filler=filler,
        **{key: frozenset(value.split()) for key, value in data.items()},
    )
