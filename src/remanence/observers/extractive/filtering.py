"""Drops passages without content and passages that a known note already covers."""

from collections.abc import Generator, Sequence

from remanence.observers.extractive.passage import Passage
from remanence.observers.extractive.render import Word, terms
from remanence.types import Note

_BARE = 2
_PASTED_CHARS = 40
_VALUE_MARKS = frozenset("0123456789._/@#")
_MARKS = '.,;:!?"()[]'
_ENOUGH_TO_COMPARE = 3


def drop_uninformative(
    found: Sequence[Passage], known: Sequence[Note]
) -> Generator[None, None, tuple[Passage, ...]]:
    """Return the passages that have content and are not covered by a known note.

    A passage pasted from another speaker is dropped: it counts for its author.
    """
    bags: list[frozenset[str]] = []
    for note in known:
        note_words = (word.strip(_MARKS) for word in note.text.lower().split())
        bags.append(frozenset(term for word in note_words for term in terms(word)))
        yield
    kept: list[Passage] = []
    authors: dict[str, str] = {}
    for p in found:
        is_pasted = (
            len(p.source) >= _PASTED_CHARS and authors.setdefault(p.source, p.speaker) != p.speaker
        )
        if not is_pasted and _is_informative(p) and not (bags and _is_known(p, bags)):
            kept.append(p)
        yield
    return tuple(kept)


def _is_known(p: Passage, bags: Sequence[frozenset[str]]) -> bool:
    own = {term for word in _content_words(p) for term in terms(word.key)}
    return len(own) >= _ENOUGH_TO_COMPARE and any(own <= bag for bag in bags)


def _content_words(p: Passage) -> list[Word]:
    """Return the words of a passage that are neither dropped nor slight."""
    return [w for w in p.words if not (w.dropped or w.key in p.vocabulary.slight)]


def _is_informative(p: Passage) -> bool:
    """Return whether a passage has enough words of its own."""
    if p.is_outcome:
        return len(p.words) > 1 or any(not c.isalpha() for c in p.source)
    own = _content_words(p)
    if p.is_rule:
        return bool(own)
    is_slight = p.is_question and not any(_is_value(w) for w in own)
    return _size(own, p) > (_BARE if is_slight else 1)


def _size(own: Sequence[Word], p: Passage) -> int:
    """Return the number of a passage's own words; a denial or the first person adds one."""
    if p.vocabulary.small:
        return sum(len(word.key) for word in own) // 2
    if not own or len(own) > _BARE:
        return len(own)
    counted = p.vocabulary.first | p.vocabulary.denials
    return len(own) + any(w.key in counted or "n't" in w.key for w in p.words)


def _is_value(word: Word) -> bool:
    """Return whether a word is a value: a date, a name, a number, a path."""
    return word.is_date or word.is_name or not _VALUE_MARKS.isdisjoint(word.key)
