"""Facts about a user, which outlive a conversation."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Literal, NamedTuple, TypeAlias

FactType: TypeAlias = Literal["knowledge", "behavior", "event", "skill", "profile"]


class Owner(NamedTuple):
    """The owner of facts: a user of a tenant. No other user ever sees them."""

    tenant: str
    user: str


@dataclass(frozen=True, slots=True, kw_only=True)
class FactDraft:
    """A fact as an extractor made it, from the messages `first_seq..last_seq`.

    Without `first_seq` it is made from all messages of the request, and without `valid_from` it holds
    from the time of its first one. `replaces` is the id of the known fact that it supersedes. If it
    `forgets`, it becomes no fact: its summary is a request of the user, and it ends the facts that
    this names. Only if it names none and has the tag `wish`, it is that wish. If it also
    `points_back`, its summary is the statement that a request means, and it ends those that say
    this.
    """

    summary: str
    type: FactType = "knowledge"
    tags: tuple[str, ...] = ()
    first_seq: int | None = None
    last_seq: int | None = None
    valid_from: datetime | None = None
    replaces: str | None = None
    forgets: bool = False
    points_back: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Fact:
    """A sentence about a user that outlives the conversation it comes from.

    `conversation` with `first_seq..last_seq` is its source, which a fact saved by hand may lack. It
    is valid from `valid_from` to `valid_to`, which is None for a current fact; `superseded_by` is
    the id of the fact that replaced it, None if the user asked to forget it. `made_by` names the
    extractor with its version and, of the embedded one, a checksum of its weights; "saved" by hand.
    """

    id: str
    tenant: str
    user: str
    summary: str
    type: FactType
    created_at: datetime
    valid_from: datetime
    tags: tuple[str, ...] = ()
    conversation: str | None = None
    first_seq: int | None = None
    last_seq: int | None = None
    made_by: str = ""
    valid_to: datetime | None = None
    superseded_by: str | None = None

    @property
    def owner(self) -> Owner:
        """The tenant and user that the fact belongs to."""
        return Owner(self.tenant, self.user)


FactCondition: TypeAlias = Callable[[Fact], bool]
"""Returns whether a fact may be found."""


class Repetition(NamedTuple):
    """A fact that says the same as the fact `repeats`, from another source.

    It replaces that fact if that is erased together with its source.
    """

    repeats: str
    fact: Fact


@dataclass(frozen=True, slots=True, kw_only=True)
class FactChanges:
    """New facts of one owner; `replaced` maps ids of replaced facts to ids of new ones.

    A new fact may be replaced by a later one in `facts`. A new fact that is already outdated names
    its successor, and is put between that and the facts it had replaced. `repetitions` repeat known
    or new facts. `newest` is the id of the newest current fact that they were compared with, "" if
    there was none, and `newest_ever` that of the newest one with those that ended; a store writes
    nothing if the owner has another by then. None skips a check. `worth` is how much new conversations
    should know each new fact, by its id; one without is found among the newest only.
    `requests` is the number of requests to forget, which may have ended no fact.
    """

    facts: tuple[Fact, ...] = ()
    replaced: Mapping[str, str] = field(default_factory=dict)
    ended: tuple[Fact, ...] = ()
    repetitions: tuple[Repetition, ...] = ()
    newest: str | None = None
    newest_ever: str | None = None
    requests: int = 0
    worth: Mapping[str, float] = field(default_factory=dict)

    @property
    def forgotten(self) -> tuple[str, ...]:
        """The ids of the facts that requests to forget ended, which may be new ones."""
        facts = (*self.facts, *self.ended)
        return tuple(fact.id for fact in facts if fact.valid_to and not fact.superseded_by)


@dataclass(frozen=True, slots=True, kw_only=True)
class FactsPin:
    """The facts that a conversation's contexts show until its prefix changes anyway.

    `text` has facts of other conversations, shown before the notes; `own_text` has facts of this
    one that its notes lack, shown after the reflections. `marker` and `own_marker` name the first
    and the last reflection at the time of the choice, `at`.
    """

    marker: str
    text: str
    own_marker: str = ""
    own_text: str = ""
    at: datetime
