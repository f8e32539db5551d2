"""Sentences that say little alone: which ones they go on from, and the question that they answer."""

from collections.abc import Sequence

from remanence.dates import resolve_dates
from remanence.dates.local_time import is_other_day
from remanence.notes import one_line
from remanence.observers.extractive.passage import ASKS, Quotation
from remanence.observers.extractive.sentence_scores import is_dependent, is_filler
from remanence.observers.extractive.sentences import Span
from remanence.observers.learned.features import tag
from remanence.observers.learned.score import Scores, scorer
from remanence.types import Message

_AFTERTHOUGHT_BYTES = 16
"""Size in UTF-8 of what is hardly a sentence: a word or two, five characters of Chinese."""
_FEW_BYTES = 24
"""Size in UTF-8 of a few words, which stay with what follows them. As answers they cost notes at a
fifth a hundredth of what they should tell, and longer notes nothing; 40 would cost both more."""
_MAY_DEPEND = 0.0
"""Score from which six in ten sentences of users are marked as dependent, by cross-validation; below it
two in ten are."""
_BRIEF_BYTES = 40
"""Size in UTF-8 of a few words, 13 characters of Chinese."""
_MAX_JOINED = 240
"""Characters of sentences that are one passage, as one explains the others."""
_MAX_QUESTION = 100
"""Characters of a question that is quoted."""
_MAX_PROPOSAL = 160
"""Characters of a statement that is quoted, as a proposal that somebody takes up."""
_QUOTES = ' "“”'
_PERSONAL = 2.0
"""How far above its cutoff the score of a fact about the user surely tells of its speaker; by
cross-validation, bounds from -0.5 to 3 join alike."""
_SPEAKER = frozenset({"i", "my", "we", "our"})


def is_afterthought(sentence: str, scores: Scores) -> bool:
    """Return whether a sentence depends on others or is a word or two that qualify one: "Only on Linux."."""
    is_short = len(sentence.encode()) <= _AFTERTHOUGHT_BYTES
    return is_dependent(scores) or (is_short and not is_filler(scores))


def says_little(sentence: str, scores: Scores) -> bool:
    """Return whether a sentence depends on others or is brief and tells nothing of its speaker.

    Of the statements of users that say little alone it finds 48 % by cross-validation, and 55 % of
    those that it finds do; in `data/notes/*/talks*.txt`, where more do, 47 and 74 %.
    """
    is_brief = len(sentence.encode()) <= _BRIEF_BYTES and not is_filler(scores)
    return is_dependent(scores) or (is_brief and _tells_nothing_of_speaker(sentence, scores))


def is_fragment(sentence: str, scores: Scores, alone: Scores) -> bool:
    """Return whether a sentence depends on others and tells nothing of its speaker, read *alone*."""
    return is_dependent(scores) and _tells_nothing_of_speaker(sentence, alone)


def may_lack_words(sentence: str, alone: Scores) -> bool:
    """Return whether a sentence that answers no question may lack words: it is brief or depends *alone*."""
    return is_dependent(alone) or len(sentence.encode()) <= _BRIEF_BYTES


def names_speaker(sentence: str) -> bool:
    """Return whether a sentence has a word for its speaker, such as "I" or "our"."""
    return any(not _SPEAKER.isdisjoint(classes) for _, classes in tag(sentence))


def is_remark(text: str, scores: Scores) -> bool:
    """Return whether a text is a few words that are not worth noting."""
    return len(text.encode()) <= _BRIEF_BYTES and is_filler(scores)


def may_join(text: str, before: Span, span: Span, scores: Scores) -> bool:
    """Return whether sentences, of these scores, are near the next one and say what it may lack."""
    is_filling = is_filler(scores) and not any(map(str.isdigit, text[before.start : before.end]))
    return is_near(text, before, span) and not is_filling


def is_near(text: str, before: Span, span: Span) -> bool:
    """Return whether sentences are in one line with the next one, and short enough to be one passage."""
    return "\n" not in text[before.start : span.start] and span.end - before.start <= _MAX_JOINED


def is_few_words(text: str) -> bool:
    """Return whether a text is a few words that ask nothing: "Push."."""
    return _is_brief(text) and not text.rstrip().endswith(ASKS)


def may_depend(scores: Scores) -> bool:
    """Return whether a sentence of these scores more likely depends on others than not."""
    return scores["dependent"] >= _MAY_DEPEND


def join_scores(first: Scores, second: Scores) -> Scores:
    """Return the scores of two sentences as one, which depends on others as the first does."""
    best = {head: max(score, second[head]) for head, score in first.items()}
    return {**best, "dependent": first["dependent"]}


def find_question(ending: Sequence[str], asked: Message, answer: Message) -> Quotation | None:
    """Return the question of a few words, with the sentence before it, or the short one at an end.

    None as for `find_answered`.
    """
    if not one_line(ending[-1]).strip(_QUOTES).endswith(ASKS):
        return None
    return find_end(ending, asked, answer, is_vague=_is_brief(ending[-1]))


def find_end(
    ending: Sequence[str], before: Message, answer: Message, *, is_vague: bool
) -> Quotation | None:
    """Return the sentence that a message ends with, with the one before it if it is vague.

    None as for `find_answered`.
    """
    whole = find_answered(" ".join(ending), before, answer) if is_vague else None
    return whole or find_answered(ending[-1], before, answer)


def find_answered(last: str, before: Message, answer: Message) -> Quotation | None:
    """Return the end of a message if it is short and somebody else goes on the same day."""
    text = one_line(last).strip(_QUOTES)
    if not text or len(text) > (_MAX_QUESTION if text.endswith(ASKS) else _MAX_PROPOSAL):
        return None
    return quote(text, before) if goes_on(before, answer) else None


def goes_on(before: Message, answer: Message) -> bool:
    """Return whether an answer is by somebody else, and of the same day."""
    said_at, at = before.created_at, answer.created_at
    is_long_ago = said_at is not None and at is not None and is_other_day(said_at, at)
    return before.speaker != answer.speaker and not is_long_ago


def quote(text: str, source: Message) -> Quotation:
    """Return words of a message as a quotation, with resolved dates."""
    said_at = source.created_at
    return Quotation(source.seq, resolve_dates(text, said_at) if said_at else text)


def _tells_nothing_of_speaker(sentence: str, scores: Scores) -> bool:
    return scorer().over(scores, "personal") < _PERSONAL and not names_speaker(sentence)


def _is_brief(text: str) -> bool:
    return len(text.encode()) <= _FEW_BYTES
