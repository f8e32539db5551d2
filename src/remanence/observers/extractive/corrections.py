"""Detects corrections, so that a note keeps the new value and marks the old one."""

import re
from collections.abc import Generator, Sequence
from dataclasses import replace
from itertools import dropwhile, takewhile
from typing import NamedTuple

from remanence.observers.extractive.correction_frames import superseded_words
from remanence.observers.extractive.cues import DECIDED, all_cues
from remanence.observers.extractive.passage import AGENT, Passage
from remanence.observers.extractive.render import Word, in_full, terms, wording

_LOOK_BACK = 40
_MAX_OLD_WORDS = 6
_SHARED = 1 / 3


class _Frame(NamedTuple):
    """The words before and after a withdrawn value; without `closing` it ends with the clause."""

    opening: tuple[str, ...]
    closing: tuple[str, ...] = ()
    after_comma: bool = False


_FRAMES = (
    _Frame(("instead", "of")),
    _Frame(("rather", "than")),
    _Frame(("not",), ("but",)),
    _Frame(("not",), after_comma=True),
    _Frame(("statt",)),
    _Frame(("anstelle", "von")),
    _Frame(("nicht",), ("sondern",)),
    *(_Frame((none,), ("sondern",)) for none in ("kein", "keine", "keinen")),
    _Frame(("au", "lieu", "de")),
    _Frame(("en", "lugar", "de")),
    _Frame(("en", "vez", "de")),
    _Frame(("invece", "di")),
    _Frame(("em", "vez", "de")),
    _Frame(("in", "plaats", "van")),
    _Frame(("вместо",)),
    _Frame(("не",), ("а",)),
)
_DIGIT = re.compile(r"\d")
_OPENERS = frozenset(frame.opening[0] for frame in _FRAMES)

_KINDS = (
    ("time", re.compile(r"\d{1,2}(?::\d\d)?\s?(?:[ap]\.?m\.?|h|uhr)|\d{1,2}:\d\d", re.IGNORECASE)),
    ("id", re.compile(r"^(?=.*\d)(?=.*[^\W\d_])[\w-]{4,}")),
    ("number", re.compile(r"[$€£]?\d[\d.,]*(?:%|[a-z]{1,3}|\$|€|£)?", re.IGNORECASE)),
    ("code", re.compile(r"`[^`]+`")),
)


class _Value(NamedTuple):
    kind: str
    text: str


def with_corrections(found: Sequence[Passage]) -> Generator[None, None, tuple[Passage, ...]]:
    """Return the passages with corrections and what they supersede marked; yields in between."""
    corrected = list(found)
    decided: list[tuple[int, frozenset[str]]] = []
    for index, p in enumerate(found):
        may_take_back = not (p.is_outcome or p.is_question or p.is_open)
        framed = (_apply_frame(p) or _superseded_in(found, index)) if may_take_back else None
        fallen = _index_of_denied(p, decided) if may_take_back else None
        if fallen is not None:
            corrected[fallen] = replace(corrected[fallen], is_superseded=True)
        if framed is not None:
            corrected[index] = framed
        elif fallen is not None:
            corrected[index] = replace(p, cue=DECIDED)
        elif (
            p.cue.corrects
            and not p.is_question
            and (old := _find_replaced(found, index)) is not None
        ):
            place, value = old
            seq = min(p.first_seq, found[place].seq)
            corrected[index] = replace(p, supersedes=value, first_seq=seq)
            corrected[place] = replace(corrected[place], is_superseded=True)
        if p.cue.tag == "Decision":
            decided.append((index, frozenset(term for w in p.words for term in terms(w.key))))
        yield
    return tuple(corrected)


def _index_of_denied(p: Passage, decided: Sequence[tuple[int, frozenset[str]]]) -> int | None:
    """Return the index of the latest decision for a name now rejected: "no Redis, we ..."."""
    if not decided:
        return None
    cues = all_cues()
    for place, word in enumerate(p.words):
        if word.key not in cues.refusals:
            continue
        after = dropwhile(lambda w: w.dropped or w.key in cues.links, p.words[place + 1 :])
        name = {term for w in takewhile(lambda w: w.is_name, after) for term in terms(w.key)}
        for index, about in reversed(decided):
            if name and name <= about:
                return index
    return None


