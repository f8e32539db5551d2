"""Branches of a conversation at the proxies, some of which were deleted."""

import asyncio
import re
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager
from typing import Any

import pytest
from tests.server.conftest import Client, memory_on, served
from tests.wire.dialects import Call, Reply
from tests.wire.servers import Fail, Held, ModelServer

from remanence import Conversation, Memory, Message, Settings
from remanence.errors import StoreUnavailable
from remanence.server.app import create_app
from remanence.server.proxy.branches import MAX_BRANCHES
from remanence.server.proxy.naming import name_of
from remanence.stores import open_store
from remanence.testing import FaultyStore, FixedClock

KEY = {"authorization": "Bearer key-of-a"}
TENANT = name_of(KEY, "trip", None).tenant
DAY = 86_400.0
NUMBERS = ("One.", "Two.", "Three.", "Four.")
CALL = Reply("", calls=(Call("call_1", "ask_researcher"),))
TOOLS = [{"type": "function", "function": {"name": "find"}}]


def served_proxy(memory: Memory, upstream: ModelServer) -> AbstractAsyncContextManager[Client]:
    return served(create_app(memory, openai_url=upstream.url))


@pytest.fixture
async def proxy(memory: Memory, upstream: ModelServer) -> AsyncIterator[Client]:
    async with served_proxy(memory, upstream) as proxy:
        yield proxy


def history(*texts: str) -> list[dict[str, Any]]:
    return [
        {"role": "assistant" if index % 2 else "user", "content": text}
        for index, text in enumerate(texts)
    ]


async def ask(
    proxy: Client,
    *texts: str,
    conversation: str = "trip",
    user: str = "ana",
    key: str = "key-of-a",
    **fields: Any,
) -> str:
    """The tape on which the proxy put a history."""
    response = await proxy.http.post(
        "openai/v1/chat/completions",
        json={"model": "m", "messages": history(*texts), **fields},
        headers={
            "authorization": f"Bearer {key}",
            "x-remanence-conversation": conversation,
            "x-remanence-user": user,
        },
    )
    assert response.headers["x-remanence-memory"] == "on"
    return response.headers["x-remanence-conversation"]


async def branch(proxy: Client, upstream: ModelServer) -> None:
    """Ask for three answers to a question, each of which is on a tape of its own."""
    upstream.script(*map(Reply, NUMBERS[:3]))
    assert [await ask(proxy, "A number?") for _ in range(3)] == ["trip", "trip~1", "trip~2"]


def tape(memory: Memory, id_: str, user: str = "ana") -> Conversation:
    return memory.conversation(id_, user=user, tenant=TENANT)


async def facts_of(memory: Memory, id_: str) -> list[str]:
    """The user's facts after a conversation has ended."""
    await tape(memory, id_).end()
    found = await memory.facts.list(user="ana", tenant=TENANT)
    return [fact.summary for fact in found]


async def texts_of(memory: Memory, id_: str) -> list[str]:
    return [message.text for message in await tape(memory, id_).messages()]


async def test_identical_requests_at_the_same_time_each_name_the_tape_of_their_answer(
    proxy: Client, upstream: ModelServer, memory: Memory
) -> None:
    steps = [Held(Reply(text)) for text in NUMBERS]
    upstream.script(*steps)
    async with asyncio.TaskGroup() as group:
        asked = [group.create_task(ask(proxy, "A number?")) for _ in steps]
        for step in steps:
            await asyncio.wait_for(step.reached.wait(), 5)
        for step in steps:
            step.gate.set()

    tapes = [await texts_of(memory, task.result()) for task in asked]
    assert sorted(tapes) == sorted(["A number?", text] for text in NUMBERS)


@pytest.mark.parametrize("deleted", ["trip", "trip~1"])
async def test_a_tape_that_was_deleted_hides_no_branch_after_a_restart(
    memory: Memory, upstream: ModelServer, deleted: str
) -> None:
    async with served_proxy(memory, upstream) as proxy:
        await branch(proxy, upstream)
    await tape(memory, deleted).delete()
    async with served_proxy(memory, upstream) as proxy:
        upstream.script(Reply("It is odd."), Reply("Four."))
        assert await ask(proxy, "A number?", "Three.", "Why?") == "trip~2"
        assert await ask(proxy, "A number?") == ("trip" if deleted == "trip" else "trip~3")

    assert await texts_of(memory, "trip~2") == ["A number?", "Three.", "Why?", "It is odd."]
    assert len(await memory.conversations()) == 3


