"""The embedded extractor: keeps the sentences of users that the learned scores take for facts."""

import re
from collections.abc import Generator, Mapping
from datetime import UTC, datetime

from remanence.dates import find_dates, resolve_dates
from remanence.facts.slots import slot_tags
from remanence.notes.redact import redact
from remanence.observers.learned.score import scorer
from remanence.observers.spoken import spoken_lines
from remanence.pacing import in_slices
from remanence.protocols import ExtractRequest
from remanence.types import FactDraft, FactType, Message

_SLOT = "fact:"
_LIKELY_SLOT, _SURE_SLOT = -1.0, 1.0
"""Scores, by their cutoffs, from which a slot is likely, and from which it may replace another."""
_REASONS: dict[str, tuple[FactType, str]] = {
    "personal": ("profile", ""),
    "inst": ("behavior", "instruction"),
    "pref": ("behavior", "preference"),
    "dec": ("knowledge", "decision"),
    "remember": ("knowledge", "critical"),
}
"""Type and tag of a fact by the score for which it is kept, the highest above its cutoff."""
_REFUSED = {"forget": 1.0, "world": 0.0}
"""Scores that refuse a sentence, by how far below its cutoff each already does."""
_NEARLY = -0.75
"""How far below its cutoff a reason may be where the sentence is likely to be lasting."""
_DATED_WORTH, _DATED_REFUSED = 0.0, 0.5
"""How far above its cutoff the worth of a dated event is, and a score that refuses it."""
_BEATS_QUOTED = 1.0
"""How far a reason to keep a sentence must be above the score for quoted text, if that is high."""
_MIN_WORTH = -1.9
"""How far below its cutoff the worth of a short statement may be."""
_MAX_CHARACTERS = 300
_SPEAKERS_OF_THEMSELVES = frozenset({"user", ""})
_QUESTION = re.compile(r"[?？؟]\s*$")

Scores = Mapping[str, float]


class ExtractiveFacts:
    """Extracts sentences of users without a model, verbatim except for resolved dates.

    It reads the messages rather than their notes, which are too brief in a short conversation.
    """

    @property
    def name(self) -> str:
        return "extractive/2"

    async def extract(self, request: ExtractRequest) -> tuple[FactDraft, ...]:
        return await in_slices(_drafts(request))


def _drafts(request: ExtractRequest) -> Generator[None, None, tuple[FactDraft, ...]]:
    drafts: list[FactDraft] = []
    for line, source in spoken_lines(request.messages):
        if line.role == "user":
            draft = _draft(line.text, source, scorer().score(line))
            drafts += [draft] if draft else []
        yield
    return tuple(drafts)


def _draft(text: str, source: Message, scores: Scores) -> FactDraft | None:
    """Return the fact that a sentence states, if any."""
    kind = _kind(text, scores) or _dated_event_kind(text, source.created_at, scores)
    if kind is None:
        return None
    fact_type, tags = kind
    if kind == ("profile", ()) and _has_date(text, source.created_at):
        fact_type = "event"
    name = source.speaker
    named = "" if name.casefold() in _SPEAKERS_OF_THEMSELVES else f"{name}: "
    said = resolve_dates(text, source.created_at) if source.created_at else text
    return FactDraft(
        summary=redact(f"{named}{' '.join(said.split())}"),
        type=fact_type,
        tags=tags,
        first_seq=source.seq,
        last_seq=source.seq,
        valid_from=source.created_at,
    )


def _dated_event_kind(
    text: str, said_at: datetime | None, scores: Scores
) -> tuple[FactType, tuple[str, ...]] | None:
    """Return the type and tags of a dated event that is worth noting; None for other sentences."""
    cutoffs = scorer().weights.cutoffs
    wanted = scores["worth"] >= cutoffs["worth"] + _DATED_WORTH
    refused = any(scores[head] >= cutoffs[head] + _DATED_REFUSED for head in ("quoted", "forget"))
    if not wanted or refused or len(text) > _MAX_CHARACTERS or _QUESTION.search(text):
        return None
    return ("event", ()) if _has_date(text, said_at) else None


def _has_date(text: str, said_at: datetime | None) -> bool:
    return any(
        mention.grain in ("day", "moment", "weekend", "week", "month")
        for mention in find_dates(text, said_at or datetime(1970, 1, 1, tzinfo=UTC))
    )


def _kind(text: str, scores: Scores) -> tuple[FactType, tuple[str, ...]] | None:
    """Return the type and tags of a sentence; None if later conversations do not need it."""
    if len(text) > _MAX_CHARACTERS or _QUESTION.search(text):
        return None
    cutoffs = scorer().weights.cutoffs
    over = {head: score - cutoffs[head] for head, score in scores.items()}
    reason = max(_REASONS, key=over.__getitem__)
    at_least = _NEARLY if over["lasting"] >= 0 else 0.0
    if over[reason] < at_least or over["worth"] < _MIN_WORTH:
        return None
    if over["quoted"] >= max(0.0, over[reason] - _BEATS_QUOTED):
        return None
    if any(over[head] > -margin for head, margin in _REFUSED.items()):
        return None
    corrects = ("correction",) if over["corr"] >= 0 else ()
    if reason != "personal":
        fact_type, tag = _REASONS[reason]
        return fact_type, (tag, *corrects)
    slot = max((head for head in over if head.startswith(_SLOT)), key=over.__getitem__)
    name = slot.removeprefix(_SLOT)
    updates = max(over["rep"], over["end"]) >= 0
    sure = _LIKELY_SLOT if updates else _SURE_SLOT
    tags = slot_tags(name, updates=updates) if over[slot] >= sure else ()
    return _type(name if over[slot] >= _LIKELY_SLOT else "", over), (*tags, *corrects)


def _type(slot: str, over: Scores) -> FactType:
    if slot == "skill":
        return "skill"
    if slot == "event" or max(over["next"], over["fut"]) >= 0:
        return "event"
    return "behavior" if over["habit"] >= 0 else "profile"
