"""Splits messages into passages, the clauses from which the observer selects."""

import itertools
import re
from collections import deque
from collections.abc import Generator, Iterator, Sequence
from dataclasses import replace
from datetime import datetime

from remanence.dates import DateMention, finding_dates
from remanence.dates.local_time import local_times
from remanence.languages.vocabulary import NO_VOCABULARY, Vocabulary, vocabulary_of
from remanence.observers.extractive.choices import Offer, offer_of, with_items
from remanence.observers.extractive.cues import DONE, NO_CUE, Cue, cue_of, is_request
from remanence.observers.extractive.event_dates import format_date
from remanence.observers.extractive.lists import NO_LEAD, lead_of, with_leads
from remanence.observers.extractive.outcomes import outcomes
from remanence.observers.extractive.passage import AGENT, Passage
from remanence.observers.extractive.readable import readable_text
from remanence.observers.extractive.render import (
    Word,
    content,
    in_full,
    telegraphic,
    without_address,
    words,
)
from remanence.observers.extractive.sentences import Span, clauses, sentences
from remanence.types import Message

_AFTER_TEXT = 10_000
_MAX_ABOUT = 10
_MAX_HEAD = 4
_MAX_OFFERS = 5
_BRIEF_CHARS = 60
_DATED_AT_ONCE = 1000
_OPENS_DATE = '"“(（「『《'
_CLOSES_DATE = re.compile(r"[\"”)）」』》,;:、，]+")
_CAPTION = re.compile(r"\[[^\[\]\n]+\]")


def passages(messages: Sequence[Message]) -> Generator[None, None, tuple[Passage, ...]]:
    """Return the passages of all observable messages; yields between messages."""
    found: list[Passage] = []
    names = _call_names(messages)
    asked: dict[str, str] = {}
    languages: dict[str, Vocabulary] = {}
    offers: deque[Offer | None] = deque(maxlen=_MAX_OFFERS)
    times = local_times(messages)
    for each in messages:
        message = each.replace(created_at=times.get(each.seq, each.created_at))
        if message.kind == "message" and message.role != "system":
            from_text = _passages_of_text(message, names, languages)
            if theirs := [o for o in offers if o and o.message.speaker != message.speaker]:
                from_text = with_items(from_text, message.text, theirs)
            for p in itertools.chain(from_text, _outcomes(message, asked)):
                if p is not None:
                    found.append(p)
                yield
            offers.append(offer_of(message))
        yield
    return tuple(found)


def _language(text: str, speaker: str, languages: dict[str, Vocabulary]) -> Vocabulary:
    """Return the table of a text's language; a short text may get its speaker's previous one."""
    own = vocabulary_of(text)
    if len(text) > _BRIEF_CHARS:
        languages[speaker] = own
    elif own == NO_VOCABULARY or not own.small:
        return languages.get(speaker, own)
    return own


