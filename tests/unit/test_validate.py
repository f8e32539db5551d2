from typing import Any

import pytest

from remanence.wire.validate import anthropic_problems, openai_problems

JsonObject = dict[str, Any]  # a provider's request: its shape is the provider's


def turn(role: str, *blocks: JsonObject | str) -> JsonObject:
    content = [{"type": "text", "text": b} if isinstance(b, str) else b for b in blocks]
    return {"role": role, "content": content}


def use(id_: str) -> JsonObject:
    return {"type": "tool_use", "id": id_, "name": "look", "input": {}}


def result(id_: str) -> JsonObject:
    return {"type": "tool_result", "tool_use_id": id_, "content": "42"}


def call(*ids: str) -> JsonObject:
    function = {"name": "look", "arguments": "{}"}
    calls = [{"id": id_, "type": "function", "function": function} for id_ in ids]
    return {"role": "assistant", "content": None, "tool_calls": calls}


def answer(id_: str) -> JsonObject:
    return {"role": "tool", "tool_call_id": id_, "content": ""}


USER = {"role": "user", "content": "hi"}


def test_a_tool_loop_is_a_valid_anthropic_request() -> None:
    request = {
        "system": [{"type": "text", "text": "Be kind.", "cache_control": {"type": "ephemeral"}}],
        "messages": [
            turn("user", "look"),
            turn("assistant", "I look.", use("a"), use("b")),
            turn("user", result("b"), result("a"), "and now?"),
            turn("assistant", "Done."),
        ],
    }

    assert anthropic_problems(request) == ()


@pytest.mark.parametrize(
    ("messages", "expected"),
    [
        ([], "there is no message"),
        ([turn("assistant", "hi")], "message 1 is the assistant's and the first"),
        ([turn("user", "a"), turn("user", "b")], "message 2 is the user's as the one before it"),
        ([turn("system", "a")], "message 1 has the role 'system'"),
        ([turn("user")], "message 1 has no content"),
        ([turn("user", " ")], "block 1 of message 1 is an empty text"),
        ([turn("user", "a"), turn("assistant", use("x"))], "'x' of the last message has no result"),
        (
            [turn("user", "a"), turn("assistant", use("x")), turn("user", "b")],
            "tool call 'x' has no result in message 3, right after it",
        ),
        (
            [turn("user", "a"), turn("assistant", "b"), turn("user", result("x"))],
            "message 3 has a result of 'x', which the turn before does not call",
        ),
        (
            [turn("user", "a"), turn("assistant", use("x")), turn("user", "b", result("x"))],
            "message 3 has a tool result after other content",
        ),
        (
            [turn("user", "a"), turn("assistant", use("x")), turn("user", result("x"), result("x"))],
            "message 3 has more than one result of 'x'",
        ),
        (
            [turn("user", "a")]
            + [turn("assistant", use("x")), turn("user", result("x"), "more")] * 2,
            "message 4 uses the tool call id 'x' again",
        ),
        ([turn("user", use("x"))], "message 1 is the user's and calls a tool"),
    ],
)  # fmt: skip
def test_what_anthropic_would_refuse_is_named(messages: list[JsonObject], expected: str) -> None:
    assert any(expected in problem for problem in anthropic_problems({"messages": messages}))


def test_a_fifth_cache_breakpoint_is_named() -> None:
    marked = {"type": "text", "text": "a", "cache_control": {"type": "ephemeral"}}

    problems = anthropic_problems(
        {"system": [marked] * 3, "messages": [turn("user", *[marked] * 2)]}
    )

    assert problems == ("5 blocks have cache_control; 4 are allowed",)


def test_an_empty_system_text_is_named() -> None:
    request = {"system": [{"type": "text", "text": ""}], "messages": [turn("user", "a")]}

    assert anthropic_problems(request) == ("block 1 of system is an empty text",)


def test_a_tool_loop_is_a_valid_openai_request() -> None:
    messages = [
        {"role": "system", "content": "Be kind."}, USER, call("a", "b"), answer("b"), answer("a"),
        {"role": "assistant", "content": "Done."},
    ]  # fmt: skip

    assert openai_problems({"messages": messages}) == ()


@pytest.mark.parametrize(
    ("messages", "expected"),
    [
        ([], "there is no message"),
        ([{"role": "robot", "content": "a"}], "message 1 has the role 'robot'"),
        ([{"role": "user", "content": None}], "message 1 has no content"),
        ([{"role": "assistant", "content": ""}], "message 1 has neither content nor tool calls"),
        ([USER, answer("x")], "has a result of 'x', which the turn before does not call"),
        ([USER, call("x"), USER], "tool call 'x' has no result in message 3, right after it"),
        ([USER, call("x")], "tool call 'x' has no result in message 3, right after it"),
        ([USER, call("x", "x"), answer("x")], "message 2 uses a tool call id twice"),
        ([USER, call("x"), answer("x"), answer("x")], "more than one result of 'x'"),
        ([{**USER, "tool_calls": call("x")["tool_calls"]}], "is the user's and calls a tool"),
    ],
)
def test_what_openai_would_refuse_is_named(messages: list[JsonObject], expected: str) -> None:
    assert any(expected in problem for problem in openai_problems({"messages": messages}))
