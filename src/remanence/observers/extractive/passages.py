"""Splits messages into passages, the clauses from which the observer selects."""

import math
import re
from collections.abc import Generator, Iterator, Sequence
from dataclasses import replace
from datetime import datetime
from itertools import chain, pairwise

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


def _passages_of_text(
    whole: ScoredText, names: frozenset[str], message_vocabulary: Vocabulary, *, is_of_people: bool
) -> Generator[Passage | None, None, None]:
    """Yield the passages of a text, None between steps."""
    text, at, speaker = whole.text, whole.message.created_at, whole.message.speaker
    is_user = whole.message.role == "user" and not is_of_people
    is_of_agent = whole.message.role == "assistant" and not is_of_people
    dates = yield from _dates(text, at, Span(0, min(len(text), _DATED_AT_ONCE)))
    scored = zip(whole.spans, whole.scores, whole.leads(message_vocabulary), strict=True)
    opens = True
    handover, borrowed = (whole.handover() if is_user else None) or (None, Span(0, 0))
    introduction: int | None = None
    for number, (sentence, scores, lead) in enumerate(scored):
        if sentence.end > _DATED_AT_ONCE:
            dates = yield from _dates(text, at, sentence)
        caption, quoted = whole.is_caption(sentence), whole.is_quoted(sentence)
        source = text[sentence.start : sentence.end]
        asks = source.rstrip("\"'”’) ").endswith(ASKS)
        chosen = whole.chosen(sentence) if is_user and not quoted else None
        asked = whole.question if opens and whole.depends_on_question(sentence, scores) else None
        answered = chosen or asked
        opens = opens and is_filler(scores) and not asks
        lays_down = is_user and not (quoted or caption)
        standing = (
            lays_down
            and (is_open(scores) if asks else is_standing(source, scores) or is_open(scores))
            and not (is_dependent(scores) and answered is None)
            and score_of_request(Line(source, "user")) < 0
        )
        is_behind = borrowed.start <= sentence.start < borrowed.end and (standing or quoted)
        framing = handover if is_behind else introduction if is_user and quoted else None
        frame = "" if framing is None else whole.source(framing)
        is_sure = quoted or frame.endswith(_COLONS) or hands_over_in_sentence(frame)
        if not (quoted or _is_salutation(source, whole, introduction)):
            introduction = number
        frame = head_of(frame) if is_sure else frame
        opening = tuple(words(frame.rstrip(_ENDS), message_vocabulary, opens=True))
        context, is_framed = lead, any(not word.dropped for word in opening)
        if is_framed:
            standing, lays_down, quoted = False, False, True
            is_brief = len(opening) <= MAX_LABEL_WORDS
            context = tuple(w._replace(dropped=not w.text) for w in opening) if is_brief else lead
        rule = standing or (lays_down and (asks or is_constraint(scores)))
        is_whole = rule or (lays_down and len(source) <= _MAX_WHOLE)
        inside_marks = Span(sentence.start + 1, sentence.end - 1) if caption else sentence
        spans = [sentence] if is_whole else clauses(text, inside_marks)
        vocabulary = message_vocabulary if source.isascii() else _own(source, message_vocabulary)
        for place, clause in enumerate(spans):
            if is_framed and (mark := _QUOTES_LINE.match(text, clause.start, clause.end)):
                clause = Span(mark.end(), clause.end)  # noqa: PLW2901
            own = () if quoted or is_borrowed(scores) else dates
            inside = tuple(d for d in own if clause.start <= d.start and d.end <= clause.end)
            reply_to = None if place else answered
            joints = [joint for joint in whole.joints if clause.start < joint < clause.end]
            parts = tuple(_joined_words(text, clause, joints, inside, at, vocabulary))
            yield Passage(
                seq=whole.message.seq,
                at=at,
                speaker=speaker,
                source=text[clause.start : clause.end],
                words=_shorten(
                    parts,
                    names,
                    vocabulary,
                    whole=rule or lays_down or is_of_agent or is_framed,
                    caption=caption,
                ),
                vocabulary=vocabulary,
                sentence=number,
                clause=place,
                is_question=asks and clause.end + 8 > sentence.end,
                is_caption=caption,
                is_quoted=quoted,
                is_framed=is_framed and is_sure,
                is_item=whole.is_item(sentence),
                is_rule=rule,
                is_standing=standing,
                is_user=is_user,
                is_of_agent=is_of_agent,
                is_of_people=is_of_people,
                context=tuple(words(reply_to.text, vocabulary, opens=True))
                if reply_to
                else context,
                reply_to=reply_to,
                chooses=reply_to is not None and reply_to is chosen,
                dates=inside,
                scores=scores,
                tag="Fact" if quoted or (asks and not standing) else tag_of(scores),
            )


def _is_salutation(source: str, whole: ScoredText, introduction: int | None) -> bool:
    """Return whether a line ends with a comma behind a colon: "From my landlord:", "Dear Ms Ode,"."""
    if introduction is None or not source.endswith(_COMMAS):
        return False
    return whole.source(introduction).endswith(_COLONS)


def _shorten(
    parts: tuple[Word, ...],
    names: frozenset[str],
    vocabulary: Vocabulary,
    *,
    whole: bool,
    caption: bool,
) -> tuple[Word, ...]:
    """Return the words as a note has them: all of them, or without address and light words."""
    if whole:
        return tuple(word._replace(dropped=not word.text) for word in parts)
    if caption:
        return parts
    return drop_light_words(drop_address(parts, names), vocabulary)


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
