"""What the words of a language are good for in a note: tables written for this package."""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib import resources

_ALPHABETIC = ("en", "de", "es", "fr", "it", "nl", "pt", "tr", "vi")
_SCRIPTS: tuple[tuple[str, str], ...] = (
    ("ja", r"[\u3040-\u30ff]"),
    ("ko", r"[\uac00-\ud7af]"),
    ("zh", r"[\u4e00-\u9fff]"),
    ("ru", r"[\u0400-\u04ff]"),
    ("ar", r"[\u0600-\u06ff]"),
    ("hi", r"[\u0900-\u097f]"),
)
_SCRIPT_PATTERNS = tuple((name, re.compile(pattern)) for name, pattern in _SCRIPTS)
_WORD = re.compile(r"[^\W\d_]+(?:['’][^\W\d_]+)*")
_SAMPLE = 2000
_OPENINGS = ("filler", "narration")


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Vocabulary:
    """The small words of a language; each table is there once, so that identity is equality.

    `drop` stands in no telegraphic line, `glue` is kept but tells nothing by itself, `weak` tells
    little. A dropped word that is `held` stays after one that `holds`: "to be", "not you". `joins`
    open a clause that goes on from the one before; `light` ones may go where no value follows and nothing `binds` them, `plain` ones stay in a
    clause that decides. What `leans` on an earlier clause says little without it. `first` and `second` are the pronouns of who speaks and who is spoken to, `caption` the
    verbs of a shared picture, `filler` the openings of clauses that are courtesy, `narration` of those
    that tell what somebody is about to look at, `small` the characters of a script without spaces that tell nothing.
    """

    language: str
    drop: frozenset[str] = frozenset()
    glue: frozenset[str] = frozenset()
    weak: frozenset[str] = frozenset()
    first: frozenset[str] = frozenset()
    second: frozenset[str] = frozenset()
    caption: frozenset[str] = frozenset()
    filler: tuple[str, ...] = ()
    narration: tuple[str, ...] = ()
    small: frozenset[str] = frozenset()
    holds: frozenset[str] = frozenset()
    held: frozenset[str] = frozenset()
    joins: frozenset[str] = frozenset()
    light: frozenset[str] = frozenset()
    binds: frozenset[str] = frozenset()
    plain: frozenset[str] = frozenset()
    leans: frozenset[str] = frozenset()
    function_words: frozenset[str] = frozenset()
    """`drop` and `glue` together."""
    slight: frozenset[str] = frozenset()
    """`glue` and `weak` together."""


NO_VOCABULARY = Vocabulary(language="")


def vocabulary_of(text: str) -> Vocabulary:
    """The table of the language that a text is written in; an empty one if none fits."""
    sample = text[:_SAMPLE]
    if not sample.isascii():
        for name, pattern in _SCRIPT_PATTERNS:
            if len(pattern.findall(sample)) * 5 > len(sample):
                return _table(name)
    found = " ".join(_WORD.findall(sample)).lower().replace("’", "'").split(" ")
    best, most = NO_VOCABULARY, len(found) / 8
    for name in _ALPHABETIC:
        known = _table(name).function_words
        hits = sum(map(known.__contains__, found))
        if hits > most:
            best, most = _table(name), hits
        if hits * 3 > len(found):
            break
    return best


@cache
def _table(name: str) -> Vocabulary:
    file = resources.files("remanence.languages") / "words" / f"{name}.json"
    data: Mapping[str, str] = json.loads(file.read_text("utf-8"))
    sets = {
        key: frozenset(value if key == "small" else value.split())
        for key, value in data.items()
        if key not in _OPENINGS
    }
    return Vocabulary(
        language=name,
        function_words=sets.get("drop", frozenset()) | sets.get("glue", frozenset()),
        slight=sets.get("glue", frozenset()) | sets.get("weak", frozenset()),
        filler=_openings(data, "filler"),
        narration=_openings(data, "narration"),
        **sets,
    )


def _openings(data: Mapping[str, str], key: str) -> tuple[str, ...]:
    return tuple(data[key].split("|")) if key in data else ()
