"""Which of the user's messages opened the turn that a model works on, and how they are read."""

from dataclasses import replace

import pytest
from tests.builders import REF, call

from remanence import Message
from remanence.engine.openings import (
    EARLIER_MESSAGES,
    MAX_TURN_MESSAGES,
    opening,
    read_opening,
)
from remanence.stores import open_store
from remanence.testing import FaultyStore
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


@pytest.mark.parametrize("rounds", [10, 24, 25, 26, 80])
async def test_an_opening_is_found_however_the_pages_that_are_read_divide_the_turn(
    rounds: int,
) -> None:
    turn = [USER, USER, *[call("a"), A] * rounds]
    store = await open_store("sqlite:///:memory:")
    appended = await store.append(REF, [USER, ANSWER, *turn], user="ana")
    found = [
        await read_opening(store, replace(appended.state, tail_seq=seq))
        for seq in range(3, appended.state.last_seq)
    ]
    await store.close()

    seqs = [tuple(message.seq for message in messages) for messages in found]
    assert seqs == [(), (), *[(3, 4)] * (len(seqs) - 2)]


async def test_the_search_for_an_opening_ends_after_so_many_messages() -> None:
    store = FaultyStore(await open_store("sqlite:///:memory:"))
    appended = await store.append(REF, [USER, *[call("a"), A] * 5_050], user="ana")
    near = await read_opening(store, replace(appended.state, tail_seq=MAX_TURN_MESSAGES))
    far = await read_opening(store, replace(appended.state, tail_seq=appended.state.last_seq))
    await store.close()

    assert [message.seq for message in near] == [1]
    assert far == ()
    assert store.calls.count("messages") == 2 * MAX_TURN_MESSAGES // EARLIER_MESSAGES
