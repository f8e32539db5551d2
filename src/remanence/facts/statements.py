"""Statements of users: sentences, with those and with the words before without which they say little."""

import re
from collections import deque
from collections.abc import Iterator, Sequence
from operator import itemgetter
from typing import NamedTuple

from remanence.dates import resolve_dates
from remanence.facts.beside_questions import asked_to_remember, stated_beside
from remanence.facts.lines import (
    MAX_CHARACTERS,
    expresses_wish,
    is_own,
    is_request_to_forget,
    may_state,
    states,
)
from remanence.facts.meaning import meaning, meaning_of
from remanence.facts.relations import have_other_owners
from remanence.facts.requests import asks_for_own, points_back, without_reason
from remanence.facts.tags import STATEMENTS
from remanence.notes.redact import MARK, redact
from remanence.observers.extractive.dependence import (
    find_end,
    is_fragment,
    is_remark,
    join_scores,
    may_join,
    may_lack_words,
    names_speaker,
    says_little,
)
from remanence.observers.extractive.passage import Quotation
from remanence.observers.extractive.sentence_scores import (
    is_dependent,
    is_filler,
    is_standing,
)
from remanence.observers.extractive.sentences import QUESTION_MARK, Span
from remanence.observers.learned.answers import needs_question
from remanence.observers.learned.features import Line
from remanence.observers.learned.forgetting import may_request
from remanence.observers.learned.revisions import (
    MAX_BACK,
    MAX_SECONDS,
    digits_apart,
    score_of_revision,
)
from remanence.observers.learned.score import Scores, scorer
from remanence.observers.learned.statements import alone
from remanence.observers.spoken import SpokenText, spoken_texts
from remanence.types import Fact, Message
from remanence.wire.parts import fold_name

_LIKELY_DEPENDENT = -1.0
"""Score from which a statement is joined to a sentence before it that is none.

In conversations that no fit has seen, some six in ten such pairs are clearer than the statement alone,
and most others only longer; from there to -2, 45 % are clearer.
"""
_MAX_APART = 2
"""By how many digits two numbers differ that are about the same size."""
_END = 2
"""Sentences at the end of a reply that an answer may go on from."""
_QUOTES_ONCE = re.compile(r"“[^“”]*” – [^“”]*")


class Statement(NamedTuple):
    """Sentences of a message that a user states, with the scores of them as one.

    The first may depend on what is `quoted`: an earlier statement that it gives another value, and a
    question or a proposal in the message before. If it `forgets`, it is no statement, but a request
    to forget one: its `referent`, the one before it, if it has no words of its own for one.
    """

    text: str
    lines: tuple[Line, ...]
    scores: Scores
    source: Message
    quoted: tuple[Quotation, ...] = ()
    forgets: bool = False
    referent: "Statement | None" = None

    @property
    def summary(self) -> str:
        """The statement as a fact has it: dates are resolved, secrets redacted."""
        if self.referent is not None:
            return self.referent.summary
        said = summarize(self.text, self.source)
        for quotation in reversed(self.quoted):
            said = redact(quotation.before(said))
        return said

    @property
    def first_seq(self) -> int:
        return self.quoted[0].seq if self.quoted else self.source.seq


class _Passage(NamedTuple):
    """Sentences of a text that are one statement, if they are one at all."""

    span: Span
    lines: tuple[Line, ...]
    scores: Scores


def statements(messages: Sequence[Message]) -> Iterator[Statement | None]:
    """Yield what users state in messages or ask to forget, None after each step.

    What a sentence states beside its question is a statement of its own. A sentence that says little
    is joined to those before it in its line. One that opens its message is preceded by the question
    or the proposal that it answers, and is left out if there is neither. One that gives a statement
    shortly before another value is preceded by that. A request to forget that surely points back, and
    declines no offer, means the statement which its speaker made right before it.
    """
    reply: SpokenText | None = None
    before: SpokenText | None = None
    hands_over_text = False
    earlier: deque[Statement] = deque(maxlen=MAX_BACK)
    latest: dict[str, Statement] = {}
    for said in spoken_texts(messages):
        if said is None:
            yield None
            continue
        if before is not None and before.message is not said.message:
            reply = _as_handed_over(before) if hands_over_text else before
        if said.role == "user":
            for statement in _statements_of(said, reply, earlier, latest):
                if statement is not None and not statement.forgets:
                    earlier.append(statement)
                yield statement
            hands_over_text = any(line.is_handed_over for line in said.lines)
        before = said


