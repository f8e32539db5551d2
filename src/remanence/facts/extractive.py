"""The embedded extractor: picks clauses about a person, a decision or a dated event."""

import re
import sys
from collections.abc import Generator, Iterator
from datetime import UTC, datetime

from remanence.dates import find_dates
from remanence.facts.cues import fact_cues
from remanence.languages.vocabulary import vocabulary_of
from remanence.notes.redact import redact
from remanence.observers.extractive.cues import cue_of
from remanence.observers.extractive.observer import extract
from remanence.observers.extractive.render import words
from remanence.pacing import in_slices
from remanence.protocols import ExtractRequest, ObserveRequest
from remanence.types import FactDraft, FactType, Note

_MAX_CLAUSE_CHARACTERS = 300
_MIN_WORDS = 2
_SPEAKERS_OF_THEMSELVES = frozenset({"user", ""})
_QUESTION = re.compile(r"[?？]\s*$")
_CORRECTION_TAG = "correction"


class ExtractiveFacts:
    """Extracts clauses of users without a model, verbatim except for resolved dates.

    It reads the messages rather than their notes, which are too brief in a short conversation.
    """

    @property
    def name(self) -> str:
        return "extractive/1"

    async def extract(self, request: ExtractRequest) -> tuple[FactDraft, ...]:
        return await in_slices(_drafts(request))


def _drafts(request: ExtractRequest) -> Generator[None, None, tuple[FactDraft, ...]]:
    found: list[FactDraft] = []
    people = {message.speaker for message in request.messages if message.role == "user"}
    notes = yield from extract(_exhaustive_request(request))
    for note in notes:
        yield
        if note.speaker not in people:
            continue
        for clause in _clauses(note):
            draft = _draft(note, clause)
            if draft is not None:
                found.append(draft)
            yield
    return tuple(found)


def _exhaustive_request(request: ExtractRequest) -> ObserveRequest:
    """Return a request for notes that omit nothing but courtesies."""
    return ObserveRequest(
        conversation=request.conversation,
        messages=request.messages,
        known=(),
        target_tokens=sys.maxsize,
        count_tokens=len,
        note_format="compact",
        now=request.now,
    )


def _clauses(note: Note) -> Iterator[str]:
    yield from (clause for piece in note.text.split("; ") if (clause := piece.strip()))


def _draft(note: Note, clause: str) -> FactDraft | None:
    """Return the fact that a clause states, if any."""
    if len(clause) > _MAX_CLAUSE_CHARACTERS or _QUESTION.search(clause) or _is_too_short(clause):
        return None
    kind = _kind(note, clause)
    if kind is None:
        return None
    fact_type, tags = kind
    speaker = note.speaker or ""
    named = "" if speaker.casefold() in _SPEAKERS_OF_THEMSELVES else f"{speaker}: "
    return FactDraft(
        summary=redact(f"{named}{clause}"),
        type=fact_type,
        tags=tags,
        first_seq=note.first_seq,
        last_seq=note.last_seq,
        valid_from=note.observed_at,
        supersedes=note.supersedes,
    )


def _kind(note: Note, clause: str) -> tuple[FactType, tuple[str, ...]] | None:
    """Return the type and tags of a clause; None if later conversations do not need it."""
    vocabulary = vocabulary_of(clause)
    keys = [word.key for word in words(clause, vocabulary, opens=False)]
    cue = cue_of(clause, keys, is_question=False)
    alone = note.text == clause
    tag = note.tag if alone else cue.tag
    corrects = (_CORRECTION_TAG,) if cue.corrects or note.supersedes else ()
    if tag == "Decision":
        return "knowledge", ("decision", *corrects)
    about = fact_cues(clause)
    if "profile" in about or "home" in about:
        return "profile", corrects
    if tag == "Preference":
        return "behavior", ("preference", *corrects)
    if "skill" in about:
        return "skill", corrects
    if "behavior" in about:
        return "behavior", corrects
    if _has_date(clause, note.observed_at):
        return "event", corrects
    critical = note.priority == "CRITICAL" and (alone or cue.priority == "CRITICAL")
    return ("knowledge", ("critical",)) if critical or corrects else None


def _has_date(clause: str, observed_at: datetime | None) -> bool:
    return any(
        mention.grain in ("day", "moment", "weekend", "week", "month")
        for mention in find_dates(clause, observed_at or datetime(1970, 1, 1, tzinfo=UTC))
    )


def _is_too_short(clause: str) -> bool:
    return clause.isascii() and len(clause.split()) < _MIN_WORDS
