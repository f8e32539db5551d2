"""The parts of a provider's API that a proxy has to know."""

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Final, NamedTuple, Protocol

from remanence.errors import InvalidMessage
from remanence.server.proxy.identity import are_one
from remanence.types import Message
from remanence.wire.json_value import JsonObject
from remanence.wire.message_rules import is_empty, storable

PROMPT_ROLES: Final = ("system", "developer")

_EMPTY: Final = Message(role="system", content=())


class Unit(NamedTuple):
    """A message, and the client's objects of which it was read."""

    message: Message
    objects: Sequence[JsonObject]


class Answer(Protocol):
    """An answer, put together from the events of a stream or read whole."""

    @property
    def objects(self) -> Sequence[JsonObject]:
        """The answer in the form in which a client resends it; empty until its end."""

    def feed(self, event: JsonObject) -> None:
        """Take an event of a stream."""

    def take(self, response: JsonObject) -> None:
        """Take a response without a stream."""


class ProxiedAPI(Protocol):
    """Reads and rewrites the conversation in a request; all else stays as it is."""

    provider: ClassVar[str]
    text_type: ClassVar[str]
    answer: ClassVar[type[Answer]]

    def split(self, body: JsonObject) -> tuple[Sequence[JsonObject], Sequence[JsonObject]]:
        """Return the prompts before the conversation, and the conversation.

        Raises:
            InvalidMessage: the request has none, or a part of it is with the provider.
        """

    def read(self, one: JsonObject) -> Message:
        """Read an object of a conversation.

        Raises:
            InvalidMessage: it is not of this API.
        """

    def render(self, message: Message) -> list[JsonObject]:
        """Write a message that the client no longer has, or a part of one."""

    def rewrite(self, body: JsonObject, notes: str, tail: Sequence[JsonObject]) -> JsonObject:
        """Return the request with its conversation as notes, if any, and the end of it."""


def list_of_objects(value: object) -> list[JsonObject]:
    """Return the value if it is a list of JSON objects."""
    if not isinstance(value, list) or not all(isinstance(one, dict) for one in value):
        raise InvalidMessage("the request has no list of messages")
    return value


def is_reference(one: JsonObject) -> bool:
    """Return whether an object stands for an item of Responses, of which it has the id alone."""
    return one.get("type") == "item_reference"


def read_units(
    api: ProxiedAPI, objects: Sequence[JsonObject], items: Mapping[str, JsonObject] | None = None
) -> list[Unit]:
    """Read a conversation: no message is empty or a prompt, and successive ones are joined.

    References to *items*, by id, are read as these.

    Raises:
        InvalidMessage: an object is not of this API, or refers to an unknown item.
    """
    units: list[Unit] = []
    for one in objects:
        meant = (items or {}).get(str(one.get("id")), one) if is_reference(one) else one
        # A prompt is never noted, and clients move it and change it with each request.
        is_prompt = meant.get("role") in PROMPT_ROLES
        units.append(Unit(_EMPTY if is_prompt else api.read(_storable(meant)), (one,)))
    return _join(_without_empty(units))


def _storable(value: Any) -> Any:  # JSON of any kind
    """Return a value with texts that a tape takes, as results of tools may have any bytes."""
    match value:
        case str():
            return storable(value)
        case dict():
            return {storable(key): _storable(inner) for key, inner in value.items()}
        case list():
            return [_storable(inner) for inner in value]
        case _:
            return value


def _without_empty(units: Sequence[Unit]) -> list[Unit]:
    """Return units without empty messages, which no tape takes, beside the message after each."""
    whole: list[Unit] = []
    empty: list[JsonObject] = []
    for message, objects in units:
        if is_empty(message):
            empty += objects
        else:
            whole.append(Unit(message, (*empty, *objects)))
            empty = []
    if empty and whole:
        message, before = whole.pop()
        whole.append(Unit(message, (*before, *empty)))
    return whole


def _join(units: Sequence[Unit]) -> list[Unit]:
    """Return units with successive answers as one, and with the results of a round as one."""
    joined: list[Unit] = []
    for message, objects in units:
        if joined and are_one(joined[-1].message, message):
            before, first = joined.pop()
            content = (*before.content, *message.content)
            joined.append(Unit(message.replace(content=content), (*first, *objects)))
        else:
            joined.append(Unit(message, objects))
    return joined


def with_text(message: JsonObject, text: str, kind: str) -> JsonObject:
    """Return a message of the user with one more text, a part of type *kind*, at its end."""
    content = message.get("content")
    parts = [{"type": kind, "text": content}] if isinstance(content, str) else list(content or ())
    return {**message, "content": [*parts, {"type": kind, "text": text}]}