def statement_lines(messages: Sequence[Message]) -> Iterator[Line]:
    """Yield the sentences of users; before one that asks, what it states besides."""
    for said in filter(None, spoken_texts(messages)):
        if said.role == "user":
            yield from (line for _, line in _units(said))


def summarize(text: str, source: Message) -> str:
    """Return words of a message as a fact has them: dates are resolved, secrets redacted."""
    said = resolve_dates(text, source.created_at) if source.created_at else text
    return redact(" ".join(said.split()))


def quotes_once(fact: Fact) -> bool:
    """Return whether a fact is surely a statement with one quotation: it is from two messages alone.

    More quotation marks may be those of a third message, as may what a redaction replaced.
    """
    text = meaning(fact).text
    is_whole = fact.made_by.startswith(STATEMENTS) and MARK not in text
    return is_whole and _QUOTES_ONCE.fullmatch(text) is not None


def is_user(source: Message, user: str) -> bool:
    """Return whether the speaker of a message of the role `user` is the user of that id.

    The name is compared as it was sent: one without a visible character is no user's.
    """
    return fold_name(source.name or "user") in ("user", fold_name(user))


def _statements_of(
    said: SpokenText,
    reply: SpokenText | None,
    earlier: Sequence[Statement],
    latest: dict[str, Statement],
) -> Iterator[Statement | None]:
    """Yield what a text states or asks to forget, None after each step.

    The *latest* statement of each speaker is that behind which they have said nothing but remarks.
    """
    before = _end(reply, said.message) if reply else None
    opens, is_answered = True, False
    for span, lines, scores in _passages(said):
        first, text = lines[0], said.text[span.start : span.end]
        last = latest.get(said.message.speaker)
        is_interjection = is_filler(scores) and not QUESTION_MARK.search(first.text)
        if not is_interjection:
            latest.pop(said.message.speaker, None)
        if is_request_to_forget(first):
            request = Statement(text, lines, scores, said.message, forgets=True)
            if not (opens and _is_offer(reply, before)):
                request = request._replace(referent=_find_referent(request, last))
            yield request
            yield None
            continue
        asked = opens and before is not None and before.asks
        depends = needs_question(first) if asked else is_dependent(scores)
        stands_alone = expresses_wish(first) or (is_standing(first.text, scores) and not depends)
        lacks = not stands_alone and (depends if asked else says_little(first.text, scores))
        own = scorer().score(alone(first))
        may_lack = asked or may_lack_words(first.text, own)
        is_unclear = lacks and may_lack and is_fragment(first.text, scores, own)
        is_unclear = is_unclear or asks_for_own(text)
        revised: tuple[Quotation, ...] = ()
        answered: tuple[Quotation, ...] = ()
        if reply and opens and not stands_alone and may_state(first):
            revised = _find_revised(text, said.message, reply, earlier)
        goes_on = revised or is_unclear or (lacks and not is_answered and before and before.asks)
        if before and opens and goes_on:
            answered = (before,)
        if revised or ((answered or not is_unclear) and any(map(states, lines))):
            statement = Statement(text, lines, scores, said.message, (*revised, *answered))
            latest[said.message.speaker] = statement
            yield statement
            is_answered = True
        opens = opens and not revised and is_interjection
        yield None


def _is_offer(reply: SpokenText | None, before: Quotation | None) -> bool:
    """Return whether a reply, or the end *before* an answer, asks or offers what can be declined."""
    if before is not None or reply is None or reply.role != "assistant":
        return before is not None
    return any(QUESTION_MARK.search(line.text) for line in reply.lines)


def _find_referent(request: Statement, last: Statement | None) -> Statement | None:
    """Return the *last* statement of a speaker if a request soon after it surely points back."""
    if last is None or not _is_soon_after(last.source, request.source):
        return None
    return last if points_back(request.lines[0], last.text) else None


