"""Appending: gapless seqs, all messages or none, each message once."""

import asyncio
from dataclasses import replace
from datetime import datetime, timedelta, timezone

import pytest

from remanence.errors import ConversationGrown, DuplicateMessage, InvalidMessage, WrongUser
from remanence.protocols import Store
from remanence.testing.store_contract.handles import Handles, OpenStore
from remanence.testing.store_contract.samples import REF, at, tape, user, users
from remanence.types import (
    ConversationRef,
    FilePart,
    ImagePart,
    MemoryState,
    Message,
    OtherPart,
    Part,
    TextPart,
    ToolCallPart,
    ToolResultPart,
)

CALL = ToolCallPart(id="call-1", name="look_up", arguments='{"flight": "LH 454"}')

CONTENTS: dict[str, tuple[Part, ...]] = {
    "text": (TextPart(text="hello"),),
    "no words": (TextPart(text=""), TextPart(text=" \n\t")),
    "two texts": (TextPart(text="one"), TextPart(text="two")),
    "many scripts": (TextPart(text="안녕 世界 مرحبا שלום 👩‍👩‍👧 e\u0301 \u2028 \ufeff"),),
    "quotes": (TextPart(text="""'; DROP TABLE messages; -- "\\" %s ? :x {} \x01\x7f"""),),
    "call": (TextPart(text="wait"), CALL, ToolCallPart(id="2", name="n", arguments="not JSON")),
    "image": (
        ImagePart(media_type="image/png", data="AAAA", width=640, height=480),
        ImagePart(url="https://example.invalid/a.png"),
    ),
    "file": (
        FilePart(media_type="application/pdf", name="a.pdf", data="AAAA"),
        FilePart(file_id="file-1"),
        FilePart(url="https://example.invalid/a.pdf"),
    ),
    "other": (OtherPart(dialect="anthropic", raw='{"type": "thinking", "thinking": "é"}'),),
}


