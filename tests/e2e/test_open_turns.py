"""What a long turn of tool calls was opened with stays in its prompts, word for word."""

import gc
from collections.abc import Callable, Coroutine, Sequence
from itertools import pairwise
from typing import Any

import pytest
from tests.builders import call

from remanence import Context, Memory, Message, Policy
from remanence.conversation import Conversation
from remanence.runtime import Opening
from remanence.testing import ScriptedObserver, check_coverage, check_extends

POLICY = Policy(
    observe_tokens=300, tail_tokens=300, tail_keep_tokens=60, keep_last=4, reflect_tokens=()
)
TASK = "Port this module to asyncio, and keep LIMIT_17 = 64321. " * 3
RESULT = "A line of the log of a long run of tests, and nothing else. " * 3


async def work(chat: Conversation, rounds: range) -> list[Context]:
    """Append rounds of a call and its result, and return the context after each."""
    contexts = []
    for number in rounds:
        await chat.append(call(f"c{number}"), Message.tool(f"c{number}", RESULT))
        await chat.flush()
        contexts.append(await chat.context())
        check_coverage(contexts[-1], await chat.state(), await chat.observations())
    return contexts


def shows_task(contexts: Sequence[Context]) -> list[bool]:
    return [context.messages[0].text == TASK for context in contexts]


async def test_the_task_of_an_open_turn_stays_raw_until_the_turn_is_over() -> None:
    async with Memory.open(
        "sqlite:///:memory:", policy=POLICY, observer=ScriptedObserver()
    ) as memory:
        chat = memory.conversation("a")
        await chat.append(Message.user("Hello."), Message.assistant("Hi."), Message.user(TASK))
        within = await work(chat, range(70))
        at_end = (await chat.state()).active_seq
        await chat.append(Message.assistant("Done."), Message.user("Now the tests."))
        after = await work(chat, range(70, 80))

    assert at_end > 100, "the turn was interrupted"
    assert all(shows_task(within[10:]))
    for earlier, later in pairwise(within):
        check_extends(earlier, later)
    assert not any(shows_task(after[-3:]))
    assert after[-1].messages[0].text == "Now the tests."


async def test_a_fork_and_a_past_version_show_the_task_of_their_open_turn() -> None:
    async with Memory.open(
        "sqlite:///:memory:", policy=POLICY, observer=ScriptedObserver()
    ) as memory:
        chat = memory.conversation("a")
        await chat.append(Message.user(TASK))
        await work(chat, range(12))
        version = (await chat.state()).lock_version
        await chat.fork("b", last_seq=(await chat.state()).last_seq)
        forked = await chat.sibling("b").context()
        await chat.append(Message.assistant("Done."), Message.user("Now the tests."))
        await work(chat, range(12, 24))
        past = await chat.context_at(version)

    assert shows_task([forked, past]) == [True, True]


async def test_a_task_that_is_forgotten_does_not_come_back() -> None:
    async with Memory.open(
        "sqlite:///:memory:", policy=POLICY, observer=ScriptedObserver()
    ) as memory:
        chat = memory.conversation("a")
        await chat.append(Message.user("Hello."), Message.assistant("Hi."))
        await chat.append(Message.user(TASK, id="task"))
        (*_, before) = await work(chat, range(70))
        await chat.forget("task")
        after = await chat.context()

    assert shows_task([before, after]) == [True, False]
    assert "LIMIT_17" not in after.to_text()
    assert after.messages[0].seq > 3


async def test_an_order_after_a_result_takes_the_place_of_the_task_that_it_stops() -> None:
    async with Memory.open(
        "sqlite:///:memory:", policy=POLICY, observer=ScriptedObserver()
    ) as memory:
        chat = memory.conversation("a")
        await chat.append(Message.user("Delete all files in /var."))
        await work(chat, range(3))
        await chat.append(Message.user(TASK))
        within = await work(chat, range(3, 40))

    assert all(shows_task(within[10:]))


async def test_an_agent_that_answers_by_calls_alone_is_not_shown_its_first_question() -> None:
    async with Memory.open(
        "sqlite:///:memory:", policy=POLICY, observer=ScriptedObserver()
    ) as memory:
        chat = memory.conversation("a")
        shown = []
        for number in range(20):
            await chat.append(Message.user(f"Question {number}: {TASK}"))
            (context,) = await work(chat, range(number, number + 1))
            shown.append(context.messages[0].seq)

    assert shown == sorted(shown)
    assert shown[-1] > 3 * 15


@pytest.mark.parametrize(
    "erase",
    [
        lambda memory: memory.conversation("a", user="ana").forget("task"),
        lambda memory: memory.conversation("a", user="ana").delete(),
        lambda memory: memory.forget_user("ana"),
    ],
    ids=["message", "conversation", "user"],
)
async def test_a_forgotten_task_does_not_stay_in_the_process_for_later_prompts(
    erase: Callable[[Memory], Coroutine[Any, Any, object]],
) -> None:
    async with Memory.open("sqlite:///:memory:", policy=POLICY) as memory:
        chat = memory.conversation("a", user="ana")
        await chat.append(Message.user(TASK, id="task"))
        shown = shows_task(await work(chat, range(24)))
        await erase(memory)
        gc.collect()

        assert all(shown[12:])
        kept = [one for one in gc.get_objects() if type(one) is Opening]
        assert not any("LIMIT_17" in message.text for one in kept for message in one.messages)