def _find_revised(
    words: str, source: Message, reply: SpokenText, earlier: Sequence[Statement]
) -> tuple[Quotation, ...]:
    """Find the statement shortly before that words after a reply give another value.

    Of some that may be, it is rather one with a number of about the same size; of those with equal
    scores the one with the most similar size, or else the latest.
    """
    replied = " ".join(line.text for line in reply.lines[-_END:])
    scored = [
        (score_of_revision(one.text, replied, words), one)
        for one in reversed(earlier)
        if one.source.speaker == source.speaker != reply.message.speaker
        and not have_other_owners(meaning_of(one.text), meaning_of(words))
        and one.source.seq < reply.message.seq
        and _is_soon_after(one.source, source)
    ]
    found = [(score, digits_apart(one.text, words), one) for score, one in scored if score >= 0]
    ranked = [(apart <= _MAX_APART, score, -apart, one) for score, apart, one in found]
    best = max(ranked, key=itemgetter(0, 1, 2))[-1] if ranked else None
    if best is None or len(best.summary) > MAX_CHARACTERS:
        return ()
    return (*best.quoted, Quotation(best.source.seq, summarize(best.text, best.source)))


def _is_soon_after(earlier: Message, later: Message) -> bool:
    if later.seq - earlier.seq > MAX_BACK:
        return False
    if earlier.created_at is None or later.created_at is None:
        return True
    return (later.created_at - earlier.created_at).total_seconds() <= MAX_SECONDS


def _passages(said: SpokenText) -> Iterator[_Passage]:
    """Yield the sentences of a text, each with those after it that say little without it."""
    passage: _Passage | None = None
    for span, line in _units(said):
        own = _Passage(span, (line,), scorer().score(line))
        joined = _join(said.text, passage, own) if passage else None
        if passage and not joined:
            yield passage
        passage = joined or own
    if passage:
        yield passage


def _units(said: SpokenText) -> Iterator[tuple[Span, Line]]:
    """Yield the sentences of a text; before one that asks, what it states besides or asks to remember.

    What stands beside a request to forget is what it names.
    """
    for span, line in zip(said.spans, said.lines, strict=True):
        is_short = len(line.text) <= MAX_CHARACTERS
        if is_short and QUESTION_MARK.search(line.text):
            if favor := asked_to_remember(line, span):
                yield favor
            elif not may_request(line):
                yield from stated_beside(line, span)
        yield span, without_reason(line) if is_short else line


def _join(text: str, passage: _Passage, own: _Passage) -> _Passage | None:
    """Join a passage of a text and the next sentence if that says little without it, or may do so."""
    (line,) = own.lines
    if line.is_quoted or passage.lines[-1].is_quoted or QUESTION_MARK.search(line.text):
        return None
    if expresses_wish(line) or may_request(line) or may_request(passage.lines[-1]):
        return None
    lacks = says_little(line.text, own.scores) or _explains(passage, own)
    if not (lacks or _corrects(passage, own)):
        return None
    if not may_join(text, passage.span, own.span, passage.scores):
        return None
    span = Span(passage.span.start, own.span.end)
    return _Passage(span, (*passage.lines, line), join_scores(passage.scores, own.scores))


def _explains(passage: _Passage, own: _Passage) -> bool:
    """Return whether a passage that states nothing likely says what the statement after it is about."""
    if is_dependent(passage.scores) or QUESTION_MARK.search(passage.lines[-1].text):
        return False
    likely = own.scores["dependent"] >= _LIKELY_DEPENDENT
    if not likely or names_speaker(own.lines[0].text):
        return False
    return any(map(states, own.lines)) and not any(map(states, passage.lines))


def _corrects(passage: _Passage, own: _Passage) -> bool:
    """Return whether a correction that is no statement itself follows one: "Not true: it's in May."."""
    is_correction = scorer().over(own.scores, "corr") >= 0
    return is_correction and any(map(states, passage.lines)) and not any(map(states, own.lines))


def _end(said: SpokenText, answer: Message) -> Quotation | None:
    """Return the short sentence that a text ends with, "Shall I?" with the one before it.

    None for a remark such as "Good morning!", for a statement that is quoted or translated, and for
    one of another member of a group: only an agent's proposal is taken up, as a member may speak of
    themselves.
    """
    if said.role == "tool" or not said.lines:
        return None
    ending = said.lines[-_END:]
    scores = scorer().score(ending[-1])
    is_vague = is_filler(scores) or says_little(ending[-1].text, scores)
    texts = [line.text for line in ending]
    found = find_end(texts, said.message, answer, is_vague=is_vague)
    if found is None or found.asks:
        return found
    is_other = said.role == "user" or not is_own(ending[-1])
    return None if is_other or is_remark(found.text, scores) else found


def _as_handed_over(reply: SpokenText) -> SpokenText:
    """Return a reply to a message that hands over a text: it may be that in other words."""
    lines = tuple(line._replace(is_handed_over=True) for line in reply.lines)
    return reply._replace(lines=lines)
