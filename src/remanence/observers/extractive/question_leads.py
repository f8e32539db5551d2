"""What a short answer or verdict is about: "favourite book: Momo" rather than "Momo"."""

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
    """The same passages, short answers led by what they were asked."""
    answered = list(found)
    for index, p in enumerate(found):
        yield
        if p.context or p.is_question or p.is_outcome:
            continue
        if _is_reply(found, index):
            p = answered[index] = replace(p, is_reply=True)  # noqa: PLW2901
        if index and p.seq != found[index - 1].seq:
            asked = _question(found, index)
            if asked is not None and _is_short(p):
                context = _context(found[asked], p)
                if context:
                    seq = found[asked].seq
                    answered[index] = replace(p, first_seq=seq, context=context)
                    answered[asked] = replace(found[asked], is_superseded=True)
        if _is_verdict(p) and not answered[index].context:
            topic = _topic(found, index)
            if topic is not None and (context := _context(found[topic], p)):
                seq = found[topic].seq
                answered[index] = replace(p, first_seq=seq, context=context)
    return tuple(answered)


def _is_reply(found: Sequence[Passage], index: int) -> bool:
    """Whether a clause opens an answer to an agent in few words: what its speaker takes of it."""
    p = found[index]
    opens = index > 0 and found[index - 1].seq != p.seq and found[index - 1].speaker == AGENT
    return opens and p.speaker != AGENT and 0 < _size(p) <= _FEW_WORDS


def _is_verdict(p: Passage) -> bool:
    """Whether a clause decides or leaves open in so few words that it may not say what."""
    return (p.cue.stands or p.cue.corrects) and _size(p) <= _FEW_WORDS


def _topic(found: Sequence[Passage], index: int) -> int | None:
    """The place of the question that a verdict is about, asked by who gives it.

    That is one before it in the message, or one that somebody answered since. A decision without
    a word of its own is about what its speaker told last. For others, what the message says before
    them is topic enough.
    """
    p, own = found[index], found[index].seq
    tells = _size(p) > 1 or not (p.cue.tag == "Decision" or p.cue.corrects)
    first: int | None = None
    for place in range(index - 1, max(-1, index - 1 - _TOPIC_LOOK_BACK), -1):
        earlier = found[place]
        if earlier.speaker != p.speaker or earlier.is_outcome:
            continue
        if _is_far(earlier, p) or (first is not None and earlier.seq != own):
            break
        said = _size(earlier)
        if earlier.is_question and said > 1:
            return place
        if said and earlier.seq == p.seq and not tells:
            return place if earlier.sentence != p.sentence else None
        if said > _FEW_WORDS:
            if earlier.seq == p.seq:
                return None
            own, first = earlier.seq, place
    return None if tells else first


def _is_far(earlier: Passage, p: Passage) -> bool:
    """Whether so much time lies between them that something else may be meant."""
    if earlier.at is None or p.at is None:
        return False
    return (p.at - earlier.at).total_seconds() > _TOPIC_SECONDS


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
    if _addressee(found, index - 1) not in (None, found[index].speaker):
        return None
    for place in range(index - 1, max(-1, index - 1 - _LOOK_BACK), -1):
        p = found[place]
        if p.seq == before.seq and p.is_question and not p.is_caption:
            return None if _is_far(p, found[index]) else place
    return None


def _asks_too_much(found: Sequence[Passage], last: int) -> bool:
    """Whether the message that ends at *last* asks so much that nobody knows what is answered."""
    seq, asked = found[last].seq, set[int]()
    for place in range(last, -1, -1):
        if found[place].seq != seq:
            break
        if found[place].is_question:
            asked.add(found[place].sentence)
            if len(asked) > _MAX_QUESTIONS:
                return True
    return False


def _addressee(found: Sequence[Passage], last: int) -> str | None:
    """Who spoke last before the speaker of *last*; None at the beginning."""
    speaker = found[last].speaker
    earlier = (found[place] for place in range(last - 1, max(-1, last - 1 - _TALK), -1))
    return next((p.speaker for p in earlier if p.speaker != speaker and not p.is_outcome), None)


def _context(asked: Passage, answer: Passage) -> tuple[Word, ...]:
    said = {word.key for word in answer.words} | asked.vocabulary.second
    return tuple(w for w in _content(asked) if w.key not in said)[:_MAX_CONTEXT]


def _size(p: Passage) -> int:
    """How many words of its own a passage has; of a script without spaces, four characters are one."""
    own = _content(p)
    return sum(len(w.key) for w in own) // _WORD_CHARS if p.vocabulary.small else len(own)


def _content(p: Passage) -> list[Word]:
    return content(p.words, p.vocabulary)
