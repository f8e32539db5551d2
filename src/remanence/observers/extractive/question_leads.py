"""Leads short answers and verdicts by their subject: "favourite book: Momo", not "Momo"."""

from collections.abc import Generator, Sequence
from dataclasses import replace

from remanence.observers.extractive.passage import AGENT, Passage
from remanence.observers.extractive.render import Word, content, terms

_SHORT_ANSWER = 4
_MAX_CONTEXT = 5
_MAX_CHARS = 80
_LOOK_BACK = 3
_FEW_WORDS = 3
_WORD_CHARS = 4
_TOPIC_SECONDS = 12 * 3600
_MAX_QUESTIONS = 2
_TALK = 60
_TOPIC_LOOK_BACK = 80


def with_questions(found: Sequence[Passage]) -> Generator[None, None, tuple[Passage, ...]]:
    """Return the passages, short answers led by the words of their question; yields in between."""
    answered = list(found)
    for index, p in enumerate(found):
        yield
        if p.context or p.is_question or p.is_outcome:
            continue
        if _is_reply(found, index):
            p = answered[index] = replace(p, is_reply=True)  # noqa: PLW2901
        if index and p.seq != found[index - 1].seq:
            question = _question(found, index)
            if question is not None and _is_short(p):
                context = _context(found[question], p)
                if context:
                    seq = found[question].seq
                    answered[index] = replace(p, first_seq=seq, context=context)
                    answered[question] = replace(found[question], is_superseded=True)
        if _is_verdict(p) and not answered[index].context:
            topic = _topic(found, index)
            if topic is not None and (context := _context(found[topic], p)):
                seq = found[topic].seq
                answered[index] = replace(p, first_seq=seq, context=context)
    return tuple(answered)


def _is_reply(found: Sequence[Passage], index: int) -> bool:
    """Return whether a clause is the short opening of an answer to an agent."""
    p = found[index]
    opens = index > 0 and found[index - 1].seq != p.seq and found[index - 1].speaker == AGENT
    return opens and p.speaker != AGENT and 0 < _size(p) <= _FEW_WORDS


def _is_verdict(p: Passage) -> bool:
    """Return whether a clause decides, defers or corrects too briefly to name its subject."""
    return (p.cue.stands or p.cue.corrects) and _size(p) <= _FEW_WORDS


def _topic(found: Sequence[Passage], index: int) -> int | None:
    """Return the index of the passage a verdict is about, an earlier one of its speaker, or None.

    It is a question, in the same message or answered since. A decision without words of its own
    may refer to its speaker's last statement. Other verdicts need no lead if their message
    states the topic before them.
    """
    p, own = found[index], found[index].seq
    has_subject = _size(p) > 1 or not (p.cue.tag == "Decision" or p.cue.corrects)
    first: int | None = None
    for place in range(index - 1, max(-1, index - 1 - _TOPIC_LOOK_BACK), -1):
        earlier = found[place]
        if earlier.speaker != p.speaker or earlier.is_outcome:
            continue
        if _is_far(earlier, p) or (first is not None and earlier.seq != own):
            break
        size = _size(earlier)
        if earlier.is_question and size > 1:
            return place
        if size and earlier.seq == p.seq and not has_subject:
            return place if earlier.sentence != p.sentence else None
        if size > _FEW_WORDS:
            if earlier.seq == p.seq:
                return None
            own, first = earlier.seq, place
    return None if has_subject else first


def _is_far(earlier: Passage, p: Passage) -> bool:
    """Return whether the passages are too far apart in time to share a topic."""
    if earlier.at is None or p.at is None:
        return False
    return (p.at - earlier.at).total_seconds() > _TOPIC_SECONDS


def _is_short(p: Passage) -> bool:
    return (
        len(p.source) <= _MAX_CHARS
        and sum(len(terms(word.key)) for word in _content(p)) <= _SHORT_ANSWER
    )


def _question(found: Sequence[Passage], index: int) -> int | None:
    """Return the index of the last question of the message before, if another speaker asked it."""
    before = found[index - 1]
    if before.speaker == found[index].speaker or _asks_too_much(found, index - 1):
        return None
    if _addressee(found, index - 1) not in (None, found[index].speaker):
        return None
    for place in range(index - 1, max(-1, index - 1 - _LOOK_BACK), -1):
        p = found[place]
        if p.seq == before.seq and p.is_question and not p.is_caption:
            return None if _is_far(p, found[index]) else place
    return None


def _asks_too_much(found: Sequence[Passage], last: int) -> bool:
    """Return whether the message ending at *last* has too many questions to match an answer."""
    seq, questions = found[last].seq, set[int]()
    for place in range(last, -1, -1):
        if found[place].seq != seq:
            break
        if found[place].is_question:
            questions.add(found[place].sentence)
            if len(questions) > _MAX_QUESTIONS:
                return True
    return False


def _addressee(found: Sequence[Passage], last: int) -> str | None:
    """Return the last speaker before the speaker of *last*, None at the beginning."""
    speaker = found[last].speaker
    earlier = (found[place] for place in range(last - 1, max(-1, last - 1 - _TALK), -1))
    return next((p.speaker for p in earlier if p.speaker != speaker and not p.is_outcome), None)


def _context(question: Passage, answer: Passage) -> tuple[Word, ...]:
    redundant = {word.key for word in answer.words} | question.vocabulary.second
    return tuple(w for w in _content(question) if w.key not in redundant)[:_MAX_CONTEXT]


def _size(p: Passage) -> int:
    """Return the number of content words, four characters each in a script without spaces."""
    own = _content(p)
    return sum(len(w.key) for w in own) // _WORD_CHARS if p.vocabulary.small else len(own)


def _content(p: Passage) -> list[Word]:
    return content(p.words, p.vocabulary)
