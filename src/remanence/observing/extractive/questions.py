"""A question merged with its short answer: "favourite book: Momo" rather than "Momo"."""

from collections.abc import Generator, Sequence
from dataclasses import replace

from remanence.observing.extractive.passages import Passage
from remanence.observing.extractive.wording import Word, terms

_SHORT_ANSWER = 4
_MAX_CONTEXT = 5
_MAX_CHARS = 80
_LOOK_BACK = 3


def with_questions(found: Sequence[Passage]) -> Generator[None, None, tuple[Passage, ...]]:
    """The same passages, short answers led by what they were asked."""
    answered = list(found)
    for index, p in enumerate(found):
        if index and p.seq != found[index - 1].seq and not p.is_question and not p.is_outcome:
            asked = _question(found, index)
            if asked is not None and _is_short(p):
                context = _context(found[asked], p)
                if context:
                    seq = found[asked].seq
                    answered[index] = replace(p, first_seq=seq, context=context)
                    answered[asked] = replace(found[asked], is_superseded=True)
            yield
    return tuple(answered)


def _is_short(p: Passage) -> bool:
    return (
        len(p.source) <= _MAX_CHARS
        and sum(len(terms(word.key)) for word in _content(p)) <= _SHORT_ANSWER
    )


def _question(found: Sequence[Passage], index: int) -> int | None:
    """The place of the last question of the message before, if somebody else asked it."""
    before = found[index - 1]
    if before.speaker == found[index].speaker:
        return None
    for place in range(index - 1, max(-1, index - 1 - _LOOK_BACK), -1):
        p = found[place]
        if p.seq == before.seq and p.is_question and not p.is_caption:
            return place
    return None


def _context(asked: Passage, answer: Passage) -> tuple[Word, ...]:
    said = {word.key for word in answer.words}
    return tuple(w for w in _content(asked) if w.key not in said)[:_MAX_CONTEXT]


def _content(p: Passage) -> list[Word]:
    slight = p.vocabulary.slight
    return [w for w in p.words if not w.dropped and w.key not in slight]
