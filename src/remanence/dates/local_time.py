"""The times of messages in the user's time zone."""

from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta, timezone, tzinfo

from remanence.types import Message


def local_times(messages: Iterable[Message]) -> dict[int, datetime]:
    """Return the time of each message by its seq, in the UTC offset of the user's messages.

    A message of another role gets the offset of the user message before it, or of the first one.
    Without user messages, each message keeps its own offset.
    """
    timed = [(message, message.created_at) for message in messages if message.created_at]
    zone = next((zone_of(at) for message, at in timed if message.role == "user"), None)
    times: dict[int, datetime] = {}
    for message, at in timed:
        if message.role == "user":
            zone = zone_of(at)
        times[message.seq] = to_zone(at, zone or zone_of(at))
    return times


def in_zone(messages: Iterable[Message], zone: tzinfo) -> tuple[Message, ...]:
    """Return the messages with their times in a zone."""
    return tuple(
        m.replace(created_at=to_zone(m.created_at, zone)) if m.created_at else m for m in messages
    )


def is_other_day(before: datetime, at: datetime) -> bool:
    """Return whether a time is on another day than one before it, in its own UTC offset."""
    return to_zone(before, zone_of(at)).date() != at.date()


def zone_of(at: datetime) -> timezone:
    """Return the UTC offset of a time."""
    return timezone(at.utcoffset() or timedelta())


def zone_of_user(messages: Sequence[Message]) -> timezone | None:
    """Return the UTC offset of the newest message of the user that has a time."""
    times = (m.created_at for m in reversed(messages) if m.role == "user" and m.created_at)
    said_at = next(times, None)
    return None if said_at is None else zone_of(said_at)


def to_zone(at: datetime, zone: tzinfo) -> datetime:
    """Return a time in a zone; as it is if the zone takes it out of the years 1 to 9999."""
    try:
        return at.astimezone(zone)
    except OverflowError:
        return at
