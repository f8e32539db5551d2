"""The JSON of an event, the same in a stream and in a webhook."""

from pydantic import TypeAdapter

from remanence.types import Event

_EVENT = TypeAdapter(Event)


def encode_event(event: Event) -> bytes:
    """Return an event as a JSON object."""
    return _EVENT.dump_json(event)
