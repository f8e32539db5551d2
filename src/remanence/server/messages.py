"""Messages in requests and responses."""

import difflib
from collections.abc import Callable, Mapping
from itertools import chain, islice
from typing import Annotated, Final

from fastapi import Header

from remanence.errors import InvalidMessage
from remanence.http.documents import MAX_NAME, MessageFormat
from remanence.types import Message
from remanence.wire import anthropic, openai
from remanence.wire.json_value import JsonObject, quote
from remanence.wire.message import split_record
from remanence.wire.parts import OtherPart, Part

IdempotencyKey = Annotated[
    str | None,
    Header(
        alias="Idempotency-Key",
        min_length=1,
        max_length=200,
        description="A unique value for each request; repeat it when you retry the request.",
    ),
]
"""Provides ids for messages without one, so that a retried request does not store them twice."""

_SIMILAR: Final = 0.8
"""The similarity of `created` and `createdAt` to `created_at` is 0.82 and 0.84."""
_MAX_COMPARED: Final = 50
"""How many fields of a message are compared, as a body may have a million."""

_READERS: Final = {"openai": Message.from_openai, "anthropic": Message.from_anthropic}
_WRITERS: Final = {"openai": openai.render, "anthropic": anthropic.render}
_OTHERS: Final[Mapping[MessageFormat, tuple[MessageFormat, Callable[[object], Part]]]] = {
    "openai": ("anthropic", anthropic.parse_part),
    "anthropic": ("openai", openai.parse_part),
}
"""The other format for each one, and the reader of its blocks."""


def read_message(data: JsonObject, kind: MessageFormat, *, id_: str | None = None) -> Message:
    """Read a message in a provider's format, with an optional `id` and `created_at`.

    *id_* is the id of a message without one.

    Raises:
        InvalidMessage: the message is malformed, has a long id, a block of the other format, or a field that
            resembles `created_at`; other unknown blocks and fields belong to the provider.
    """
    names = islice(data, _MAX_COMPARED)
    similar = difflib.get_close_matches("created_at", names, n=1, cutoff=_SIMILAR)
    if similar and similar[0] != "created_at":
        raise InvalidMessage(f"{similar[0]!r} of a message is unknown: did you mean created_at?")
    given, at, fields = split_record(data)
    if given is not None and len(given) > MAX_NAME:
        raise InvalidMessage(
            f"the id of a message has {len(given):,} characters, more than {MAX_NAME}: shorten it"
        )
    message = _READERS[kind](fields)
    _refuse_other_format(message, kind)
    return message.replace(id=id_ if given is None else given, created_at=at)


def _refuse_other_format(message: Message, kind: MessageFormat) -> None:
    other, parse_part = _OTHERS[kind]
    results = chain.from_iterable(result.content for result in message.tool_results)
    for part in chain(message.content, results):
        if isinstance(part, OtherPart) and part.scope == "part" and _can_read(parse_part, part):
            raise InvalidMessage(
                f"{quote(part.value)} is not a block of the format {kind!r}: use "
                f"the format {other!r}, with messages of that format"
            )


def _can_read(parse_part: Callable[[object], Part], part: OtherPart) -> bool:
    try:
        return not isinstance(parse_part(part.value), OtherPart)
    except InvalidMessage:
        return False


def write_message(message: Message, kind: MessageFormat) -> list[JsonObject]:
    """Return the message in a provider's format."""
    return _WRITERS[kind](message.role, message.content, message.name)
