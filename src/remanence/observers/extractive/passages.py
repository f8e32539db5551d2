"""Splits messages into passages, the clauses from which the observer selects."""

import math
import re
from collections.abc import Generator, Iterator, Sequence
from dataclasses import replace
from datetime import datetime
from itertools import chain, pairwise
from typing import NamedTuple

from remanence.dates import DateMention, finding_dates
from remanence.dates.local_time import local_times
from remanence.languages.vocabulary import NO_VOCABULARY, Vocabulary, vocabulary_of
from remanence.observers.extractive.event_dates import format_date
from remanence.observers.extractive.outcomes import Row, rows_of_tools
from remanence.observers.extractive.passage import (
    AGENT,
    ASKS,
    MAX_LABEL_WORDS,
    TOOL,
    Passage,
    Quotation,
    question_mark_of,
)
from remanence.observers.extractive.render import Word, drop_address, drop_light_words, words
from remanence.observers.extractive.scored_text import ScoredText, relate, score_texts
from remanence.observers.extractive.sentence_scores import (
    is_borrowed,
    is_constraint,
    is_dependent,
    is_filler,
    is_open,
    is_standing,
    tag_of,
)
from remanence.observers.extractive.sentences import Span, clauses
from remanence.observers.learned.features import Line
from remanence.observers.learned.forgetting import score_of_request
from remanence.observers.learned.openings import hands_over_in_sentence, head_of
from remanence.observers.learned.score import Scores, scorer
from remanence.types import Message, Note

_MAX_ABOUT = 10
_MAX_ROWS = 24
"""Rows of a tool's results from which notes are chosen."""
_BRIEF_CHARS = 60
_MAX_WHOLE = 160
"""Characters of a sentence of an agent's user that is one passage."""
_DATED_AT_ONCE = 1000
_OPENS_DATE = re.compile(r"[\"“（(「『《]{1,9}$|(?<=\w)['’]$")
"""Marks that belong to the date after them: opening ones, the apostrophe of "dall'oggi"."""
_CLOSES_DATE = re.compile(r"[\"”)）」』》,;:、，]+")
_QUOTES_LINE = re.compile(r"(?:>\s*)*")
_GLUED = ("'", "’", "（", "(")
_DIGIT = re.compile(r"\d")
_COLONS = (":", "：")
_COMMAS = (",", "，")
_ENDS = ".!。！:："
"""Marks at the end of an opening that its note leaves out."""


def passages(
    messages: Sequence[Message], known: Sequence[Note] = ()
) -> Generator[None, None, tuple[Passage, ...]]:
    """Return the passages of all observable messages; yields between messages.

    The *known* notes may show that people talk with an agent.
    """
    times = local_times(messages)
    local = [m.replace(created_at=times.get(m.seq, m.created_at)) for m in messages]
    texts = yield from score_texts(local)
    is_of_people = _is_of_people(messages, known)
    if not is_of_people:
        yield from relate(texts)
    names = _call_names(messages)
    found: list[Passage] = []
    call_arguments: dict[str, str] = {}
    languages: dict[str, Vocabulary] = {}
    for text in texts:
        language = _language(text.text, text.message.speaker, languages)
        said = _passages_of_text(text, names, language, is_of_people=is_of_people)
        tools = _passages_of_tools(
            text.message, call_arguments, text.before, is_of_people=is_of_people
        )
        # What stands beside results is said after them, calls after what stands beside them.
        for p in chain(tools, said) if text.message.tool_results else chain(said, tools):
            if p is not None:
                found.append(p)
            yield
    return tuple(found)


def _is_of_people(messages: Sequence[Message], known: Sequence[Note]) -> bool:
    """Return whether people talk, without an agent: whoever answers has a name.

    Where nobody answers, several with a name talk to each other, and no agent or tool has a note.
    """
    if answering := [message for message in messages if message.role == "assistant"]:
        return all(message.name for message in answering)
    speakers = {message.speaker for message in messages}
    earlier = {note.speaker for note in known if note.speaker}
    is_named = all(message.name for message in messages)
    with_agent = any(name.partition(" ")[0] in (AGENT, TOOL) for name in earlier)
    return is_named and len(speakers | earlier) > 1 and not with_agent


