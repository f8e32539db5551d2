"""Events: reports of background work and of forgetting."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Final, Literal, NamedTuple, TypeAlias, get_args

from remanence.types.state import LogKind

EventType: TypeAlias = Literal[LogKind, "budget"]
EVENT_TYPES: Final[tuple[EventType, ...]] = get_args(EventType)
EventValue: TypeAlias = str | int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """A committed change of a tenant's memory; the tenant's ids count up from 1.

    Ids are missing only where old events, or those of a deleted conversation or a forgotten user,
    were erased. `data` has ids, ranges of the tape, counts and codes, and no text of messages or
    notes. Events of facts that a program saved or forgot name a user and no conversation.
    """

    id: int
    type: EventType
    at: datetime
    tenant: str
    conversation: str | None
    user: str | None
    data: Mapping[str, EventValue]


class EventPage(NamedTuple):
    """Events in the order of their ids, and the id up to which they were looked for."""

    events: tuple[Event, ...]
    last: int