async def test_items_of_a_branch_behind_a_deleted_one_are_found(
    proxy: Client, memory: Memory, upstream: ModelServer
) -> None:
    headers = KEY | {"x-remanence-conversation": "trip", "x-remanence-user": "ana"}
    upstream.script(*(Reply(text, id=text) for text in NUMBERS[:3]))
    for _ in range(3):
        response = await proxy.http.post(
            "openai/v1/responses",
            json={"model": "m", "input": history("A number?")},
            headers=headers,
        )
    references = [{"type": "item_reference", "id": one["id"]} for one in response.json()["output"]]
    await tape(memory, "trip~1").delete()
    items = [*history("A number?"), *references, *history("Why?")]
    response = await proxy.http.post(
        "openai/v1/responses", json={"model": "m", "input": items}, headers=headers
    )

    assert response.headers["x-remanence-memory"] == "on"
    assert response.headers["x-remanence-conversation"] == "trip~2"


async def test_a_deleted_branch_whose_id_another_user_has_now_ends_no_memory(
    proxy: Client, memory: Memory, upstream: ModelServer
) -> None:
    await branch(proxy, upstream)
    await tape(memory, "trip~1").delete()
    theirs = tape(memory, "trip~1", user="bo")
    await theirs.append(Message.user("Mine."))

    assert await ask(proxy, "A number?", "Two.", "Why?") == "trip~3"
    assert [message.text for message in await theirs.messages()] == ["Mine."]


@pytest.mark.parametrize(
    ("texts", "on"),
    [
        (("A number?", "One.", "Why?", "It is odd.", "And now?"), "trip"),
        (("A number?", "One.", "Why?"), "trip~2"),
    ],
    ids=["continued", "regenerated"],
)
async def test_a_history_that_another_process_continued_leaves_a_shorter_branch_alone(
    proxy: Client, memory: Memory, upstream: ModelServer, texts: tuple[str, ...], on: str
) -> None:
    """This one knows the beginning of it by a request for another answer, which failed."""
    async with served_proxy(memory, upstream) as other:
        upstream.script(Reply("One."), Reply("It is odd."))
        await ask(other, "A number?")
        await ask(other, "A number?", "One.", "Why?")
    upstream.script(Fail(503), Reply("It is small."))
    assert await ask(proxy, "A number?") == "trip~1"

    assert await ask(proxy, *texts) == on
    assert await texts_of(memory, on) == [*texts, "It is small."]
    assert await texts_of(memory, "trip~1") == ["A number?"]


async def test_a_tape_that_another_process_has_just_begun_is_not_continued(
    upstream: ModelServer,
) -> None:
    clock = FixedClock()
    store = FaultyStore(await open_store("sqlite:///:memory:", clock=clock))
    async with memory_on(store, clock) as memory:
        async with served_proxy(memory, upstream) as proxy:
            gate = store.hold("state", skip=1)
            upstream.script(Reply("Two."))
            asking = asyncio.create_task(ask(proxy, "A number?"))
            await gate.reached.wait()
            await tape(memory, "trip").append(Message.user("A number?"), Message.assistant("One."))
            gate.opened.set()
            assert await asking == "trip~1"

        assert await texts_of(memory, "trip") == ["A number?", "One."]
        assert await texts_of(memory, "trip~1") == ["A number?", "Two."]
        await store.close()


@pytest.mark.parametrize(
    ("user", "key", "messages", "is_known"),
    [
        ("ana", "key-of-a", 16, True),
        ("ana", "key-of-a", 10, True),
        ("ana", "key-of-a", 4, False),
        ("bo", "key-of-a", 16, False),
        ("ana", "key-of-b", 16, False),
    ],
    ids=["whole", "a part", "a few messages", "of another user", "with another key"],
)
async def test_a_copied_history_begins_with_the_notes_of_its_conversation(
    proxy: Client,
    memory: Memory,
    upstream: ModelServer,
    user: str,
    key: str,
    messages: int,
    *,
    is_known: bool,
) -> None:
    """As of a client that forks a session, which has another id then."""
    texts: list[str] = []
    for number in range(8):
        texts.append(f"The boat to island {number} leaves from pier {number} at nine. " * 3)
        upstream.script(Reply(f"Noted {number}."))
        await ask(proxy, *texts)
        texts.append(f"Noted {number}.")
        await tape(memory, "trip").flush()
    texts = [*texts[:messages], "Which pier?"]
    upstream.script(Reply("Pier 3."))

    assert await ask(proxy, *texts, conversation="fork", user=user, key=key) == "fork"
    (state,) = [one for one in await memory.conversations() if one.ref.id == "fork"]
    fork = memory.conversation("fork", user=user, tenant=state.ref.tenant)
    assert [message.text for message in await fork.messages()] == [*texts, "Pier 3."]
    assert (len(upstream.received[-1].body["messages"]) < len(texts)) == is_known
    assert len(await texts_of(memory, "trip")) == 16


