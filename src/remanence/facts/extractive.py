"""The embedded extractor: keeps the sentences of users that the learned scores take for facts."""

from collections.abc import Generator
from dataclasses import replace
from datetime import UTC, datetime

from remanence.dates import find_dates
from remanence.facts.merge import HOME, SPEAKER, STATEMENTS
from remanence.facts.statements import Statement, is_user, statements
from remanence.facts.wishes import INSTRUCTION, PREFERENCE
from remanence.observers.learned.score import Scores, scorer
from remanence.observers.learned.statements import WISHES, statement_scores
from remanence.pacing import compute_in_slices
from remanence.protocols import Compute, ExtractRequest
from remanence.types import FactDraft, FactType

_SLOT = "fact:"
_LIKELY_SLOT, _SURE_SLOT = -1.0, 3.0
"""Scores, by their cutoffs, from which a slot is likely, and from which it may replace another.

From 2 it also took cars and places of birth for homes.
"""
_WISHES = {"inst": INSTRUCTION, "pref": PREFERENCE}
"""Tag of a wish by the higher of these scores.

A statement is one if that score and the one for wishes are together above their cutoffs, and by as
much as `personal` is. In conversations that were set aside 77 of 100 such are wishes; the higher
score alone was right about 66. It finds 75 % of the wishes.
"""
_OTHERS = {"dec": "decision", "remember": "critical"}
"""Tag of another fact by the higher of these scores, if that is above its cutoff by as much."""


class ExtractiveFacts:
    """Extracts sentences of users without a model, verbatim except for resolved dates.

    A sentence that says little alone is kept with those before it, or with the question that it
    answers.

    It reads the messages rather than their notes, which are too brief in a short conversation.
    """

    def __init__(self, compute: Compute = compute_in_slices) -> None:
        self._compute = compute

    @property
    def name(self) -> str:
        return f"{STATEMENTS}6"

    async def extract(self, request: ExtractRequest) -> tuple[FactDraft, ...]:
        return await self._compute(_drafts, request)


def _drafts(request: ExtractRequest) -> Generator[None, None, tuple[FactDraft, ...]]:
    drafts: list[FactDraft] = []
    earlier = {message.seq for message in request.before}
    for said in statements((*request.before, *request.messages)):
        if said is not None and said.source.seq not in earlier:
            draft = _draft(said)
            if not is_user(said.source, request.user):
                name = said.source.speaker
                summary, tags = f"{name}: {draft.summary}", (*draft.tags, f"{SPEAKER}{name}")
                draft = replace(draft, summary=summary, tags=tags)
            drafts.append(draft)
        yield
    return tuple(drafts)


def _draft(said: Statement) -> FactDraft:
    """Return the fact of a statement."""
    fact_type, tags = _kind(said)
    said_at = said.source.created_at
    if (fact_type, tags) == ("profile", ()) and _has_date(said.text, said_at):
        fact_type = "event"
    return FactDraft(
        summary=said.summary,
        type=fact_type,
        tags=tags,
        first_seq=said.first_seq,
        last_seq=said.source.seq,
        valid_from=said_at,
    )


def _has_date(text: str, said_at: datetime | None) -> bool:
    return any(
        mention.grain in ("day", "moment", "weekend", "week", "month")
        for mention in find_dates(text, said_at or datetime(1970, 1, 1, tzinfo=UTC))
    )


def _kind(said: Statement) -> tuple[FactType, tuple[str, ...]]:
    """Return the type and tags of a statement."""
    over = {head: scorer().over(said.scores, head) for head in said.scores}
    corrects = ("correction",) if over["corr"] >= 0 else ()
    least = max(over["personal"], 0)
    wish = max(_WISHES, key=over.__getitem__)
    if over[wish] + max(statement_scores(line)[WISHES] for line in said.lines) >= least:
        return "behavior", (_WISHES[wish], *corrects)
    other = max(_OTHERS, key=over.__getitem__)
    if over[other] >= least:
        return "knowledge", (_OTHERS[other], *corrects)
    slot = max((head for head in over if head.startswith(_SLOT)), key=over.__getitem__)
    name = slot.removeprefix(_SLOT) if over[slot] >= _LIKELY_SLOT else ""
    home = (HOME,) if name == "home" and over[slot] >= _SURE_SLOT else ()
    return _type(name, over), (*home, *corrects)


def _type(slot: str, over: Scores) -> FactType:
    if slot == "skill":
        return "skill"
    if slot == "event" or max(over["next"], over["fut"]) >= 0:
        return "event"
    return "behavior" if over["habit"] >= 0 else "profile"
