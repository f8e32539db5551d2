"""Splits messages into passages, the clauses from which the observer selects."""

import math
import re
from collections.abc import Container, Generator, Iterator, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from itertools import pairwise

from remanence.dates import DateMention, finding_dates, resolve_dates
from remanence.dates.local_time import local_times
from remanence.languages.vocabulary import NO_VOCABULARY, Vocabulary, vocabulary_of
from remanence.notes import one_line
from remanence.observers.extractive.event_dates import format_date
from remanence.observers.extractive.outcomes import Row, rows_of_tools
from remanence.observers.extractive.passage import AGENT, ASKS, Passage, Quotation
from remanence.observers.extractive.readable import readable_text
from remanence.observers.extractive.render import Word, drop_address, drop_light_words, words
from remanence.observers.extractive.sentence_scores import (
    is_borrowed,
    is_constraint,
    is_dependent,
    is_filler,
    is_open,
    is_standing,
    tag_of,
)
from remanence.observers.extractive.sentences import ITEM, Span, clauses, sentences
from remanence.observers.learned.features import Line, Role
from remanence.observers.learned.score import Scores, scorer
from remanence.types import Message

_AFTER_TEXT = 10_000
_MAX_ABOUT = 10
_MAX_ROWS = 24
"""Rows of a tool's results from which notes are chosen."""
_MAX_LABEL_WORDS = 5
_AFTERTHOUGHT_BYTES = 16
"""Size in UTF-8 of a sentence that is hardly one of its own: a word or two, in Chinese five characters."""
_BRIEF_CHARS = 60
_MAX_WHOLE = 160
"""Characters of a sentence of an agent's user that is one passage."""
_MAX_JOINED = 240
"""Characters of sentences that are one passage, as one explains the others."""
_MAX_QUESTION = 100
"""Characters of a question that a note quotes."""
_QUOTES = ' "“”'
_DATED_AT_ONCE = 1000
_OPENS_DATE = '"“（(「『《'
_CLOSES_DATE = re.compile(r"[\"”)）」』》,;:、，]+")
_DIGIT = re.compile(r"\d")
_CAPTION = re.compile(r"\[[^\[\]\n]+\]")


@dataclass(slots=True, kw_only=True)
class _Text:
    """The readable text of a message with its sentences and their scores."""

    message: Message
    text: str
    before: Line | None
    """The last line of the message before."""
    spans: list[Span] = field(default_factory=list)
    scores: list[Scores] = field(default_factory=list)
    joints: list[int] = field(default_factory=list)
    """Where sentences begin that were joined to the one before."""
    question: Quotation | None = None
    """The question that the message may answer."""

    def join_dependent(self, pasted: Container[str]) -> Iterator[None]:
        """Make one sentence of each and those after it that say little without it; yields in between."""
        spans, scores = self.spans, self.scores
        self.spans, self.scores = spans[:1], scores[:1]
        for span, own in zip(spans[1:], scores[1:], strict=True):
            first = self.spans[-1]
            before = self.text[first.start : span.start]
            is_near = "\n" not in before and span.end - first.start <= _MAX_JOINED
            says_something = not is_filler(self.scores[-1]) and before.rstrip() not in pasted
            depends = is_dependent(own) or _is_afterthought(self.text[span.start : span.end], own)
            if is_near and says_something and depends:
                best = {head: max(score, own[head]) for head, score in self.scores[-1].items()}
                self.scores[-1] = {**best, "dependent": self.scores[-1]["dependent"]}
                self.spans[-1] = Span(first.start, span.end)
                self.joints.append(span.start)
            else:
                self.spans.append(span)
                self.scores.append(own)
            yield

    def opens_line(self, span: Span) -> bool:
        start = span.start - len(ITEM) * self.is_item(span)
        return self.text[max(0, start - 1) : start] in ("", "\n")

    def is_item(self, span: Span) -> bool:
        return self.text.startswith(ITEM, max(0, span.start - len(ITEM)))

    def leads(self, vocabulary: Vocabulary) -> Iterator[tuple[Word, ...]]:
        """Yield for each sentence the words of the label of its list: "can't do: reach hosts"."""
        before: Span | None = None
        lead: tuple[Word, ...] = ()
        in_list = False
        for span in self.spans:
            if self.is_item(span):
                if not in_list and before is not None:
                    label = words(self.text[before.start : before.end], vocabulary, opens=True)
                    lead = tuple(word._replace(dropped=False) for word in label)
                in_list = True
            elif self.opens_line(span):
                in_list = False
            if not in_list:
                before = span
            yield lead if in_list and len(lead) <= _MAX_LABEL_WORDS else ()

    def is_quoted(self, span: Span) -> bool:
        return self.text.startswith(">", self.text.rfind("\n", 0, span.start) + 1)

    def is_caption(self, span: Span) -> bool:
        return bool(_CAPTION.fullmatch(self.text, span.start, span.end))


