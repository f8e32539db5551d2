"""Where a conversation may be cut."""

import pytest
from tests.builders import call, responses, server_call, server_result

from remanence import Message
from remanence.types import OtherPart
from remanence.wire.boundaries import ends_turn, groups, is_turn_open, safe_ends
from remanence.wire.links import Link, link

USER, ANSWER = Message.user("Hello."), Message.assistant("Hi.")
A, B = Message.tool("a", "1"), Message.tool("b", "2")
SEARCH, FOUND = server_call("s"), server_result("s")
CODE = server_call("s", "a")
APPROVE, APPROVED = responses(
    {"type": "mcp_approval_request", "id": "m", "server_label": "x", "name": "n", "arguments": ""},
    {"type": "mcp_approval_response", "approval_request_id": "m", "approve": True},
)

LS, LISTED = responses(
    {"type": "shell_call", "call_id": "l", "action": {"commands": ["ls"]}},
    {"type": "shell_call_output", "call_id": "l", "output": []},
)
PROGRAM, PRINTED = responses(
    {"type": "program", "id": "x", "call_id": "p", "code": "", "fingerprint": ""},
    {"type": "program_output", "id": "y", "call_id": "p", "result": "", "status": "completed"},
)


@pytest.mark.parametrize(
    ("messages", "sizes"),
    [
        ([], []),
        ([USER], [1]),
        ([USER, ANSWER, USER], [1, 1, 1]),
        ([USER, call("a"), A, ANSWER], [1, 2, 1]),
        ([call("a", "b"), B, A], [3]),
        ([call("a"), A, A], [2, 1]),
        ([call("a"), USER, A], [1, 1, 1]),
        ([call("a"), B], [1, 1]),
        ([call("a", "b"), A, USER, B], [2, 1, 1]),
        ([call("a"), A, call("b"), B], [2, 2]),
        ([call("a"), call("b"), B, A], [4]),
        ([call("a"), ANSWER, A], [3]),
        ([call("a"), call("a"), A], [1, 2]),
        ([call("a"), A, ANSWER], [2, 1]),
        ([call("a", "b"), A, ANSWER, B], [2, 1, 1]),
        ([call("a"), call("b"), A, call("c")], [3, 1]),
        ([USER, SEARCH, FOUND, USER], [1, 2, 1]),
        ([USER, CODE, A, FOUND, ANSWER], [1, 3, 1]),
        ([CODE, A, call("b"), B, FOUND], [5]),
        ([CODE, A, USER, FOUND], [2, 1, 1]),
        ([APPROVE, APPROVED, ANSWER], [2, 1]),
        ([LS, LISTED, LS, LISTED, ANSWER], [2, 2, 1]),
        ([PROGRAM, call("a"), A, call("b"), B, PRINTED, ANSWER], [6, 1]),
    ],
)
def test_a_call_and_the_results_that_follow_it_are_one_run(
    messages: list[Message], sizes: list[int]
) -> None:
    runs = list(groups(messages))

    assert [len(run) for run in runs] == sizes
    assert [message for run in runs for message in run] == messages


@pytest.mark.parametrize(
    ("messages", "open_ends", "final_ends"),
    [
        ([], [], []),
        ([USER, ANSWER], [0, 1], [0, 1]),
        ([USER, call("a")], [0], [0, 1]),
        ([USER, call("a"), A], [0, 2], [0, 2]),
        ([USER, call("a", "b"), A], [0], [0, 2]),
        ([USER, call("a", "b"), A, B], [0, 3], [0, 3]),
        ([call("a"), USER], [0, 1], [0, 1]),
        ([USER, call("a"), call("b"), B], [0], [0, 3]),
        ([USER, SEARCH], [0], [0, 1]),
        ([USER, CODE, A], [0], [0, 2]),
        ([USER, CODE, A, FOUND], [0, 3], [0, 3]),
    ],
)
def test_the_last_run_ends_safely_once_all_its_calls_are_answered(
    messages: list[Message], open_ends: list[int], final_ends: list[int]
) -> None:
    assert safe_ends(messages, final=False) == open_ends
    assert safe_ends(messages, final=True) == final_ends


@pytest.mark.parametrize(
    ("messages", "is_open"),
    [
        ([], False),
        ([USER], True),
        ([USER, ANSWER], False),
        ([USER, call("a")], True),
        ([USER, call("a"), A], True),
        ([USER, call("a"), A, ANSWER], False),
        ([USER, SEARCH], True),
        ([USER, SEARCH, FOUND], False),
        ([call("a"), A, ANSWER, USER], True),
    ],
)
def test_a_turn_is_open_until_the_assistant_answers_without_a_call(
    messages: list[Message], is_open: bool
) -> None:
    assert is_turn_open(messages) is is_open


@pytest.mark.parametrize(
    ("messages", "is_open"),
    [
        ([USER] * 3, True),
        ([USER] * 4, False),
        ([ANSWER, *[USER] * 3], True),
        ([ANSWER, *[USER] * 4], False),
        ([ANSWER, ANSWER, *[USER] * 4], False),
        ([call("a"), A, *[USER] * 3], True),
    ],
)
def test_more_than_three_messages_of_users_in_a_row_wait_for_no_answer(
    messages: list[Message], is_open: bool
) -> None:
    assert is_turn_open(messages) is is_open


@pytest.mark.parametrize(
    "last",
    [
        Message.user("Remember the style guide.", kind="control"),
        Message.user("Notes of last week.", kind="memory"),
        Message(role="system", content=ANSWER.content),
    ],
    ids=["control", "memory", "system"],
)
def test_text_of_the_host_neither_opens_nor_closes_a_turn(last: Message) -> None:
    assert not is_turn_open([last])
    assert not is_turn_open([USER, ANSWER, last])
    assert is_turn_open([USER, last])
    assert is_turn_open([USER, call("a"), last])


@pytest.mark.parametrize(
    ("messages", "index", "ends"),
    [
        ([USER, ANSWER], 1, True),
        ([USER, ANSWER, USER], 1, True),
        ([USER, ANSWER, ANSWER], 1, False),
        ([USER, call("a"), A], 1, False),
        ([USER, USER], 0, False),
        ([USER], 0, False),
        ([USER, call("a"), A], 2, False),
    ],
)
def test_a_turn_ends_with_the_answer_before_the_next_message_of_a_user(
    messages: list[Message], index: int, ends: bool
) -> None:
    assert ends_turn(messages, index) is ends


def test_a_long_part_is_parsed_once_however_often_its_link_is_needed() -> None:
    raw = '{"type":"server_tool_use","id":"s1","input":[' + "[]," * 1_000 + "[]]}"
    part = OtherPart(dialect="anthropic", raw=raw)

    assert [link(part) for _ in range(2)] == [Link("server_call", "anthropic s1")] * 2
    assert part.head is part.head == {"type": "server_tool_use", "id": "s1"}
    assert part == OtherPart(dialect="anthropic", raw=raw)
