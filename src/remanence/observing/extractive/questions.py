"""A question merged with its short answer: "favourite book: Momo" rather than "Momo"."""

from collections.abc import Sequence
from dataclasses import replace

from remanence.observing.extractive.passages import Passage
from remanence.observing.extractive.wording import Word

_SHORT_ANSWER = 4
_MAX_CONTEXT = 5
_LOOK_BACK = 3


def with_questions(found: Sequence[Passage]) -> tuple[Passage, ...]:
    """The same passages, short answers led by what they were asked."""
    answered = list(found)
    for index, p in enumerate(found):
        if index and p.seq != found[index - 1].seq and not p.is_question and not p.is_outcome:
            asked = _question(found, index)
            if asked is not None and len(_content(p)) <= _SHORT_ANSWER:
                context = _context(asked, p)
                if context:
                    answered[index] = replace(p, first_seq=asked.seq, context=context)
    return tuple(answered)


def _question(found: Sequence[Passage], index: int) -> Passage | None:
    """The last question of the message before, if somebody else asked it."""
    before = found[index - 1]
    if before.speaker == found[index].speaker:
        return None
    for p in reversed(found[max(0, index - _LOOK_BACK) : index]):
        if p.seq == before.seq and p.is_question and not p.is_caption:
            return p
    return None


def _context(asked: Passage, answer: Passage) -> tuple[Word, ...]:
    said = {word.key for word in answer.words}
    return tuple(w for w in _content(asked) if w.key not in said)[:_MAX_CONTEXT]


def _content(p: Passage) -> list[Word]:
    small = p.vocabulary.glue | p.vocabulary.weak
    return [w for w in p.words if not w.dropped and w.key not in small]