def _passages_of_text(
    message: Message, names: frozenset[str], languages: dict[str, Vocabulary]
) -> Generator[Passage | None, None, None]:
    """Yield the passages of the text, None between steps."""
    text = yield from readable_text(message.text)
    if not text:
        return
    vocabulary = _language(text, message.speaker, languages)
    proposes = message.speaker == AGENT
    dates = yield from _dates(text, message.created_at, Span(0, min(len(text), _DATED_AT_ONCE)))
    for number, (sentence, before) in enumerate(with_leads(text, sentences(text))):
        lead = lead_of(text[before.start : before.end], vocabulary) if before else NO_LEAD
        if sentence.end > _DATED_AT_ONCE:
            dates = yield from _dates(text, message.created_at, sentence)
        quoted = text.startswith(">", text.rfind("\n", 0, sentence.start) + 1)
        caption = bool(_CAPTION.fullmatch(text, sentence.start, sentence.end))
        announced, head = NO_CUE, lead.words
        for place, clause in enumerate(clauses(text, sentence)):
            if caption:
                clause = Span(clause.start + 1, clause.end - 1)  # noqa: PLW2901
            inside = tuple(d for d in dates if clause.start <= d.start and d.end <= clause.end)
            parts = _words_of_clause(
                text, clause, inside, message.created_at, vocabulary, names, caption
            )
            source = text[clause.start : clause.end]
            asks = text[clause.start : sentence.end].rstrip("\"'”’) ").endswith(("?", "？"))
            requests = asks and message.role == "user" and is_request(source)
            asks = asks and not requests
            own = NO_CUE if quoted else _cue(message, source, parts, asks=asks)
            if requests and own.tag in DONE:
                own = NO_CUE
            cue = lead.of_item(NO_CUE if proposes and before and own.tag == "Decision" else own)
            if cue == NO_CUE and (announced.stands or announced.corrects):
                cue = announced
            is_head = source.endswith((":", "："))
            announced = cue if is_head else NO_CUE
            yield Passage(
                seq=message.seq,
                first_seq=message.seq,
                at=message.created_at,
                speaker=message.speaker,
                source=source,
                words=_shorten(parts, cue, vocabulary),
                vocabulary=vocabulary,
                sentence=number,
                clause=place,
                context=head,
                is_question=asks,
                is_request=requests,
                is_caption=caption,
                is_quoted=quoted,
                is_item=before is not None,
                is_open=lead.is_open,
                dates=inside,
                cue=cue,
            )
            subject = content(parts, vocabulary) if is_head else ()
            head = tuple(w for w in subject if not w.is_date)[-_MAX_HEAD:]


def _cue(message: Message, source: str, parts: Sequence[Word], *, asks: bool) -> Cue:
    is_user = message.role == "user" and message.name is None
    return cue_of(source, [w.key for w in parts], is_question=asks, for_agent=is_user)


def _shorten(parts: tuple[Word, ...], cue: Cue, vocabulary: Vocabulary) -> tuple[Word, ...]:
    """Return the words at the length the cue requires: a decision keeps its function words."""
    if cue.tag == "Decision" or cue.corrects:
        return in_full(parts, vocabulary)
    return telegraphic(parts, vocabulary) if cue == NO_CUE else parts


def _dates(
    text: str, at: datetime | None, span: Span
) -> Generator[None, None, tuple[DateMention, ...]]:
    if at is None:
        return ()
    found = yield from finding_dates(text[span.start : span.end], at)
    return tuple(replace(d, start=d.start + span.start, end=d.end + span.start) for d in found)


def _words_of_clause(
    text: str,
    clause: Span,
    dates: Sequence[DateMention],
    said_at: datetime | None,
    vocabulary: Vocabulary,
    names: frozenset[str],
    caption: bool,  # noqa: FBT001
) -> tuple[Word, ...]:
    parts = tuple(_words(text, clause, dates, said_at, vocabulary))
    if caption:
        return tuple(w._replace(dropped=True) if w.key in vocabulary.caption else w for w in parts)
    if parts and parts[0].key in vocabulary.joins:
        parts = (parts[0]._replace(dropped=True), *parts[1:])
    return without_address(parts, names, vocabulary)


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
            before[len(plain) :] + shown + text[date.end : end] if shown else "",
            f"{date.first} {text[at : clause.end][:24]}",
            dropped=not shown,
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


def _outcomes(message: Message, asked: dict[str, str]) -> Iterator[Passage | None]:
    """Yield the passages of tool calls and results, None between steps."""
    number = 0
    for outcome in outcomes(message, asked):
        if outcome is None:
            yield None
            continue
        parts = tuple(words(outcome.text, NO_VOCABULARY, opens=False))
        about = tuple(words(outcome.about, NO_VOCABULARY, opens=False))
        own = {word.key for word in parts}
        yield Passage(
            seq=message.seq,
            first_seq=message.seq,
            at=message.created_at,
            speaker=message.speaker,
            source=outcome.text,
            words=parts,
            context=tuple(w for w in about if w.key not in own)[:_MAX_ABOUT] if not number else (),
            vocabulary=NO_VOCABULARY,
            sentence=_AFTER_TEXT + number,
            is_outcome=True,
            is_output=message.role == "tool",
            is_detail=outcome.is_detail,
            is_superseded=outcome.is_call,
            cue=cue_of(outcome.text, [word.key for word in parts], is_question=outcome.is_call),
        )
        number += 1
