"""The parts of a provider's API that a proxy needs to know."""

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Final, NamedTuple, Protocol

from remanence.errors import InvalidMessage
from remanence.server.proxy.identity import count_as_one
from remanence.types import Message
from remanence.wire.json_value import MAX_DEPTH, JsonObject
from remanence.wire.message_rules import storable

PROMPT_ROLES: Final = ("system", "developer")


class Unit(NamedTuple):
    """A message, and the client's objects that it was read from."""

    message: Message
    objects: Sequence[JsonObject]

    def replace_by(self, objects: Sequence[JsonObject]) -> list[JsonObject]:
        """Return *objects* among the prompts beside the message, which they replace."""
        own = [is_prompt(one) for one in self.objects]
        before = self.objects[: own.index(False)]
        return [*before, *objects, *filter(is_prompt, self.objects[len(before) :])]


class Answer(Protocol):
    """An answer, assembled from the events of a stream or read from a whole response."""

    @property
    def objects(self) -> Sequence[JsonObject]:
        """The answer as a client will resend it; empty until it is complete."""

    def feed(self, event: JsonObject) -> None:
        """Add an event of a stream."""

    def take(self, response: JsonObject) -> None:
        """Read a non-streamed response."""


class ProxiedAPI(Protocol):
    """Reads and rewrites the conversation in a request, and leaves everything else unchanged."""

    provider: ClassVar[str]
    text_type: ClassVar[str]
    answer: ClassVar[type[Answer]]

    def split(self, body: JsonObject) -> tuple[Sequence[JsonObject], Sequence[JsonObject]]:
        """Return the prompts before the conversation, and the conversation.

        Raises:
            InvalidMessage: there is no conversation, or the provider stores a part of it.
        """

    def read(self, one: JsonObject) -> Message:
        """Read an object of a conversation.

        Raises:
            InvalidMessage: the object does not belong to this API.
        """

    def render(self, message: Message) -> list[JsonObject]:
        """Render a message that the client no longer has, or a part of one."""

    def rewrite(
        self,
        body: JsonObject,
        notes: str,
        kept: Sequence[JsonObject],
        tail: Sequence[JsonObject],
    ) -> JsonObject:
        """Return the request with its conversation replaced by *notes*, if any, and *tail*.

        Objects that are *kept* come from before the tail, and are not in the notes.
        """


def list_of_objects(value: object) -> list[JsonObject]:
    """Return the value if it is a list of JSON objects."""
    if not isinstance(value, list) or not all(isinstance(one, dict) for one in value):
        raise InvalidMessage("the request has no list of messages")
    return value


def is_prompt(one: JsonObject) -> bool:
    """Return whether an object is an instruction to the model, which is never noted."""
    return one.get("role") in PROMPT_ROLES


def is_reference(one: JsonObject) -> bool:
    """Return whether an object refers to an item of the Responses API by id."""
    return one.get("type") == "item_reference"


def read_units(
    api: ProxiedAPI, objects: Sequence[JsonObject], items: Mapping[str, JsonObject] | None = None
) -> list[Unit]:
    """Read a conversation without prompts and empty messages, joining those that count as one.

    References by id are resolved from *items*.

    Raises:
        InvalidMessage: an object does not belong to this API, or refers to an unknown item.
    """
    units: list[Unit] = []
    empty: list[JsonObject] = []  # a tape does not accept them: they stay beside the next message
    for one in objects:
        meant = (items or {}).get(str(one.get("id")), one) if is_reference(one) else one
        # Prompts are never noted, and clients move and change them with each request.
        message = None if is_prompt(meant) else api.read(_storable(meant))
        if message is None or message.is_empty:
            empty.append(one)
            continue
        begun: Sequence[JsonObject] = ()
        if units and count_as_one(units[-1].message, message):
            before, begun = units.pop()
            message = message.replace(content=(*before.content, *message.content))
        units.append(Unit(message, (*begun, *empty, one)))
        empty = []
    if empty and units:
        last = units.pop()
        units.append(last._replace(objects=(*last.objects, *empty)))
    return units


def _storable(value: Any, depth: int = MAX_DEPTH) -> Any:  # JSON of any kind
    """Return a value with strings that a tape accepts, as tool results may have any bytes.

    What is nested deeper than a message may be stays as it is, and is refused when it is read.
    """
    if depth < 0:
        return value
    match value:
        case str():
            return storable(value)
        case dict():
            return {storable(key): _storable(inner, depth - 1) for key, inner in value.items()}
        case list():
            return [_storable(inner, depth - 1) for inner in value]
        case _:
            return value
