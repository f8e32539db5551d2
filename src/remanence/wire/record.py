"""The id and time of a message, which applications store beside a provider's fields."""

from collections.abc import Mapping
from datetime import datetime
from typing import NamedTuple

from remanence.errors import InvalidMessage


class Record(NamedTuple):
    """A message's id and time, and the provider's fields."""

    id: str | None
    created_at: datetime | None
    fields: dict[str, object]


def split_record(data: Mapping[str, object]) -> Record:
    """Separate `id` and `created_at` from a provider's message.

    Raises:
        InvalidMessage: the id is not a string, or the time is malformed or has no offset.
    """
    id_, at = data.get("id"), data.get("created_at")
    if id_ is not None and not isinstance(id_, str):
        raise InvalidMessage(f"the id {id_!r:.80} of a message is not a string: use a string")
    fields = {key: value for key, value in data.items() if key not in ("id", "created_at")}
    return Record(id_, None if at is None else _time(at), fields)


def _time(value: object) -> datetime:
    try:
        at = value if isinstance(value, datetime) else datetime.fromisoformat(str(value))
    except ValueError:
        at = None
    if at is None or at.tzinfo is None:
        raise InvalidMessage(
            f"created_at {value!r:.80} of a message is not a time: use ISO 8601 with an offset, "
            "such as 2026-05-01T09:30:00+02:00"
        )
    return at