async def test_branches_that_nobody_continued_are_deleted_when_others_begin(
    upstream: ModelServer,
) -> None:
    clock, settings = FixedClock(), Settings(branches_keep_days=30)
    async with (
        Memory.open("sqlite:///:memory:", clock=clock, settings=settings) as memory,
        served_proxy(memory, upstream) as proxy,
    ):
        await branch(proxy, upstream)
        await tape(memory, "trip~7", user="bo").append(Message.user("Mine."))
        upstream.script(Reply("It is odd."), Reply("Four."), Reply("Five."))
        clock.advance(20 * DAY)
        assert await ask(proxy, "A number?", "Three.", "Why?") == "trip~2"
        clock.advance(11 * DAY)
        assert await ask(proxy, "A number?") == "trip~3"
        states = await memory.conversations()
        assert [state.ref.id for state in states] == ["trip", "trip~2", "trip~3", "trip~7"]
        assert await texts_of(memory, "trip~3") == ["A number?", "Four."]
        problems = [problem.what for problem in await memory.check()]
        assert any("file was not rewritten" in what for what in problems)  # a request waited
        assert await ask(proxy, "A number?", "Two.", "Why?") == "trip~4"
        assert await texts_of(memory, "trip~4") == ["A number?", "Two.", "Why?", "Five."]


async def test_a_branch_after_the_last_number_takes_that_of_a_deleted_one(
    proxy: Client, memory: Memory, upstream: ModelServer
) -> None:
    await branch(proxy, upstream)
    await tape(memory, f"trip~{MAX_BRANCHES - 1}").append(Message.user("The last one."))
    upstream.script(Reply("It is odd."))

    assert await ask(proxy, "A number?", "Three.", "Why?") == "trip~2"
    assert await texts_of(memory, "trip~2") == ["A number?", "Three.", "Why?", "It is odd."]


async def test_a_client_that_changes_each_answer_is_named_in_the_log(
    proxy: Client, upstream: ModelServer, caplog: pytest.LogCaptureFixture
) -> None:
    texts: list[str] = []
    for number in range(18):
        texts.append(f"What of pier {number}?")
        upstream.script(Reply(f"It is open, and pier {number} is closed on Sundays."))
        on = await ask(proxy, *texts)
        texts.append(f"Pier {number} is closed.")

    assert on == "trip~17"
    warnings = [text for text in caplog.messages if "branches" in text]
    assert [text.partition(":")[0] for text in warnings] == [
        "conversation 'trip' has 8 branches",
        "conversation 'trip' has 16 branches",
    ]
    assert all(part in warnings[0] for part in ("repeats runs", "X-Remanence-Memory: off"))


