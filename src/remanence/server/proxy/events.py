"""Incremental parsing of server-sent events."""

import re
from collections.abc import Iterator

from remanence.wire.json_value import JsonObject, read_object

_END = re.compile(rb"\r\n\r\n|\n\n|\r\r")
MAX_EVENT_BYTES = 16 * 1024 * 1024


class EventReader:
    """Reads the JSON data of each event, and skips everything else, such as comments."""

    def __init__(self) -> None:
        self._rest = bytearray()

    def feed(self, piece: bytes) -> Iterator[JsonObject]:
        """Yield the events that *piece* completes; raise `ValueError` if one is implausibly long."""
        looked = max(0, len(self._rest) - 3)  # the four-byte end may be split between pieces
        self._rest += piece
        begin = 0
        for end in _END.finditer(self._rest, looked):
            if (event := _event(bytes(self._rest[begin : end.start()]))) is not None:
                yield event
            begin = end.end()
        del self._rest[:begin]
        if len(self._rest) > MAX_EVENT_BYTES:
            raise ValueError(f"an event has more than {MAX_EVENT_BYTES:,} bytes")


def usage_in(response: JsonObject) -> JsonObject:
    """Return the usage in a response or an event; it may be in the event's message or response."""
    for owner in (response, response.get("message"), response.get("response")):
        if isinstance(owner, dict) and isinstance(usage := owner.get("usage"), dict):
            return {name: value for name, value in usage.items() if value is not None}
    return {}


def is_error(event: JsonObject) -> bool:
    """Return whether a provider ends its answer with this event because it failed."""
    return bool(event.get("error")) or event.get("type") in ("error", "response.failed")


def _event(block: bytes) -> JsonObject | None:
    data = [line[5:].strip() for line in block.splitlines() if line.startswith(b"data:")]
    return read_object(b"\n".join(data))
