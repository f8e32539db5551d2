"""Which of the user's messages opened the turn that a model works on, and how they are read."""

import pytest
from tests.builders import call

from remanence import Message
from remanence.engine.openings import opening
from remanence.types import ImagePart

USER, ANSWER = Message.user("Hello."), Message.assistant("Hi.")
A = Message.tool("a", "1")
REMINDER = Message.user("<system-reminder>Mind the list.</system-reminder>")
CONTROL = Message.user("Mind the list.", kind="control")
PICTURE = Message(role="user", content=(ImagePart(url="https://example.org/a.png"),))
BESIDE = Message.from_anthropic(
    {
        "role": "user",
        "content": [
            {"type": "tool_result", "tool_use_id": "a", "content": "open"},
            {"type": "text", "text": "Mind the list."},
        ],
    }
)


@pytest.mark.parametrize(
    ("messages", "opened"),
    [
        ([], range(0)),
        ([ANSWER, call("a")], range(0)),
        ([USER, call("a"), A, ANSWER, USER, ANSWER], range(5, 5)),
        ([USER, call("a"), A, ANSWER, USER], range(5, 5)),
        ([USER, call("a"), A], range(1)),
        ([USER, ANSWER, USER, call("a"), A, ANSWER], range(2, 3)),
        ([USER, call("a"), A, USER, call("a"), A], range(3, 4)),
        ([USER, call("a"), A, REMINDER, call("a"), A], range(1)),
        ([USER, call("a"), A, CONTROL, call("a"), A], range(1)),
        ([USER, call("a"), A, REMINDER, PICTURE, call("a"), A], range(3, 5)),
        ([USER, call("a"), A, USER], range(4, 4)),
        ([USER, call("a"), BESIDE, call("a"), A], range(1)),
        ([USER, call("a"), A, ANSWER, USER, USER, call("a")], range(4, 6)),
        ([ANSWER, *[USER] * 9, call("a")], range(7, 10)),
        ([USER, USER.replace(kind="forgotten"), call("a")], range(2, 2)),
        ([USER, ANSWER, USER.replace(kind="forgotten"), USER, call("a")], range(3, 4)),
    ],
)
def test_the_newest_messages_of_the_user_without_results_opened_a_turn_of_calls(
    messages: list[Message], opened: range
) -> None:
    found = opening(messages)

    assert (found.start, found.stop) == (opened.start, opened.stop)