async def test_a_history_that_shares_nothing_with_its_conversation_is_logged_once(
    proxy: Client, upstream: ModelServer, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO")
    await branch(proxy, upstream)
    assert "shares no message" not in caplog.text

    assert await ask(proxy, "Which gate?", "B42.", "And when?") == "trip~3"
    assert await ask(proxy, "Which seat?", "14C.", "By the window?") == "trip~4"

    (text,) = [text for text in caplog.messages if "shares no message" in text]
    assert text.startswith("a request in conversation 'trip'")
    assert "began the branch 'trip~3' without notes" in text
    assert "have it keep and resend" in text


@pytest.mark.parametrize(
    ("reply", "seconds", "facts"),
    [
        (CALL, 0, []),
        (CALL, 3_600, ["I live in Porto."]),
        (Reply("Which city?"), 0, ["I live in Porto."]),
    ],
    ids=["sub-agent", "cancelled call", "restarted client"],
)
async def test_a_single_message_that_comes_during_a_tool_call_of_its_conversation_yields_no_facts(
    proxy: Client,
    upstream: ModelServer,
    memory: Memory,
    caplog: pytest.LogCaptureFixture,
    reply: Reply,
    seconds: int,
    facts: list[str],
) -> None:
    caplog.set_level("INFO")
    upstream.script(reply)
    await ask(proxy, "Find me a hotel.")
    assert isinstance(memory.clock, FixedClock)
    memory.clock.advance(seconds)

    assert await ask(proxy, "I live in Porto.", tools=TOOLS) == "trip~1"

    assert await facts_of(memory, "trip~1") == facts
    assert ("is taken for a sub-agent's" in caplog.text) is not bool(facts)


async def test_the_task_of_a_sub_agent_yields_no_facts_although_its_first_request_failed(
    upstream: ModelServer,
) -> None:
    clock = FixedClock()
    store = FaultyStore(await open_store("sqlite:///:memory:", clock=clock))
    async with memory_on(store, clock) as memory:
        async with served_proxy(memory, upstream) as proxy:
            upstream.script(CALL)
            await ask(proxy, "Find me a hotel.")
            store.fail("commit_facts", StoreUnavailable("the disk is busy"))
            with pytest.raises(AssertionError, match="off"):
                await ask(proxy, "I live in Porto.", tools=TOOLS)
            assert await texts_of(memory, "trip~1") == ["I live in Porto."]

            assert await ask(proxy, "I live in Porto.", tools=TOOLS) == "trip~1"

        assert (await tape(memory, "trip~1").state()).facts_seq == 1
        await store.close()


async def test_a_first_message_that_was_edited_during_a_tool_call_yields_facts_with_later_ones(
    proxy: Client, upstream: ModelServer, memory: Memory, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO")
    upstream.script(CALL)
    await ask(proxy, "Find me a hotel.")

    assert await ask(proxy, "I live in Porto.", "Here is one: Hotel A.", "Book it.") == "trip~1"

    assert await facts_of(memory, "trip~1") == ["I live in Porto."]
    assert "is taken for a sub-agent's" not in caplog.text


@pytest.mark.parametrize("removed", [r"\*\*", r"\[\d\]", r"\*\*|\[\d\]", r"[*#`]|\[\d\]|\n"])
async def test_a_client_that_removes_markdown_from_answers_stays_on_its_tape(
    proxy: Client, upstream: ModelServer, memory: Memory, removed: str
) -> None:
    texts: list[str] = []
    for number in range(8):
        texts.append(f"What of pier {number}?")
        answer = f"**Pier {number}** closes [1] at _6_.[2]"
        if "#" in removed:
            answer = f"# Pier {number}\n\nIt `closes` [1] at 6."
        upstream.script(Reply(answer))
        assert await ask(proxy, *texts) == "trip"
        texts.append(re.sub(removed, "", answer))

    assert len(await texts_of(memory, "trip")) == len(texts)


@pytest.mark.parametrize("edited", ["Pier 8 closes [1].", "Pier *7* closes [2].", "Pier closes."])
async def test_an_answer_with_other_words_or_marks_opens_a_branch(
    proxy: Client, upstream: ModelServer, edited: str
) -> None:
    upstream.script(Reply("Pier **7** closes [1]."))
    await ask(proxy, "What of pier 7?")

    assert await ask(proxy, "What of pier 7?", edited, "When?") == "trip~1"


async def test_a_client_that_sends_only_its_newest_message_is_named_in_the_log_once(
    proxy: Client, upstream: ModelServer, caplog: pytest.LogCaptureFixture
) -> None:
    async def ask_alone(text: str) -> str:
        response = await proxy.http.post(
            "openai/v1/chat/completions",
            json={"model": "m", "messages": history(text)},
            headers=KEY | {"x-remanence-conversation": "trip"},
        )
        return response.headers["x-remanence-memory"].partition(";")[0]

    def warnings() -> list[str]:
        return [text for text in caplog.messages if "continue no earlier one" in text]

    assert [await ask_alone(f"Pier {number}?") for number in range(4)] == ["on", *["off"] * 3]
    assert warnings() == [], "requests for a title are expected"
    assert await ask_alone("Pier 0?") == "on"
    assert [await ask_alone(f"Is pier {number} open?") for number in range(6)] == ["off"] * 6

    (warning,) = warnings()
    assert "in conversation 'trip'" in warning
    assert "/v1/conversations/{id}/chat" in warning