def _language(text: str, speaker: str, languages: dict[str, Vocabulary]) -> Vocabulary:
    """Return the table of a text's language; a short text may get its speaker's previous one."""
    own = vocabulary_of(text)
    if len(text) > _BRIEF_CHARS:
        languages[speaker] = own
    elif not own.small:
        return languages.get(speaker, own)
    return own


def _own(text: str, around: Vocabulary) -> Vocabulary:
    own = vocabulary_of(text)
    return own if own.small or around == NO_VOCABULARY else around


class _Sentence(NamedTuple):
    """A sentence of a text with its clauses, and the passage that each of them becomes."""

    span: Span
    clauses: tuple[Span, ...]
    passage: Passage
    """What the passages of all clauses have in common."""
    keeps_all_words: bool
    answered: Quotation | None
    """The question or the options without which the first clause says little."""
    chooses: bool


def _passages_of_text(
    whole: ScoredText, names: frozenset[str], vocabulary: Vocabulary, *, is_of_people: bool
) -> Generator[Passage | None, None, None]:
    """Yield the passages of a text, None between steps."""
    text, at = whole.text, whole.message.created_at
    dates = yield from _dates(text, at, Span(0, min(len(text), _DATED_AT_ONCE)))
    for sentence in _sentences_of(whole, vocabulary, is_of_people=is_of_people):
        if sentence.span.end > _DATED_AT_ONCE:
            dates = yield from _dates(text, at, sentence.span)
        common = sentence.passage
        own = () if common.is_quoted or is_borrowed(common.scores) else dates
        for place, clause in enumerate(sentence.clauses):
            inside = tuple(d for d in own if clause.start <= d.start and d.end <= clause.end)
            joints = [joint for joint in whole.joints if clause.start < joint < clause.end]
            parts = tuple(_joined_words(text, clause, joints, inside, at, common.vocabulary))
            if sentence.keeps_all_words:
                parts = tuple(word._replace(dropped=not word.text) for word in parts)
            elif not common.is_caption:
                parts = drop_light_words(drop_address(parts, names), common.vocabulary)
            passage = replace(
                common,
                source=text[clause.start : clause.end],
                words=parts,
                clause=place,
                is_question=common.is_question and clause.end + 8 > sentence.span.end,
                dates=inside,
            )
            yield passage if place else _with_answered(passage, sentence)


