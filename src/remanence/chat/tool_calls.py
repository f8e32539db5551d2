"""Running the tool calls of a model."""

import json
from collections.abc import Mapping

from remanence import telemetry
from remanence.types import Message, Tool, ToolCallPart


async def run_tool(call: ToolCallPart, tools: Mapping[str, Tool]) -> Message:
    """Run a tool call and return its result message; a failure is a result too."""
    tool = tools.get(call.name)
    if tool is None:
        known = ", ".join(sorted(tools)) or "there are none"
        return _error_result(call, f"there is no tool {call.name!r}; known tools: {known}")
    try:
        arguments = json.loads(call.arguments or "{}")
    except ValueError as error:
        return _error_result(call, f"the arguments are not JSON: {error}")
    if not isinstance(arguments, dict):
        return _error_result(call, f"the arguments are {call.arguments!r}: pass a JSON object")
    try:
        text = await tool.handler(arguments)
    except Exception as error:  # noqa: BLE001 - a handler may raise anything
        telemetry.tool_failed(call.name, type(error).__name__)
        return _error_result(call, f"{type(error).__name__}: {error}")
    return Message.tool(call.id, text)


def _error_result(call: ToolCallPart, text: str) -> Message:
    return Message.tool(call.id, text, is_error=True)
