"""A question merged with its short answer: "favourite book: Momo" rather than "Momo"."""

import re
from collections.abc import Generator, Sequence
from dataclasses import replace

from remanence.observing.extractive.passages import Passage
from remanence.observing.extractive.wording import Word, terms

_SHORT_ANSWER = 4
_MAX_CONTEXT = 5
_MAX_CHARS = 80
_LOOK_BACK = 3
_BRIEF_CHARS = 40
_MAX_QUESTIONS = 2
_TALK = 60
_ADVICE_LOOK_BACK = 12
_ASKS_ADVICE = re.compile(
    r"\b(?:which|what|where)\b.*\b(?:should|best|better|recommend|suggest|choose|pick)\b"
    r"|\b(?:which|what) (?:would|do) you (?:take|use|get)\b"
    r"|何が(?:いい|良い)|どれが|どちらが|(?:뭐가|뭘|어느|어떤).*(?:좋을까|할까|나을까)|什么(?:比较)?好|哪(?:个|家|种).*好",
    re.IGNORECASE,
)


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
        if _is_choice(p) and not answered[index].context:
            asked = _advice(found, index)
            if asked is not None and (context := _context(found[asked], p)):
                seq = found[asked].seq
                answered[index] = replace(p, first_seq=seq, context=context)
            yield
    return tuple(answered)


def _is_choice(p: Passage) -> bool:
    """Whether a clause decides in so few words that it may not say about what."""
    return p.cue.tag == "Decision" and not p.is_outcome and len(p.source) <= _BRIEF_CHARS


def _advice(found: Sequence[Passage], index: int) -> int | None:
    """The place of the speaker's own last question what to choose, if somebody answered it."""
    speaker, others = found[index].speaker, False
    for place in range(index - 1, max(-1, index - 1 - _ADVICE_LOOK_BACK), -1):
        p = found[place]
        others = others or p.speaker != speaker
        if p.speaker == speaker and p.is_question and _ASKS_ADVICE.search(p.source):
            return place if others else None
    return None


def _is_short(p: Passage) -> bool:
    return (
        len(p.source) <= _MAX_CHARS
        and sum(len(terms(word.key)) for word in _content(p)) <= _SHORT_ANSWER
    )


def _question(found: Sequence[Passage], index: int) -> int | None:
    """The place of the last question of the message before, if somebody else asked it."""
    before = found[index - 1]
    if before.speaker == found[index].speaker or _asks_too_much(found, index - 1):
        return None
    if _spoken_to(found, index - 1) not in (None, found[index].speaker):
        return None
    for place in range(index - 1, max(-1, index - 1 - _LOOK_BACK), -1):
        p = found[place]
        if p.seq == before.seq and p.is_question and not p.is_caption:
            return place
    return None


def _asks_too_much(found: Sequence[Passage], last: int) -> bool:
    """Whether the message that ends at *last* asks so much that nobody knows what is answered."""
    seq, asked = found[last].seq, set[int]()
    for place in range(last, -1, -1):
        if found[place].seq != seq:
            break
        if found[place].is_question:
            asked.add(found[place].sentence)
    return len(asked) > _MAX_QUESTIONS


def _spoken_to(found: Sequence[Passage], last: int) -> str | None:
    """Who spoke last before the speaker of *last*; None at the beginning."""
    speaker = found[last].speaker
    earlier = (found[place] for place in range(last - 1, max(-1, last - 1 - _TALK), -1))
    return next((p.speaker for p in earlier if p.speaker != speaker and not p.is_outcome), None)


def _context(asked: Passage, answer: Passage) -> tuple[Word, ...]:
    said = {word.key for word in answer.words} | asked.vocabulary.second
    return tuple(w for w in _content(asked) if w.key not in said)[:_MAX_CONTEXT]


def _content(p: Passage) -> list[Word]:
    slight = p.vocabulary.slight
    return [w for w in p.words if not w.dropped and w.key not in slight]