def passages(messages: Sequence[Message]) -> Generator[None, None, tuple[Passage, ...]]:
    """Return the passages of all observable messages; yields between messages."""
    times = local_times(messages)
    local = [m.replace(created_at=times.get(m.seq, m.created_at)) for m in messages]
    texts = yield from _texts(local)
    is_of_people = _is_of_people(messages)
    if not is_of_people:
        yield from _relate(texts)
    names = _call_names(messages)
    found: list[Passage] = []
    call_arguments: dict[str, str] = {}
    languages: dict[str, Vocabulary] = {}
    for text in texts:
        language = _language(text.text, text.message.speaker, languages)
        for p in _passages_of_text(text, names, language, is_of_people=is_of_people):
            if p is not None:
                found.append(p)
            yield
        for p in _passages_of_tools(text.message, call_arguments, text.before):
            if p is not None:
                found.append(p)
            yield
    return tuple(found)


def _texts(messages: Sequence[Message]) -> Generator[None, None, list[_Text]]:
    """Return the readable texts of observable messages, scored."""
    texts: list[_Text] = []
    before: Line | None = None
    for message in messages:
        if message.kind == "message" and message.role != "system":
            readable = yield from readable_text(message.text)
            whole = _Text(message=message, text=readable, before=before)
            role: Role = "assistant" if message.role == "assistant" else "user"
            last = before
            for span in sentences(readable):
                last = Line(readable[span.start : span.end], role)
                whole.spans.append(span)
                whole.scores.append(scorer().score(last._replace(reply_to=before)))
                yield
            texts.append(whole)
            before = last
        yield
    return texts


def _is_of_people(messages: Sequence[Message]) -> bool:
    """Return whether people talk, without an agent: whoever answers has a name, or nobody does."""
    answering = [message for message in messages if message.role == "assistant"]
    return all(message.name for message in answering or messages)


def _relate(texts: Sequence[_Text]) -> Iterator[None]:
    """Give texts the question that they may answer, and join sentences of users; yields in between."""
    said_by_agent: set[str] = set()
    for number, text in enumerate(texts):
        if number:
            text.question = _question(texts[number - 1], text.message)
        if text.message.role == "assistant":
            said_by_agent.update(text.text[s.start : s.end] for s in text.spans)
        else:
            yield from text.join_dependent(said_by_agent)
        yield


def _is_afterthought(sentence: str, scores: Scores) -> bool:
    """Return whether a sentence of a word or two qualifies the one before: "Mostly."."""
    return len(sentence.encode()) <= _AFTERTHOUGHT_BYTES and not is_filler(scores)


def _question(before: _Text, answer: Message) -> Quotation | None:
    """Return the question of the same day with which the message before ends."""
    if before.message.speaker == answer.speaker or not before.spans:
        return None
    last = before.spans[-1]
    text = one_line(before.text[last.start : last.end]).strip(_QUOTES)
    asked_at, at = before.message.created_at, answer.created_at
    is_long_ago = asked_at is not None and at is not None and at.date() != asked_at.date()
    if is_long_ago or len(text) > _MAX_QUESTION or not text.endswith(ASKS):
        return None
    return Quotation(before.message.seq, resolve_dates(text, asked_at) if asked_at else text)


def _language(text: str, speaker: str, languages: dict[str, Vocabulary]) -> Vocabulary:
    """Return the table of a text's language; a short text may get its speaker's previous one."""
    own = vocabulary_of(text)
    if len(text) > _BRIEF_CHARS:
        languages[speaker] = own
    elif own == NO_VOCABULARY or not own.small:
        return languages.get(speaker, own)
    return own


def _own(text: str, around: Vocabulary) -> Vocabulary:
    own = vocabulary_of(text)
    return own if own.small or around == NO_VOCABULARY else around


