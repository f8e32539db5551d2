"""Filters and hits of recall, and tasks of the vector index."""

from dataclasses import dataclass
from datetime import datetime
from typing import Literal, NamedTuple, TypeAlias

from remanence.errors import InvalidSetting
from remanence.types.fact import Owner
from remanence.types.segment import Priority, Tag
from remanence.validation import check_fields
from remanence.wire.parts import Role

HitKind: TypeAlias = Literal["note", "message", "fact"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Hit:
    """A found note, raw message or fact, with the messages it comes from.

    A note has a tag and a priority, a message has a role, and both have a speaker, by name or role;
    a fact has a speaker if its tag names one. `conversation` is the id of the source; for a fact
    saved by hand it is None, and `first_seq` is 0. `source_id` is the id of the segment, message or
    fact, `snippet` the matching part of the text. `score` orders the hits of one search; it comes
    from their ranks and says nothing of how well one matches.
    """

    kind: HitKind
    text: str
    first_seq: int
    last_seq: int
    at: datetime | None
    score: float
    source_id: str
    conversation: str | None = None
    tag: Tag | None = None
    priority: Priority | None = None
    role: Role | None = None
    speaker: str | None = None
    snippet: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class RecallFilter:
    """Conditions on hits: from `since` on, before `until`, and kind, tag, priority and role.

    A condition on a field that a kind of hit lacks excludes that kind.

    Raises:
        InvalidPolicy: a field has an invalid value, such as a time without a time zone.
    """

    since: datetime | None = None
    until: datetime | None = None
    kind: HitKind | None = None
    tag: Tag | None = None
    priority: Priority | None = None
    role: Role | None = None

    def __post_init__(self) -> None:
        check_fields(self)
        for name, moment in (("since", self.since), ("until", self.until)):
            if moment is not None and moment.tzinfo is None:
                raise InvalidSetting(name, moment, "give it a time zone, such as datetime.UTC")

    @property
    def allows_facts(self) -> bool:
        """True if a fact can meet the conditions."""
        return self.kind in (None, "fact") and not (self.tag or self.priority or self.role)

    def allows(self, hit: Hit) -> bool:
        """Return whether *hit* meets all conditions."""
        for name in ("kind", "tag", "priority", "role"):
            wanted = getattr(self, name)
            if wanted is not None and wanted != getattr(hit, name):
                return False
        if self.since is not None and (hit.at is None or hit.at < self.since):
            return False
        return self.until is None or (hit.at is not None and hit.at < self.until)


class VectorItem(NamedTuple):
    """A text without a vector, with the store's key for it; for a fact also its owner and id."""

    key: int
    text: str
    owner: Owner | None = None
    fact_id: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class VectorTask:
    """A batch of texts to embed, and the position after it.

    `subject` is `segment` for the notes and messages of a segment, or `fact`; the next task begins
    at `cursor`. `place` names where the vectors of facts are kept, empty if in the store; `ended` are
    superseded facts, whose vectors are to be erased there.
    """

    model: str
    subject: Literal["segment", "fact"]
    cursor: int
    items: tuple[VectorItem, ...]
    place: str = ""
    ended: tuple[tuple[Owner, str], ...] = ()
