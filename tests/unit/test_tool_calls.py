"""A tool call that fails has a result that tells the model why, and the turn goes on."""

from typing import Any

import pytest

from remanence.chat.tool_calls import run_tool
from remanence.types import Message, Tool, ToolCallPart


async def look(arguments: dict[str, Any]) -> str:
    return f"It is {arguments['at']} o'clock."


LOOK = Tool(name="look", description="The time.", parameters={"type": "object"}, handler=look)


def result_of(message: Message) -> tuple[str, bool]:
    (result,) = message.tool_results
    return result.text, result.is_error


@pytest.mark.parametrize(
    ("name", "arguments", "text", "is_error"),
    [
        ("look", '{"at": 9}', "It is 9 o'clock.", False),
        ("look", "{}", "KeyError: 'at'", True),
        ("look", "", "KeyError: 'at'", True),
        ("look", "{at: 9}", "the arguments are not JSON: Expecting property name", True),
        ("look", "[" * 100_000, "the arguments are not JSON: it is nested deeper", True),
        ("look", "[9]", "the arguments are '[9]': pass a JSON object", True),
        ("find", "{}", "there is no tool 'find'; known tools: look", True),
    ],
)
async def test_the_result_of_a_call_is_the_tools_text_or_the_reason_why_there_is_none(
    name: str, arguments: str, text: str, is_error: bool
) -> None:
    call = ToolCallPart(id="a", name=name, arguments=arguments)

    shown, failed = result_of(await run_tool(call, {"look": LOOK}))

    assert shown.startswith(text)
    assert failed == is_error