def _passages_of_text(
    whole: _Text, names: frozenset[str], message_vocabulary: Vocabulary, *, is_of_people: bool
) -> Generator[Passage | None, None, None]:
    """Yield the passages of a text, None between steps."""
    text, at, speaker = whole.text, whole.message.created_at, whole.message.speaker
    is_user = whole.message.role == "user" and not is_of_people
    dates = yield from _dates(text, at, Span(0, min(len(text), _DATED_AT_ONCE)))
    scored = zip(whole.spans, whole.scores, whole.leads(message_vocabulary), strict=True)
    opens = True
    for number, (sentence, scores, lead) in enumerate(scored):
        if sentence.end > _DATED_AT_ONCE:
            dates = yield from _dates(text, at, sentence)
        caption, quoted = whole.is_caption(sentence), whole.is_quoted(sentence)
        asks = text[sentence.start : sentence.end].rstrip("\"'”’) ").endswith(ASKS)
        source = text[sentence.start : sentence.end]
        answered = whole.question if opens and is_dependent(scores) else None
        opens = opens and is_filler(scores)
        lays_down = is_user and not (quoted or caption)
        standing = (
            lays_down
            and (is_open(scores) if asks else is_standing(source, scores) or is_open(scores))
            and not (is_dependent(scores) and answered is None)
        )
        rule = standing or (lays_down and (asks or is_constraint(scores)))
        is_whole = rule or (lays_down and len(source) <= _MAX_WHOLE)
        spans = [sentence] if is_whole else clauses(text, sentence)
        vocabulary = message_vocabulary if source.isascii() else _own(source, message_vocabulary)
        for place, clause in enumerate(spans):
            if caption:
                clause = Span(clause.start + 1, clause.end - 1)  # noqa: PLW2901
            own = dates if not is_borrowed(scores) else ()
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
                    whole=rule or lays_down or (speaker == AGENT and not is_of_people),
                    caption=caption,
                ),
                vocabulary=vocabulary,
                sentence=number,
                clause=place,
                is_question=asks and clause.end + 8 > sentence.end,
                is_caption=caption,
                is_quoted=quoted,
                is_item=whole.is_item(sentence),
                is_rule=rule,
                is_standing=standing,
                is_user=is_user,
                is_of_people=is_of_people,
                context=tuple(words(reply_to.text, vocabulary, opens=True)) if reply_to else lead,
                reply_to=reply_to,
                dates=inside,
                scores=scores,
                tag="Fact" if quoted or (asks and not standing) else tag_of(scores),
            )


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
            asks = text[start:end].rstrip().endswith(ASKS)
            found[-1] = found[-1]._replace(text=f"{found[-1].text}{'?' if asks else ';'}")
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
        plain = before.rstrip(_OPENS_DATE)
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
        at, glued = end, end == date.end and _is_glue(text[end : end + 1])
    yield from words(text[at : clause.end], vocabulary, opens=at == clause.start, glued=glued)


def _is_glue(character: str) -> bool:
    """Return whether text that begins so is attached to the date before: a particle, a genitive."""
    return character.isalnum() or character in ("'", "’", "（", "(")


def _call_names(messages: Sequence[Message]) -> frozenset[str]:
    """Return the speakers' names and their short forms, in lower case."""
    full = {part.lower() for m in messages if m.name for part in m.name.split()}
    return frozenset(name[:length] for name in full for length in range(3, len(name) + 1))


def _passages_of_tools(
    message: Message, call_arguments: dict[str, str], before: Line | None
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
    for number, (row, scores) in enumerate(found.items()):
        if scores and scores["output"] <= least:
            continue
        parts = tuple(words(row.text, NO_VOCABULARY, opens=False))
        own = {word.key for word in parts}
        about = words(row.about if row.about != previous else "", NO_VOCABULARY, opens=False)
        previous = row.about
        yield Passage(
            seq=message.seq,
            at=message.created_at,
            speaker=message.speaker,
            source=row.text,
            words=parts,
            context=tuple(word for word in about if word.key not in own)[:_MAX_ABOUT],
            vocabulary=NO_VOCABULARY,
            sentence=_AFTER_TEXT + number,
            is_output=not row.is_call,
            is_call=row.is_call,
            scores=scores,
        )