def _sentences_of(
    whole: ScoredText, text_vocabulary: Vocabulary, *, is_of_people: bool
) -> Iterator[_Sentence]:
    """Yield the sentences of a text; the words of somebody else are led by their opening."""
    text, message = whole.text, whole.message
    is_user = message.role == "user" and not is_of_people
    is_of_agent = message.role == "assistant" and not is_of_people
    opens = True
    handover, borrowed = (whole.handover() if is_user else None) or (None, Span(0, 0))
    introduction: int | None = None
    scored = zip(whole.spans, whole.scores, whole.leads(text_vocabulary), strict=True)
    for number, (span, scores, lead) in enumerate(scored):
        source = text[span.start : span.end]
        asks = source.rstrip("\"'”’) ").endswith(ASKS)
        is_caption, is_quoted = whole.is_caption(span), whole.is_quoted(span)
        chosen = whole.chosen(span) if is_user and not is_quoted else None
        asked = whole.question if opens and whole.depends_on_question(span, scores) else None
        answered = chosen or asked
        opens = opens and is_filler(scores) and not asks
        lays_down = is_user and not (is_quoted or is_caption)
        stands = lays_down and _stands(source, scores, asks=asks, answers=answered is not None)
        is_behind = borrowed.start <= span.start < borrowed.end and (stands or is_quoted)
        framing = handover if is_behind else introduction if is_user and is_quoted else None
        frame = "" if framing is None else whole.source(framing)
        is_sure = is_quoted or frame.endswith(_COLONS) or hands_over_in_sentence(frame)
        if not (is_quoted or _is_salutation(source, whole, introduction)):
            introduction = number
        opening = _opening(head_of(frame) if is_sure else frame, text_vocabulary)
        is_framed = bool(opening)
        if is_framed:
            stands, lays_down, is_quoted = False, False, True
        is_rule = stands or (lays_down and (asks or is_constraint(scores)))
        is_whole = is_rule or (lays_down and len(source) <= _MAX_WHOLE)
        inner = Span(span.start + 1, span.end - 1) if is_caption else span
        parts = (span,) if is_whole else tuple(clauses(text, inner))
        yield _Sentence(
            span,
            tuple(_without_mark(text, part) for part in parts) if is_framed else parts,
            Passage(
                seq=message.seq,
                at=message.created_at,
                speaker=message.speaker,
                source=source,
                words=(),
                vocabulary=text_vocabulary if source.isascii() else _own(source, text_vocabulary),
                sentence=number,
                context=opening if 0 < len(opening) <= MAX_LABEL_WORDS else lead,
                is_question=asks,
                is_caption=is_caption,
                is_quoted=is_quoted,
                is_framed=is_framed and is_sure,
                is_item=whole.is_item(span),
                is_user=is_user,
                is_of_agent=is_of_agent,
                is_of_people=is_of_people,
                is_rule=is_rule,
                is_standing=stands,
                scores=scores,
                tag="Fact" if is_quoted or (asks and not stands) else tag_of(scores),
            ),
            keeps_all_words=lays_down or is_of_agent or is_framed,
            answered=answered,
            chooses=chosen is not None,
        )


def _stands(source: str, scores: Scores, *, asks: bool, answers: bool) -> bool:
    """Return whether a user's sentence must never be lost; a request to forget is kept elsewhere."""
    is_vital = is_open(scores) or (not asks and is_standing(source, scores))
    is_clear = answers or not is_dependent(scores)
    return is_vital and is_clear and score_of_request(Line(source, "user")) < 0


def _opening(frame: str, vocabulary: Vocabulary) -> tuple[Word, ...]:
    """Return all words of what introduces the words of somebody else, if one of them has weight."""
    found = tuple(words(frame.rstrip(_ENDS), vocabulary, opens=True))
    if all(word.dropped for word in found):
        return ()
    return tuple(word._replace(dropped=not word.text) for word in found)


def _without_mark(text: str, clause: Span) -> Span:
    """Return a clause without the marks of a quoted line before it."""
    mark = _QUOTES_LINE.match(text, clause.start, clause.end)
    return Span(mark.end(), clause.end) if mark else clause


def _with_answered(passage: Passage, sentence: _Sentence) -> Passage:
    """Return the first passage of a sentence with what it answers, if it needs that."""
    answered = sentence.answered
    if answered is None:
        return passage
    context = tuple(words(answered.text, passage.vocabulary, opens=True))
    return replace(passage, reply_to=answered, context=context, chooses=sentence.chooses)


def _is_salutation(source: str, whole: ScoredText, introduction: int | None) -> bool:
    """Return whether a line ends with a comma behind a colon: "From my landlord:", "Dear Ms Ode,"."""
    if introduction is None or not source.endswith(_COMMAS):
        return False
    return whole.source(introduction).endswith(_COLONS)


def _dates(
    text: str, at: datetime | None, span: Span
) -> Generator[None, None, tuple[DateMention, ...]]:
    if at is None:
        return ()
    found = yield from finding_dates(text[span.start : span.end], at)
    return tuple(replace(d, start=d.start + span.start, end=d.end + span.start) for d in found)


