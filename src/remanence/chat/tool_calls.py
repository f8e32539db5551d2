"""Running the tool calls of a model."""

import sys
from collections.abc import Mapping
from typing import Final

from remanence import telemetry
from remanence.types import ErrorText, Message, Tool, ToolCallPart
from remanence.wire.json_value import loads
from remanence.wire.message_rules import storable

BESIDE_BYTES: Final = 100
"""Bytes of a result message besides its text and call id: the message id, and our own words."""


async def run_tool(
    call: ToolCallPart, tools: Mapping[str, Tool], *, max_bytes: int = sys.maxsize
) -> Message:
    """Run a tool call and return its result message, which may report a failure.

    A result that is not text, or longer than *max_bytes*, is reported as a failure of a tool that
    has run. Too long error texts are left out.
    """
    max_bytes -= _size_in_bytes(call.id) + BESIDE_BYTES
    tool = tools.get(call.name)
    if tool is None:
        known = ", ".join(sorted(tools)) or "there are none"
        return _error_result(call, f"there is no tool {call.name!r}; known tools: {known}")
    try:
        arguments = loads(call.arguments or "{}")
    except ValueError as error:
        return _error_result(call, f"the arguments are not JSON: {error}")
    if not isinstance(arguments, dict):
        return _error_result(call, f"the arguments are {call.arguments!r:.200}: pass a JSON object")
    try:
        text = await tool.handler(arguments)
    except Exception as error:  # noqa: BLE001 - a handler may raise anything
        telemetry.tool_failed(call.name, type(error).__name__)
        kind, said = type(error).__name__, str(error)
        if (size := _size_in_bytes(said)) > max_bytes:
            said = f"its text is too long: {size:,} bytes"
        return _error_result(call, f"{kind}: {said}")
    if not isinstance(text, str):
        kind = type(text).__name__
        telemetry.tool_failed(call.name, f"a result of type {kind}")
        return _error_result(call, f"the tool has run, but returned a {kind} instead of a text")
    if (size := _size_in_bytes(text)) > max_bytes:
        telemetry.tool_failed(call.name, f"a result of {size:,} bytes")
        return _error_result(call, f"the tool has run, but its result is too long: {size:,} bytes")
    return Message.tool(call.id, storable(text), is_error=isinstance(text, ErrorText))


def refuse_call(call: ToolCallPart) -> Message:
    """Return a result that refuses a call whose arguments may be incomplete."""
    return _error_result(call, "not run: the answer was cut off at its limit; call the tool again")


def _size_in_bytes(text: str) -> int:
    return len(text.encode(errors="replace"))


def _error_result(call: ToolCallPart, text: str) -> Message:
    return Message.tool(call.id, storable(text), is_error=True)
