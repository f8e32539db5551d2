"""What a recall asks for and what it finds."""

from dataclasses import dataclass
from datetime import datetime
from typing import Literal, NamedTuple, TypeAlias

from remanence.fields import check_fields, impossible
from remanence.types.fact import Owner
from remanence.types.segment import Priority, Tag
from remanence.wire.parts import Role

HitKind: TypeAlias = Literal["note", "message", "fact"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Hit:
    """A found note, raw message or fact, with the messages it comes from.

    A note has a tag and a priority, a message a role. `conversation` is where the messages are; a
    fact that was saved by hand has none, and its `first_seq` is 0. `source_id` is the id of the
    segment, the message or the fact. `snippet` is the part of the text that matches.
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
    snippet: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class RecallFilter:
    """What a hit must be: from *since* on and before *until*, of this kind, tag, priority and role.

    A field that a kind of hit does not have excludes that kind.

    Raises:
        InvalidPolicy: a field has a value that it cannot have.
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
                raise impossible(name, moment, "give it a time zone, such as datetime.UTC")

    def allows(self, hit: Hit) -> bool:
        """Whether a hit is what was asked for."""
        wanted = (
            (self.kind, hit.kind),
            (self.tag, hit.tag),
            (self.priority, hit.priority),
            (self.role, hit.role),
        )
        if any(want is not None and want != has for want, has in wanted):
            return False
        if self.since is not None and (hit.at is None or hit.at < self.since):
            return False
        return self.until is None or (hit.at is not None and hit.at < self.until)


class VectorItem(NamedTuple):
    """A text that has no vector yet, and the store's key for it; of a fact also whose it is."""

    key: int
    text: str
    owner: Owner | None = None
    fact_id: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class VectorTask:
    """Texts that get their vectors together, and how far the store has come with that.

    `subject` says whether they are notes and messages of a segment or facts; `cursor` is where the
    next task begins.
    """

    model: str
    subject: Literal["segment", "fact"]
    cursor: int
    items: tuple[VectorItem, ...]