class TapeContract(Handles):
    """`append`."""

    async def test_appended_messages_come_back_with_their_place(self, store: Store) -> None:
        appended = await store.append(REF, users(2), user="ana")

        assert [message.seq for message in appended.messages] == [1, 2]
        assert [message.text for message in appended.messages] == ["message 1", "message 2"]
        assert [message.tokens for message in appended.messages] == [10, 10]
        assert len({message.id for message in appended.messages}) == 2
        assert all(message.created_at for message in appended.messages)
        assert await store.messages(REF, after=0, limit=None) == appended.messages

    async def test_messages_of_one_request_are_all_new_or_all_on_the_tape(
        self, store: Store
    ) -> None:
        one, two, three = (user(f"{n}").replace(id=f"key:{n}") for n in range(3))
        first = await store.append(REF, [one, two], user=None, as_one=True)
        again = await store.append(REF, [one, two], user=None, as_one=True)
        with pytest.raises(DuplicateMessage, match="use a new key"):
            await store.append(REF, [one, two, three], user=None, as_one=True)

        assert first.messages == again.messages
        assert await store.messages(REF, after=0, limit=None) == first.messages

    async def test_an_append_tells_the_state_after_it(self, store: Store) -> None:
        first = await store.append(REF, users(2), user="ana")
        second = await store.append(REF, [user("more", tokens=5)], user="ana")

        assert first.state.ref == REF
        assert first.state.user == "ana"
        assert (first.state.last_seq, first.state.last_sum_tokens) == (2, 20)
        assert (second.state.last_seq, second.state.last_sum_tokens) == (3, 25)
        assert second.state.last_message_at == second.messages[-1].created_at
        assert await store.state(REF) == second.state

    async def test_a_new_conversation_has_nothing_observed(self, store: Store) -> None:
        state = await tape(store, 1)

        assert (state.observed_seq, state.active_seq, state.reflected_seq) == (0, 0, 0)
        assert (state.tail_seq, state.lock_version, state.failures) == (1, 0, 0)
        assert (state.lease_owner, state.last_observed_at) == (None, None)

    async def test_numbers_go_on_from_append_to_append(self, store: Store) -> None:
        for number in range(1, 6):
            appended = await store.append(REF, [user("x")], user=None)
            assert [message.seq for message in appended.messages] == [number]

    async def test_an_append_to_a_tape_that_another_process_went_on_with_writes_nothing(
        self, store: Store, other: Store
    ) -> None:
        empty = MemoryState(ref=REF, key=0, user=None, created_at=at(0))
        one = (await store.append(REF, [user("x")], user="ana", after=empty)).state
        two = (await other.append(REF, [user("y")], user="ana", after=one)).state

        for after in (empty, one, replace(two, last_seq=3)):
            with pytest.raises(ConversationGrown, match="ends at message 2"):
                await store.append(REF, [user("z", id="z")], user="ana", after=after)
        with pytest.raises(WrongUser):
            await store.append(REF, [user("z", id="z")], user="ben", after=one)

        await store.append(REF, [user("z", id="z")], user="ana", after=two)
        texts = [message.text for message in await store.messages(REF, after=0, limit=None)]
        assert texts == ["x", "y", "z"]

    async def test_conversations_are_numbered_apart(self, store: Store) -> None:
        refs = [ConversationRef("t1", "a"), ConversationRef("t1", "b"), ConversationRef("t2", "a")]
        states = [await tape(store, 2, ref) for ref in refs]

        assert [state.last_seq for state in states] == [2, 2, 2]
        assert len({state.key for state in states}) == 3

    async def test_a_conversation_belongs_to_the_first_user_that_is_named(
        self, store: Store
    ) -> None:
        states = [
            (await store.append(REF, [user("x")], user=name, any_user=True)).state
            for name in (None, "ana", None)
        ]
        for stranger in ("bo", None):
            with pytest.raises(WrongUser) as refused:
                await store.append(REF, [user("x")], user=stranger)
            assert "ana" not in str(refused.value)

        assert [state.user for state in states] == [None, "ana", "ana"]
        assert [state.facts_seq for state in states] == [0, 1, 1]  # who said the first is unknown
        assert await store.state(REF) == states[-1]

    @pytest.mark.parametrize("content", CONTENTS.values(), ids=CONTENTS.keys())
    async def test_content_comes_back_as_it_was_given(
        self, store: Store, content: tuple[Part, ...]
    ) -> None:
        message = Message(role="assistant", content=content, name="bot", kind="control")
        await store.append(REF, [message], user=None)

        (stored,) = await store.messages(REF, after=0, limit=None)

        assert stored.content == content
        assert (stored.role, stored.name, stored.kind) == ("assistant", "bot", "control")

    async def test_a_tool_result_comes_back_as_it_was_given(self, store: Store) -> None:
        inner = (TextPart(text="cut short"), ImagePart(data="AAAA"))
        result = ToolResultPart(call_id=CALL.id, content=inner, is_error=True)
        answer = Message(role="tool", content=(result, TextPart(text="aside")))
        await store.append(REF, [Message.assistant(tool_calls=[CALL]), answer], user=None)

        stored = await store.messages(REF, after=1, limit=None)

        assert [message.content for message in stored] == [answer.content]

    async def test_a_given_time_keeps_its_zone(self, store: Store) -> None:
        seoul = timezone(timedelta(hours=9))
        said_at = datetime(2024, 5, 18, 0, 30, 15, 123456, tzinfo=seoul)
        appended = await store.append(REF, [Message.user("hi", created_at=said_at)], user=None)

        (stored,) = await store.messages(REF, after=0, limit=None)

        assert stored.created_at == said_at
        assert stored.created_at.utcoffset() == timedelta(hours=9)
        assert appended.state.last_message_at == said_at

    async def test_the_same_message_under_the_same_id_is_kept_once(self, store: Store) -> None:
        first = await store.append(REF, [user("hello", id="m1"), user("more")], user=None)
        again = await store.append(
            REF, [user("new", id="m3"), user("hello", id="m1", tokens=99)], user=None
        )

        assert [message.seq for message in again.messages] == [3, 1]
        assert again.messages[1] == first.messages[0]
        assert again.state.last_message_at == again.messages[0].created_at
        assert (again.state.last_seq, again.state.last_sum_tokens) == (3, 30)

    async def test_an_append_that_is_repeated_changes_nothing(self, store: Store) -> None:
        batch = [user("one", id="m1"), user("two", id="m2")]
        first = await store.append(REF, batch, user=None)

        assert await store.append(REF, batch, user=None) == first

    async def test_one_id_twice_in_an_append_is_kept_once(self, store: Store) -> None:
        appended = await store.append(REF, [user("x", id="m1"), user("x", id="m1")], user=None)

        assert [message.seq for message in appended.messages] == [1, 1]

    async def test_conversations_may_use_the_same_ids(self, store: Store) -> None:
        await store.append(REF, [user("one", id="m1")], user=None)
        appended = await store.append(
            ConversationRef("default", "other"), [user("two", id="m1")], user=None
        )

        assert appended.messages[0].text == "two"

    @pytest.mark.parametrize(
        "changes",
        [
            {"content": (TextPart(text="other"),)},
            {"role": "assistant"},
            {"name": "ana"},
            {"kind": "control"},
        ],
        ids=lambda changes: next(iter(changes)),
    )
    async def test_an_id_of_another_message_is_refused_with_the_whole_append(
        self, store: Store, changes: dict[str, object]
    ) -> None:
        message = user("hello", id="m1")
        before = await store.append(REF, [message], user=None)

        with pytest.raises(DuplicateMessage, match=r"'m1'.*'chat'.*append it under another id"):
            await store.append(REF, [user("new"), message.replace(**changes)], user=None)

        assert await store.state(REF) == before.state
        assert await store.messages(REF, after=0, limit=None) == before.messages

    async def test_a_refused_first_append_leaves_no_conversation(self, store: Store) -> None:
        with pytest.raises(InvalidMessage):
            await store.append(REF, [user("x"), Message.tool("none", "x")], user=None)

        assert await store.state(REF) is None
        assert await store.conversations() == ()

    async def test_a_tool_result_needs_its_call_before_it(self, store: Store) -> None:
        elsewhere = ConversationRef("default", "other")
        call, result = Message.assistant(tool_calls=[CALL]), Message.tool(CALL.id, "done")
        await store.append(elsewhere, [call], user=None)

        with pytest.raises(InvalidMessage, match=r"'call-1'.*must follow the assistant's message"):
            await store.append(REF, [user("x"), result], user=None)
        with pytest.raises(InvalidMessage, match="'call-1'"):
            await store.append(REF, [result, call], user=None)
        appended = await store.append(REF, [call, result], user=None)

        assert [message.seq for message in appended.messages] == [1, 2]

    async def test_results_may_come_long_after_their_calls(self, store: Store) -> None:
        calls = [ToolCallPart(id=f"c{number}", name="n", arguments="{}") for number in range(3)]
        await store.append(REF, [Message.assistant("on it", tool_calls=calls)], user=None)
        await tape(store, 5)
        results = Message(
            role="user", content=tuple(ToolResultPart(call_id=call.id) for call in calls)
        )

        appended = await store.append(REF, [results], user="ana")

        assert appended.state.last_seq == 7

    async def test_concurrent_appends_leave_no_gap(self, store: Store, other: Store) -> None:
        async with asyncio.TaskGroup() as group:
            tasks = [
                group.create_task(handle.append(REF, [user(f"{number} a"), user("b")], user=None))
                for number in range(20)
                for handle in (store, other)
            ]

        seqs = sorted(message.seq for task in tasks for message in task.result().messages)
        stored = await store.messages(REF, after=0, limit=None)
        assert seqs == list(range(1, 81))
        assert [message.seq for message in stored] == seqs
        assert all(message.text == "b" for message in stored[1::2])
        assert await store.check() == ()

    async def test_eight_writers_of_a_conversation_each_keep_their_order(
        self, store: Store, open_again: OpenStore
    ) -> None:
        handles = [await open_again() for _ in range(8)] if self.durable else [store] * 8

        async def write(writer: int) -> None:
            for number in range(0, 20, 2):
                pair = [user(f"{writer} {n}") for n in (number, number + 1)]
                await handles[writer].append(REF, pair, user=None)

        async with asyncio.TaskGroup() as group:
            for writer in range(8):
                group.create_task(write(writer))
        stored = await store.messages(REF, after=0, limit=None)
        problems = await store.check()
        for handle in handles:
            await handle.close()

        said = [message.text.split() for message in stored]
        assert [message.seq for message in stored] == list(range(1, 161))
        for writer in range(8):
            mine = [int(number) for who, number in said if who == str(writer)]
            assert mine == list(range(20))
        assert problems == ()

    async def test_a_refused_append_leaves_its_neighbours_alone(self, store: Store) -> None:
        await store.append(REF, [user("taken", id="m1")], user=None)
        batches = [[user(f"x{number}")] for number in range(10)]
        batches[4] = [user("y"), user("another", id="m1")]
        batches[7] = [user("z"), Message.tool("none", "x")]

        outcomes = await _settle(store, batches)

        assert [type(outcome) for outcome in outcomes if isinstance(outcome, Exception)] == [
            DuplicateMessage,
            InvalidMessage,
        ]
        stored = await store.messages(REF, after=1, limit=None)
        assert sorted(message.text for message in stored) == sorted(
            f"x{number}" for number in range(10) if number not in (4, 7)
        )
        assert await store.check() == ()

    async def test_a_cancelled_append_is_whole_or_absent(self, store: Store) -> None:
        tasks = [
            asyncio.create_task(store.append(REF, [user(f"{number}")] * 3, user=None))
            for number in range(20)
        ]
        await asyncio.sleep(0)
        for task in tasks[::2]:
            task.cancel()
        await asyncio.wait(tasks)

        stored = await store.messages(REF, after=0, limit=None)
        texts = [message.text for message in stored]
        assert all(texts.count(text) == 3 for text in texts)
        assert {f"{number}" for number in range(1, 20, 2)} <= set(texts)
        assert await store.check() == ()


async def _settle(store: Store, batches: list[list[Message]]) -> list[object]:
    """Append the batches concurrently; return each result or exception."""

    async def one(batch: list[Message]) -> object:
        try:
            return await store.append(REF, batch, user=None)
        except (DuplicateMessage, InvalidMessage) as error:
            return error

    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(one(batch)) for batch in batches]
    return [task.result() for task in tasks]
