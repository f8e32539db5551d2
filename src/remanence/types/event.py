"""Events: reports of committed background work and erasures."""

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
    """A committed change of a tenant's memory; a tenant's ids count up from 1.

    Ids are missing only if events were erased: old ones, and those of a deleted conversation or a
    forgotten user. `data` has ids, ranges of the tape, counts and codes, but no text of messages or
    notes. Events for facts saved or forgotten by a program name a user, but no conversation.
    """

    id: int
    type: EventType
    at: datetime
    tenant: str
    conversation: str | None
    user: str | None
    data: Mapping[str, EventValue]


class EventPage(NamedTuple):
    """Events in order of their ids, and the id to continue after."""

    events: tuple[Event, ...]
    last: int