def _apply_frame(p: Passage) -> Passage | None:
    """Move X of "Y instead of X" from the words to `supersedes`.

    Only if both sides are of one kind or the clause is a decision: "widens the race instead of
    fixing anything" withdraws nothing.
    """
    keys = [word.key for word in p.words]
    if _OPENERS.isdisjoint(keys):
        return None
    for frame in _FRAMES:
        cut = _superseded_words(p, keys, frame)
        if cut is None:
            continue
        opens, closes = len(frame.opening), len(frame.closing)
        old = p.words[cut.start + opens : cut.stop - closes]
        kept = [w for i, w in enumerate(p.words) if i not in cut]
        if _is_evident(p, kept, old):
            full = in_full(p.words, p.vocabulary)
            words = tuple(w._replace(dropped=w.dropped or i in cut) for i, w in enumerate(full))
            return replace(p, words=words, supersedes=wording(old))
    return None


def _superseded_in(found: Sequence[Passage], index: int) -> Passage | None:
    """Do so for "不是X而是Y" and the like, if X was mentioned before or Y is of its kind."""
    p = found[index]
    correction = superseded_words(in_full(p.words, p.vocabulary)) if p.cue.corrects else None
    if correction is None:
        return None
    earlier = found[max(0, index - _LOOK_BACK) : index]
    is_mentioned = any(correction.old in other.source for other in earlier)
    if not is_mentioned and not _same_kind(correction.old, wording(correction.words)):
        return None
    return replace(p, words=correction.words, supersedes=correction.old)


def _same_kind(old: str, new: str) -> bool:
    """Return whether both contain a number: "13명", "15명"."""
    return _DIGIT.search(old) is not None and _DIGIT.search(new) is not None


def _superseded_words(p: Passage, keys: Sequence[str], frame: _Frame) -> range | None:
    """Return the range of the frame's words and those inside it, or None."""
    start = _find(keys, frame.opening, 0)
    inside = start + len(frame.opening)
    if start < 0 or (frame.after_comma and not _ends_in_comma(p, start - 1)):
        return None
    if not frame.closing:
        end = _clause_end(p, inside)
        return range(start, end) if end > inside else None
    end = _find(keys, frame.closing, inside)
    if end <= inside or any(_ends_in_comma(p, i) for i in range(start, end - 1)):
        return None
    return range(start, end + len(frame.closing))


def _is_evident(p: Passage, kept: Sequence[Word], old: Sequence[Word]) -> bool:
    """Return whether the kept words clearly replace the old ones."""
    if not wording(old) or not wording(kept) or len(wording(old).split()) > _MAX_OLD_WORDS:
        return False
    if any(w.key.isalpha() and w.key.endswith("ing") for w in old[:1]):
        return False
    if any(w.key in all_cues().refusals for w in kept):  # "no codes, not even at Christmas"
        return False
    kinds = {value.kind for word in old if (value := _value(word)) is not None}
    if kinds:
        return any((v := _value(word)) is not None and v.kind in kinds for word in kept)
    if p.cue.tag == "Decision":
        return True
    are_names = all(word.is_name for word in old if not word.dropped)
    return are_names and any(word.is_name for word in kept)


def _find(keys: Sequence[str], phrase: Sequence[str], start: int) -> int:
    for index in range(max(0, start), len(keys) - len(phrase) + 1):
        if tuple(keys[index : index + len(phrase)]) == tuple(phrase):
            return index
    return -1


def _ends_in_comma(p: Passage, index: int) -> bool:
    return index >= 0 and p.words[index].text.endswith(",")


def _clause_end(p: Passage, start: int) -> int:
    for index in range(start, len(p.words)):
        if _ends_in_comma(p, index):
            return index + 1
    return len(p.words)


def _find_replaced(found: Sequence[Passage], index: int) -> tuple[int, str] | None:
    """Find the latest passage on the same subject with another value of the same kind.

    Returns its index and that value.
    """
    p = found[index]
    mine = [value for word in p.words if (value := _value(word)) is not None]
    about = _about(p)
    if len(mine) != 1 or not about or p.vocabulary.small:
        return None
    for place in range(index - 1, max(-1, index - _LOOK_BACK), -1):
        earlier = found[place]
        shared = about & _about(earlier)
        if earlier.seq == p.seq or earlier.is_outcome or len(shared) < _SHARED * len(about):
            continue
        if earlier.is_item and earlier.speaker == AGENT:
            continue
        values = [value for word in earlier.words if (value := _value(word)) is not None]
        same = [value.text for value in values if value.kind == mine[0].kind]
        if len(same) == 1 and same[0] != mine[0].text:
            return place, same[0]
    return None


def _value(word: Word) -> _Value | None:
    if word.is_date:
        return _Value("date", word.text.strip(",; "))
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
        if not (word.dropped or word.is_date or _value(word)) and word.key not in small
        for term in terms(word.key)
        if any(map(str.isalnum, term))
    }