def _joined_words(
    text: str,
    clause: Span,
    joints: Sequence[int],
    dates: Sequence[DateMention],
    said_at: datetime | None,
    vocabulary: Vocabulary,
) -> Iterator[Word]:
    """Yield the words of a passage, with a semicolon between its sentences."""
    for start, end in pairwise((clause.start, *joints, clause.end)):
        inside = [date for date in dates if start <= date.start and date.end <= end]
        found = list(_words(text, Span(start, end), inside, said_at, vocabulary))
        if found and end < clause.end and found[-1].text:
            said = text[start:end].rstrip()
            mark = question_mark_of(said) if said.endswith(ASKS) else ";"
            found[-1] = found[-1]._replace(text=f"{found[-1].text}{mark}")
        yield from found


def _words(
    text: str,
    clause: Span,
    dates: Sequence[DateMention],
    said_at: datetime | None,
    vocabulary: Vocabulary,
) -> Iterator[Word]:
    at, glued = clause.start, False
    for date in dates:
        before = text[at : date.start]
        plain = _OPENS_DATE.sub("", before)
        yield from words(plain, vocabulary, opens=at == clause.start, glued=glued)
        assert said_at is not None
        closes = _CLOSES_DATE.match(text, date.end, clause.end)
        end = closes.end() if closes else date.end
        shown = format_date(date, said_at, text[date.end : clause.end])
        yield Word(
            before[len(plain) :] + shown + text[date.end : end],
            f"{date.first} {text[at : clause.end][:24]}",
            is_date=True,
            glued=plain[-1:].isalnum() and plain == plain.rstrip(),
        )
        following = text[end : end + 1]  # a particle or a genitive is attached to the date
        at, glued = end, end == date.end and (following.isalnum() or following in _GLUED)
    yield from words(text[at : clause.end], vocabulary, opens=at == clause.start, glued=glued)


def _call_names(messages: Sequence[Message]) -> frozenset[str]:
    """Return the speakers' names and their short forms, in lower case."""
    full = {part.lower() for m in messages if m.name for part in m.name.split()}
    return frozenset(name[:length] for name in full for length in range(3, len(name) + 1))


def _passages_of_tools(
    message: Message, call_arguments: dict[str, str], before: Line | None, *, is_of_people: bool
) -> Iterator[Passage | None]:
    """Yield the passages of tool calls and of the best rows of results, None between steps."""
    found: dict[Row, Scores] = {}
    by_form: dict[str, Scores] = {}
    for row in rows_of_tools(message, call_arguments):
        if row is not None:
            form = _DIGIT.sub("0", row.text)
            if form not in by_form:
                by_form[form] = {} if row.is_call else scorer().score(Line(form, "tool", before))
            found[row] = by_form[form]
        yield None
    by_score = sorted((scores["output"] for scores in found.values() if scores), reverse=True)
    least = by_score[_MAX_ROWS] if len(by_score) > _MAX_ROWS else -math.inf
    previous = ""
    for row, scores in found.items():
        if scores and scores["output"] <= least:
            continue
        about = row.about if row.about != previous else ""
        previous = row.about
        yield Passage(
            seq=message.seq,
            at=message.created_at,
            speaker=row.speaker,
            source=row.text,
            words=tuple(words(row.text, NO_VOCABULARY, opens=False)),
            context=_beginning(about) if about not in row.text else (),
            vocabulary=NO_VOCABULARY,
            is_output=not row.is_call,
            is_call=row.is_call,
            is_of_agent=row.is_call and not is_of_people,
            scores=scores,
        )


def _beginning(text: str) -> tuple[Word, ...]:
    """Return the first words of the arguments of a call, and `…` in place of the others."""
    found = list(words(text, NO_VOCABULARY, opens=False))
    if len(found) > _MAX_ABOUT:
        found[_MAX_ABOUT - 1] = found[_MAX_ABOUT - 1]._replace(
            text=f"{found[_MAX_ABOUT - 1].text} …"
        )
    return tuple(found[:_MAX_ABOUT])
