"""A changed mind: what a clause takes back, so that a note keeps the new value and marks the old."""

import re
from collections.abc import Generator, Sequence
from dataclasses import replace
from typing import NamedTuple

from remanence.observing.extractive.passages import Passage
from remanence.observing.extractive.wording import Word, terms, wording

_LOOK_BACK = 40
_NEAR_MESSAGES = 4
_MAX_OLD_WORDS = 6
_FRAMES: tuple[tuple[tuple[str, ...], tuple[str, ...]], ...] = (
    (("instead", "of"), ()),
    (("rather", "than"), ()),
    (("no", "longer"), ()),
    (("not",), ("but",)),
    (("statt",), ()),
    (("anstelle", "von"), ()),
    (("nicht",), ("sondern",)),
    (("au", "lieu", "de"), ()),
    (("en", "lugar", "de"), ()),
    (("en", "vez", "de"), ()),
    (("invece", "di"), ()),
    (("non",), ("ma",)),
    (("em", "vez", "de"), ()),
    (("in", "plaats", "van"), ()),
    (("вместо",), ()),
    (("не",), ("а",)),
)
"""Words that open what is given up, and the words that close it; without any, the clause does."""
_OPENERS = frozenset(opening[0] for opening, _ in _FRAMES)

_KINDS = (
    ("time", re.compile(r"\d{1,2}(?::\d\d)?\s?(?:[ap]\.?m\.?|h|uhr)|\d{1,2}:\d\d", re.IGNORECASE)),
    ("id", re.compile(r"(?=.*\d)(?=.*[^\W\d_])[\w-]{4,}")),
    ("number", re.compile(r"[$€£]?\d[\d.,]*(?:%|[a-z]{1,3}|\$|€|£)?", re.IGNORECASE)),
)


class _Value(NamedTuple):
    kind: str
    text: str


def with_corrections(found: Sequence[Passage]) -> Generator[None, None, tuple[Passage, ...]]:
    """The same passages; those that take something back say what, and the others that they fell."""
    corrected = list(found)
    for index, p in enumerate(found):
        framed = None if p.is_outcome or p.is_question else _framed(p)
        if framed is not None:
            corrected[index] = framed
        elif p.cue.corrects and (old := _replaced(found, index)) is not None:
            place, value = old
            seq = min(p.first_seq, found[place].seq)
            corrected[index] = replace(p, supersedes=value, first_seq=seq)
            corrected[place] = replace(corrected[place], is_superseded=True)
        yield
    return tuple(corrected)


def _framed(p: Passage) -> Passage | None:
    """Of "Y instead of X", X leaves the words and becomes what is superseded."""
    keys = [word.key for word in p.words]
    if _OPENERS.isdisjoint(keys):
        return None
    for opening, closing in _FRAMES:
        if opening[0] not in keys:
            continue
        start = _find(keys, opening, 0)
        end = _find(keys, closing, start + len(opening)) if closing else _clause_end(p, start)
        if start < 0 or end <= start + len(opening):
            continue
        if closing and any(w.text.endswith(",") for w in p.words[start : end - 1]):
            continue
        old = wording(p.words[start + len(opening) : end])
        kept = [w for w in (*p.words[:start], *p.words[end + len(closing) :]) if not w.dropped]
        if old and kept and len(old.split()) <= _MAX_OLD_WORDS:
            cut = range(start, end + len(closing))
            words = tuple(replace(w, dropped=w.dropped or i in cut) for i, w in enumerate(p.words))
            return replace(p, words=words, supersedes=old)
    return None


def _find(keys: Sequence[str], phrase: Sequence[str], start: int) -> int:
    for index in range(max(0, start), len(keys) - len(phrase) + 1):
        if tuple(keys[index : index + len(phrase)]) == tuple(phrase):
            return index
    return -1


def _clause_end(p: Passage, start: int) -> int:
    if start < 0:
        return -1
    for index in range(start, len(p.words)):
        if p.words[index].text.endswith(","):
            return index + 1
    return len(p.words)


def _replaced(found: Sequence[Passage], index: int) -> tuple[int, str] | None:
    """The latest earlier passage with another value of the same kind, and that value."""
    p = found[index]
    mine = [value for word in p.words if (value := _value(word)) is not None]
    if not mine:
        return None
    about = _about(p)
    for place in range(index - 1, max(-1, index - _LOOK_BACK), -1):
        earlier = found[place]
        near = p.seq - earlier.seq <= _NEAR_MESSAGES and earlier.speaker == p.speaker
        if earlier.seq == p.seq or not (near or about & _about(earlier)):
            continue
        for value in (v for word in earlier.words if (v := _value(word)) is not None):
            if value.kind == mine[0].kind and value.text != mine[0].text:
                return place, value.text
    return None


def _value(word: Word) -> _Value | None:
    if word.is_date:
        return _Value("date", word.text)
    text = word.text.strip('"“”,;:()')
    for kind, pattern in _KINDS:
        if pattern.fullmatch(text):
            return _Value(kind, text)
    return None


def _about(p: Passage) -> set[str]:
    small = p.vocabulary.glue | p.vocabulary.weak
    return {
        term
        for word in p.words
        if not word.dropped and not word.is_date and word.key not in small
        for term in terms(word.key)
    }
