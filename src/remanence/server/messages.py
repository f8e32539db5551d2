"""Messages in requests and responses."""

from datetime import datetime
from typing import Annotated, Final

from fastapi import Header

from remanence.errors import InvalidMessage
from remanence.http.documents import MessageFormat
from remanence.types import Message
from remanence.wire import anthropic, openai
from remanence.wire.json_value import JsonObject

IdempotencyKey = Annotated[
    str | None,
    Header(
        alias="Idempotency-Key",
        min_length=1,
        max_length=200,
        description="A new text for each request that is not a repetition of another.",
    ),
]
"""It stands in for the ids that messages do not bring, and a message is kept once under its id."""

_READERS: Final = {"openai": Message.from_openai, "anthropic": Message.from_anthropic}
_WRITERS: Final = {"openai": openai.render, "anthropic": anthropic.render}


def read_message(data: JsonObject, kind: MessageFormat, *, id_: str | None = None) -> Message:
    """Read a message in a provider's form, beside which its `id` and `created_at` may stand.

    *id_* is for a message without one.

    Raises:
        InvalidMessage: the text names what is wrong.
    """
    fields = {key: value for key, value in data.items() if key not in ("id", "created_at")}
    given, at = data.get("id"), data.get("created_at")
    if given is not None and not isinstance(given, str):
        raise InvalidMessage(f"the id {given!r:.80} of a message is not a text")
    message = _READERS[kind](fields).replace(id=id_ if given is None else given)
    return message if at is None else message.replace(created_at=_time(at))


def write_message(message: Message, kind: MessageFormat) -> list[JsonObject]:
    """Return the message in a provider's form."""
    return _WRITERS[kind](message.role, message.content, message.name)


def _time(value: object) -> datetime:
    try:
        at = datetime.fromisoformat(str(value))
    except ValueError:
        at = None
    if at is None or at.tzinfo is None:
        raise InvalidMessage(
            f"created_at {value!r:.80} of a message is not a time: use ISO 8601 with an offset, "
            "such as 2026-05-01T09:30:00+02:00"
        )
    return at
