"""Drops passages without content and passages that a known note already covers."""

from collections.abc import Generator, Sequence
from dataclasses import replace

from remanence.observers.extractive.cues import all_cues
from remanence.observers.extractive.passage import USER, Passage
from remanence.observers.extractive.render import Word, content, terms
from remanence.types import Note, Tag

VERDICTS: frozenset[Tag] = frozenset({"Decision", "Issue", "Outcome"})
"""Tags that make a clause informative, however short it is."""
_BARE = 2
_PASTED_CHARS = 40
_VALUE_MARKS = frozenset("0123456789._/@#")
_MARKS = '.,;:!?"()[]'
_ENOUGH_TO_COMPARE = 3


def telling(
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
            kept.append(_word_for_word(p) if _asks_agent(p) else p)
        yield
    return tuple(kept)


def _asks_agent(p: Passage) -> bool:
    """Return whether the passage is a question of an agent's user: the agent's next task."""
    return p.is_question and p.speaker == USER


def _word_for_word(p: Passage) -> Passage:
    return replace(p, words=tuple(word._replace(dropped=False) for word in p.words))


def _is_known(p: Passage, bags: Sequence[frozenset[str]]) -> bool:
    own = {term for word in content(p.words, p.vocabulary) for term in terms(word.key)}
    return len(own) >= _ENOUGH_TO_COMPARE and any(own <= bag for bag in bags)


def _is_informative(p: Passage) -> bool:
    """Return whether a passage is informative; narration and answered questions are not."""
    if p.is_question and p.is_superseded:
        return False
    if p.is_outcome:
        return len(p.words) > 1 or any(not c.isalpha() for c in p.source)
    own = own_words(p)
    if not p.is_request and p.source.lower().startswith(p.vocabulary.narration or ("\n",)):
        return any(w.is_date or not w.key.isalpha() for w in own) and len(own) > _BARE
    if p.cue.tag in (*VERDICTS, "NextStep") and any(not w.dropped for w in p.words):
        return True
    if p.context or p.supersedes:
        return bool(own)
    if _asks_agent(p):
        return bool(own)
    is_slight = is_filler(p) or (p.is_question and not any(_is_value(w) for w in own))
    return _size(own, p) > (_BARE if is_slight else 1)


def own_words(p: Passage) -> list[Word]:
    """Return the words specific to a passage: dates and all but function words."""
    slight = p.vocabulary.slight
    return [w for w in p.words if w.is_date or not (w.dropped or w.key in slight)]


def _size(own: Sequence[Word], p: Passage) -> int:
    """Return the number of a passage's own words; a negation or the first person adds one."""
    if p.vocabulary.small:
        return sum(len(word.key) for word in own) // 2
    if not own or len(own) > _BARE:
        return len(own)
    first, denials = p.vocabulary.first, all_cues().refusals
    keys = (word.key for word in p.words)
    return len(own) + any(k in first or k in denials or k.endswith("n't") for k in keys)


def _is_value(word: Word) -> bool:
    """Return whether a word is a value: a date, a name, a number, a path."""
    return word.is_date or word.is_name or not _VALUE_MARKS.isdisjoint(word.key)


def is_filler(p: Passage) -> bool:
    """Return whether a passage is mere courtesy: "let's ...", but not "let's go with ..."."""
    opens = bool(p.vocabulary.filler) and p.source.lower().startswith(p.vocabulary.filler)
    return opens and p.cue.tag != "Decision" and not p.is_request
