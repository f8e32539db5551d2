"""Gemini's tool calls without ids, to which results are matched by name and order."""

from collections.abc import Sequence
from dataclasses import replace

from remanence.wire.gemini import NAMELESS_ID
from remanence.wire.message import Message
from remanence.wire.parts import Part, ToolCallPart, ToolResultPart


def has_nameless(messages: Sequence[Message]) -> bool:
    """Return whether any call or result in *messages* came without an id."""
    ids = [
        part.id if isinstance(part, ToolCallPart) else part.call_id
        for message in messages
        for part in message.content
        if isinstance(part, ToolCallPart | ToolResultPart)
    ]
    return any(id_.startswith(NAMELESS_ID) for id_ in ids)


class OpenCalls:
    """The calls of the newest round that have no result yet."""

    def __init__(self, messages: Sequence[Message] = ()) -> None:
        """Start with the calls that *messages* leave open."""
        self._open: list[ToolCallPart] = []
        self._is_asking = False
        for message in messages:
            self.pair(message)

    def pair(self, message: Message) -> Message:
        """Return the next message, whose results without ids get those of the calls they answer.

        Such a result answers the first open call of its tool. The numbering of calls continues
        across successive assistant messages.
        """
        if message.role == "assistant":
            if not self._is_asking:
                self._open = []
            self._is_asking = bool(message.tool_calls)
        elif message.tool_results:
            self._is_asking = False
        content = tuple(self._pair(part) for part in message.content)
        return message if content == message.content else message.replace(content=content)

    def _pair(self, part: Part) -> Part:
        match part:
            case ToolCallPart():
                call = self._number(part)
                self._open.append(call)
                return call
            case ToolResultPart():
                return self._answering(part)
            case _:
                return part

    def _number(self, call: ToolCallPart) -> ToolCallPart:
        open_ids = {other.id for other in self._open}
        if not call.id.startswith(NAMELESS_ID) or call.id not in open_ids:
            return call
        ids = (f"{NAMELESS_ID}{call.name}:{number}" for number in range(1, len(open_ids) + 2))
        return replace(call, id=next(id_ for id_ in ids if id_ not in open_ids))

    def _answering(self, result: ToolResultPart) -> ToolResultPart:
        call = next((call for call in self._open if call.id == result.call_id), None)
        if call is None and result.call_id.startswith(NAMELESS_ID):
            name = result.call_id.removeprefix(NAMELESS_ID).rpartition(":")[0]
            alike = [call for call in self._open if call.name == name]
            call = min(alike, key=lambda call: not call.id.startswith(NAMELESS_ID), default=None)
        if call is None:
            return result
        self._open.remove(call)
        return replace(result, call_id=call.id)
