"""Histories of clients at the proxies: each message is on one tape, once, however it is resent."""

import json
from collections.abc import AsyncIterator, Sequence
from typing import Any

import httpx2
import pytest
from tests.server.conftest import Client, memory_on, served
from tests.slow import slow_except
from tests.wire.dialects import Call, Reply
from tests.wire.servers import Fail, ModelServer, Raw

from remanence import Conversation, Memory, Policy
from remanence.server.app import create_app
from remanence.server.proxy.identity import chain
from remanence.server.proxy.naming import name_of
from remanence.stores import open_store
from remanence.testing import FaultyStore, FixedClock
from remanence.types import ConversationRef, MemoryState, Message

NAMED = {"x-remanence-conversation": "trip", "authorization": "Bearer key-of-a"}
CHAT = "openai/v1/chat/completions"
RESPONSES = "openai/v1/responses"
MESSAGES = "anthropic/v1/messages"
LONG = "The boat to the island leaves from pier {0} and takes {0} minutes in good weather. "


@pytest.fixture
async def proxy(memory: Memory, upstream: ModelServer) -> AsyncIterator[Client]:
    app = create_app(memory, openai_url=upstream.url, anthropic_url=upstream.url)
    async with served(app) as client:
        yield client


async def ask(
    proxy: Client, path: str, history: Sequence[dict[str, Any]], **fields: object
) -> httpx2.Response:
    field = "input" if path == RESPONSES else "messages"
    body = {"model": "m", "max_tokens": 900, field: history, **fields}
    response = await proxy.http.post(path, json=body, headers=NAMED)
    assert response.headers["x-remanence-memory"] == "on"
    return response


def user(text: str) -> dict[str, Any]:
    return {"role": "user", "content": text}


def assistant(content: Any) -> dict[str, Any]:
    return {"role": "assistant", "content": content}


async def tapes(memory: Memory) -> dict[str, list[str]]:
    found = {}
    for state in await memory.conversations():
        conversation = memory.conversation(state.ref.id, tenant=state.ref.tenant)
        found[state.ref.id] = [message.full_text for message in await conversation.messages()]
    return found


async def observe(memory: Memory, name: str = "trip") -> None:
    for state in await memory.conversations():
        if state.ref.id == name:
            await memory.conversation(name, tenant=state.ref.tenant).flush()


@pytest.mark.parametrize("merges", [True, False], ids=["merged", "two messages"])
@pytest.mark.parametrize("stream", [False, True])
async def test_an_answer_that_the_client_began_and_a_tool_call_ends_is_one_message(
    proxy: Client, upstream: ModelServer, memory: Memory, *, stream: bool, merges: bool
) -> None:
    begun = {"type": "text", "text": "I look:"}
    call = {"type": "tool_use", "id": "c1", "name": "find", "input": {}}
    result = {"type": "tool_result", "tool_use_id": "c1", "content": "open"}
    upstream.script(Reply("", calls=(Call("c1", "find"),)), Reply("It is open."))
    history = [user("Is the gate open?")]
    await ask(proxy, MESSAGES, [*history, assistant([begun])], stream=stream)
    answered = [assistant([begun, call])] if merges else [assistant([begun]), assistant([call])]
    history += [*answered, {"role": "user", "content": [result]}]
    await ask(proxy, MESSAGES, history, stream=stream)
    history += [assistant("It is open."), user("Thanks.")]
    await ask(proxy, MESSAGES, history)

    assert upstream.received[-1].body["messages"] == history
    assert await tapes(memory) == {
        "trip": [
            "user: Is the gate open?",
            "assistant: I look:\n[calls find {}]",
            "tool: \n[result] open",
            "assistant: It is open.",
            "user: Thanks.",
            "assistant: [Fact] noted",
        ]
    }


@pytest.mark.parametrize("path", [CHAT, RESPONSES, MESSAGES])
@pytest.mark.parametrize("merges", [True, False], ids=["merged", "two messages"])
@pytest.mark.parametrize("stream", [False, True])
async def test_an_answer_that_goes_on_in_another_request_is_stored_whole(
    proxy: Client, upstream: ModelServer, memory: Memory, *, path: str, merges: bool, stream: bool
) -> None:
    """Such as one that was cut off: the client sends it again, for the rest of it."""
    first, rest = "The first boat leaves at nine,", " the last at ten."
    upstream.script(Reply(first), Reply(rest), Reply("Yes."), Reply("Five."))
    history = [user("When are the boats?")]
    await ask(proxy, path, history, stream=stream)
    await ask(proxy, path, [*history, assistant(first)], stream=stream)
    history += [assistant(first + rest)] if merges else [assistant(first), assistant(rest)]
    history.append(user("Daily?"))
    await ask(proxy, path, history, stream=stream)
    history += [assistant("Yes."), user("How many?")]
    await ask(proxy, path, history, stream=stream)

    (tape,) = (await tapes(memory)).values()
    assert [text.partition(": ")[2].strip() for text in tape] == [
        "When are the boats?", first, rest.strip(), "Daily?", "Yes.", "How many?", "Five.",
    ]  # fmt: skip


@pytest.mark.parametrize("path", [CHAT, RESPONSES, MESSAGES])
async def test_an_answer_whose_continuation_broke_off_goes_on_on_its_tape(
    proxy: Client, upstream: ModelServer, memory: Memory, path: str
) -> None:
    """The client has the part of it that came, and lets the model continue that."""
    first, part, rest = "The first boat leaves at nine,", " the next at ten,", " the last at noon."
    upstream.script(Reply(first), Fail(500), Reply(rest), Reply("Yes."))
    history = [user("When are the boats?")]
    await ask(proxy, path, history)
    await ask(proxy, path, [*history, assistant(first)])
    await ask(proxy, path, [*history, assistant(first + part)])
    await ask(proxy, path, [*history, assistant(first + part + rest), user("Daily?")])

    assert list(await tapes(memory)) == ["trip"]
    (tape,) = (await tapes(memory)).values()
    assert [text.partition(": ")[2].strip() for text in tape] == [
        "When are the boats?", first, f"{part}{rest}".strip(), "Daily?", "Yes.",
    ]  # fmt: skip


async def test_an_answer_that_paused_within_a_search_is_on_its_tape_once(
    proxy: Client, upstream: ModelServer, memory: Memory
) -> None:
    """As Anthropic's do with `pause_turn`: the client resends the answer for the rest of it."""
    search = {"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": {}}
    found = {"type": "web_search_tool_result", "tool_use_id": "srvtoolu_1", "content": []}
    paused = [{"type": "thinking", "thinking": "Hm.", "signature": "s"}, search]
    history = [user("When are the boats?")]
    for blocks in (paused, [found, {"type": "text", "text": "At ten."}]):
        upstream.script(Raw((json.dumps({"type": "message", "content": blocks}),)))
        await ask(proxy, MESSAGES, history)
        history.append(assistant(blocks))
    await ask(proxy, MESSAGES, [*history, user("Daily?")])

    (state,) = await memory.conversations()
    tape = await memory.conversation("trip", tenant=state.ref.tenant).messages()
    answer = [block for one in history[1:] for block in one["content"]]
    assert [part for one in tape[1:3] for part in one.content] == [
        *Message.from_anthropic(assistant(answer)).content
    ]


@pytest.mark.parametrize("path", [CHAT, RESPONSES, MESSAGES])
async def test_an_answer_in_two_messages_is_sent_on_once_behind_notes(
    proxy: Client, upstream: ModelServer, memory: Memory, path: str
) -> None:
    history: list[dict[str, Any]] = []
    for number in range(12):
        history.append(user(LONG.format(number) * 2))
        upstream.script(Reply(f"First {number}."), Reply(f"Then {number}."))
        await ask(proxy, path, history)
        history.append(assistant(f"First {number}."))
        await ask(proxy, path, history)
        history.append(assistant(f"Then {number}."))
        await observe(memory)
    upstream.script(Reply("Pier 3."))
    await ask(proxy, path, [*history, user("And now?")])

    sent = upstream.received[-1].body["input" if path == RESPONSES else "messages"]
    own = [one for one in sent if one in history]
    assert len(sent) < 20
    assert own == history[-len(own) :]
    assert len(sent) == len(own) + 2, "the notes, and the newest with what was recalled"
    (tape,) = (await tapes(memory)).values()
    assert len(tape) == len(history) + 2


class CountedStore(FaultyStore):
    """Counts the messages that are read."""

    read = 0

    async def messages(
        self,
        ref: ConversationRef,
        *,
        after: int = 0,
        limit: int | None = None,
        max_tokens: int | None = None,
    ) -> tuple[Message, ...]:
        found = await super().messages(ref, after=after, limit=limit, max_tokens=max_tokens)
        self.read += len(found)
        return found


@pytest.mark.parametrize(
    "own", [user("Summary: Ana asked for piers."), None], ids=["summary", "shortened answers"]
)
async def test_a_request_costs_the_same_however_long_the_tape_is(
    upstream: ModelServer, own: dict[str, Any] | None
) -> None:
    """Also where the client keeps a summary before old messages, or shortens each answer."""
    clock = FixedClock()
    store = CountedStore(await open_store("sqlite:///:memory:", clock=clock))
    async with memory_on(store, clock) as memory:
        app = create_app(memory, openai_url=upstream.url)
        history: list[dict[str, Any]] = []
        async with served(app) as proxy:
            reads = []
            for number in range(30):
                history.append(user(f"Which pier has boat {number}?"))
                upstream.script(Reply(f"Pier {number}. Have a good trip!"))
                before = store.read
                await ask(proxy, CHAT, history)
                reads.append(store.read - before)
                history.append(
                    assistant(
                        f"Pier {number}." if own is None else f"Pier {number}. Have a good trip!"
                    )
                )
                if number == 10 and own is not None:
                    history[:8] = [own]
        await store.close()

    assert reads[-1] <= reads[-10], reads


async def test_what_matters_to_a_message_is_searched_once_however_many_tools_are_called(
    upstream: ModelServer,
) -> None:
    clock = FixedClock()
    store = FaultyStore(await open_store("sqlite:///:memory:", clock=clock))
    async with memory_on(store, clock) as memory:
        app = create_app(memory, anthropic_url=upstream.url)
        searches = []
        async with served(app) as proxy:
            history: list[dict[str, Any]] = []
            for number in range(6):
                if number % 3 == 0:
                    history.append(user(f"Which pier has boat {number}?"))
                before = store.calls.count("search_facts")
                upstream.script(Reply("I look.", calls=(Call(f"c{number}", "find", {}),)))
                body = {"model": "m", "max_tokens": 900, "messages": history}
                named = {**NAMED, "x-remanence-user": "ana"}
                response = await proxy.http.post(MESSAGES, json=body, headers=named)
                assert response.headers["x-remanence-memory"] == "on"
                searches.append(store.calls.count("search_facts") - before)
                call = {"type": "tool_use", "id": f"c{number}", "name": "find", "input": {}}
                result = {"type": "tool_result", "tool_use_id": f"c{number}", "content": "Pier 4."}
                history += [assistant([{"type": "text", "text": "I look."}, call])]
                history += [{"role": "user", "content": [result]}]
        await store.close()

    assert searches == [1, 0, 0, 1, 0, 0]


async def talk(
    proxy: Client, upstream: ModelServer, memory: Memory, turns: int
) -> list[dict[str, Any]]:
    """A conversation of so many turns, each observed; the history as its client keeps it."""
    history: list[dict[str, Any]] = []
    for number in range(turns):
        history.append(user(LONG.format(number) * 2))
        upstream.script(Reply(f"Noted {number}."))
        await ask(proxy, CHAT, history)
        history.append(assistant(f"Noted {number}."))
        await observe(memory)
    return history


async def test_what_the_newest_question_recalls_stands_beside_it_while_tools_are_called(
    proxy: Client, upstream: ModelServer, memory: Memory
) -> None:
    history = await talk(proxy, upstream, memory, 14)
    function = {"name": "find", "arguments": "{}"}
    call = {"id": "call-of-boat-2", "type": "function", "function": function}
    upstream.script(Reply("You are welcome."))
    await ask(proxy, CHAT, [*history, user("Thanks.")])
    history += [user("Thanks."), assistant("You are welcome."), user("When does boat 2 leave?")]
    upstream.script(Reply("I look.", calls=(Call("call-of-boat-2", "find", {}),)))
    await ask(proxy, CHAT, history)
    history.append(assistant("I look.") | {"tool_calls": [call]})
    history.append({"role": "tool", "tool_call_id": "call-of-boat-2", "content": "At nine."})
    upstream.script(Reply("At nine."))
    await ask(proxy, CHAT, history)

    thanks, asked, called = (request.body["messages"] for request in upstream.received[-3:])
    assert "from pier 2 " not in str(thanks[-1])
    assert "from pier 2 " in asked[-1]["content"][-1]["text"]
    assert called[-3:] == [asked[-1], *history[-2:]]


async def test_newer_messages_than_the_notes_that_a_client_left_out_are_sent_from_the_tape(
    proxy: Client, upstream: ModelServer, memory: Memory
) -> None:
    history = await talk(proxy, upstream, memory, 14)
    upstream.script(Reply("Pier 13."))
    await ask(proxy, CHAT, [*history[-2:], user("Which pier was the last?")])

    said = [one for one in upstream.received[-1].body["messages"] if one["role"] != "system"]
    assert len(said) > 4
    assert said[:-1] == history[1 - len(said) :]


@pytest.mark.parametrize("path", [CHAT, MESSAGES])
@pytest.mark.parametrize(
    ("pinned", "newest"),
    slow_except(
        [(0, 13), (1, 3), (1, 4), (1, 12), (2, 4), (2, 12), (2, 13), (4, 13), (4, 16), (4, 17)],
        [(1, 3), (2, 12), (4, 17)],
    ),
)
async def test_pinned_first_messages_and_the_newest_ones_leave_no_gap_in_a_request(
    upstream: ModelServer, path: str, pinned: int, newest: int
) -> None:
    policy = Policy.default(observe_tokens=600, tail_tokens=900, tail_keep_tokens=300)
    history: list[dict[str, Any]] = []
    async with Memory.open("sqlite:///:memory:", policy=policy) as memory:
        app = create_app(memory, openai_url=upstream.url, anthropic_url=upstream.url)
        async with served(app) as proxy:
            for number in range(1, 27):
                history.append(user(LONG.format(number) * 3))
                kept = [*history[:pinned], *history[pinned:][-newest:]]
                upstream.script(Reply(f"Noted {number}."))
                await ask(proxy, path, kept)
                sent = texts_of(upstream, history)
                assert sent in (texts(history)[-len(sent) :], texts(kept))
                history.append(assistant(f"Noted {number}."))
                await observe(memory)

    assert "## Conversation Memory" in str(upstream.received[-1].body)


def texts_of(upstream: ModelServer, history: Sequence[dict[str, Any]]) -> list[str]:
    """The texts of the history in the request that the provider got last."""
    said = {one["content"] for one in history}
    contents = (one["content"] for one in upstream.received[-1].body["messages"])
    parts = (
        [part] if isinstance(part, str) else [one["text"] for one in part] for part in contents
    )
    return [text for texts in parts for text in texts if text in said]


def texts(history: Sequence[dict[str, Any]]) -> list[str]:
    return [one["content"] for one in history]


SMALL = Policy(
    max_context_tokens=4_000,
    observe_tokens=100_000,
    tail_tokens=800,
    tail_keep_tokens=200,
    reflect_tokens=(200, 400),
)


async def test_a_message_that_is_too_long_for_the_context_is_sent_as_an_excerpt(
    upstream: ModelServer,
) -> None:
    history = [user(LONG.format(1) * 400), assistant("Noted."), user("Which pier?")]
    async with Memory.open("sqlite:///:memory:", policy=SMALL) as memory:
        upstream.script(Reply("Pier 1."))
        async with served(create_app(memory, openai_url=upstream.url)) as proxy:
            response = await ask(proxy, CHAT, history)

    excerpt, *others = upstream.received[-1].body["messages"]
    assert len(excerpt["content"]) < 16_000
    assert excerpt["content"].startswith(LONG.format(1))
    assert others[0] == history[1]
    assert response.headers["x-remanence-omitted"] == "1-1 excerpt"


async def test_an_output_of_a_shell_too_long_for_the_context_stays_with_its_call(
    upstream: ModelServer,
) -> None:
    out = {"stdout": LONG.format(1) * 400, "stderr": "", "outcome": {"type": "timeout"}}
    run: list[dict[str, Any]] = [
        {"type": "shell_call", "call_id": "c", "action": {"commands": ["ls"]}},
        {"type": "shell_call_output", "call_id": "c", "output": [out]},
    ]
    history = [user("List the piers."), *run]
    async with Memory.open("sqlite:///:memory:", policy=SMALL) as memory:
        upstream.script(Reply("Pier 1."))
        async with served(create_app(memory, openai_url=upstream.url)) as proxy:
            response = await ask(proxy, RESPONSES, history)

    assert upstream.received[-1].body["input"][-2:] == run
    assert response.headers["x-remanence-memory"] == "on"


@pytest.mark.parametrize(
    ("path", "field"), [(RESPONSES, "instructions"), (MESSAGES, "system"), (CHAT, "tools")]
)
async def test_what_stands_beside_the_messages_takes_room_from_them(
    upstream: ModelServer, path: str, field: str
) -> None:
    texts = [f"Boat {number} leaves from the pier beside the tower. " * 10 for number in range(20)]
    history = [one for text in texts for one in (user(text), assistant("Noted."))]
    tool = {"type": "function", "function": {"name": "find", "description": texts[0] * 12}}
    long = [tool] if field == "tools" else texts[0] * 12
    omitted = []
    for more in ({}, {field: long}):
        async with Memory.open("sqlite:///:memory:", policy=SMALL) as memory:
            upstream.script(Reply("Pier 1."))
            app = create_app(memory, openai_url=upstream.url, anthropic_url=upstream.url)
            async with served(app) as proxy:
                response = await ask(proxy, path, [*history, user("Which pier?")], **more)
            omitted.append(response.headers.get("x-remanence-omitted", ""))

    assert omitted[0] == ""
    assert "over_budget" in omitted[1]


@pytest.mark.parametrize(
    ("index", "text"),
    [(2, LONG.format("Zanzibar")), (3, "Zanzibar, then."), (3, "Noted 7.")],
    ids=["question", "answer", "text of another message"],
)
async def test_an_old_message_that_was_edited_makes_a_branch_with_its_own_notes(
    proxy: Client, upstream: ModelServer, memory: Memory, index: int, text: str
) -> None:
    history = await talk(proxy, upstream, memory, 12)
    before = history[index]["content"]
    history[index] = {**history[index], "content": text}
    upstream.script(Reply("Pier 3."), Reply("Pier 4."))
    await ask(proxy, CHAT, [*history, user("And now?")])

    sent = upstream.received[-1].body["messages"]
    assert sent[: len(history)] == history, "nothing is noted yet, so nothing is left out"
    await observe(memory, "trip~1")
    history += [user("And now?"), assistant("Pier 3."), user("And then?")]
    response = await ask(proxy, CHAT, history)

    sent = upstream.received[-1].body["messages"]
    assert response.headers["x-remanence-conversation"] == "trip~1"
    assert len(sent) < 20
    assert before not in str(sent)
    kept = await tapes(memory)
    assert len(kept["trip"]) == 24
    assert len(kept["trip~1"]) == len(history) + 1


async def test_an_edited_history_that_loses_its_beginning_stays_on_its_branch(
    proxy: Client, upstream: ModelServer, memory: Memory
) -> None:
    history = await talk(proxy, upstream, memory, 12)
    history[2] = user(LONG.format("Zanzibar"))
    upstream.script(Reply("Pier 3."), Reply("Pier 4."))
    await ask(proxy, CHAT, [*history, user("And now?")])
    history += [user("And now?"), assistant("Pier 3."), user("And then?")]
    await ask(proxy, CHAT, history[4:])

    lengths = {id_: len(tape) for id_, tape in (await tapes(memory)).items()}
    assert lengths == {"trip": 24, "trip~1": 28}


def tape_of(memory: Memory, state: MemoryState) -> Conversation:
    return memory.conversation(state.ref.id, tenant=state.ref.tenant)


@pytest.mark.parametrize("change", slow_except(["answer", "question"], ["answer"]))
async def test_a_branch_of_a_long_conversation_shares_its_notes(
    proxy: Client, upstream: ModelServer, memory: Memory, change: str
) -> None:
    history = await talk(proxy, upstream, memory, 60)
    usual = len(upstream.received[-1].body["messages"])
    history = history[:-1] if change == "answer" else [*history[:-2], user("Another question.")]
    upstream.script(Reply("Another answer."))
    response = await ask(proxy, CHAT, history)

    assert response.headers["x-remanence-conversation"] == "trip~1"
    sent = upstream.received[-1].body["messages"]
    assert "pier 3" in sent[0]["content"], "the notes"
    assert len(sent) <= usual
    await observe(memory, "trip~1")
    states = {state.ref.id: state for state in await memory.conversations()}
    made = [entry.kind for entry in await tape_of(memory, states["trip~1"]).log()]
    assert made[0] == "forked"
    assert made.count("observed") <= 2
    assert states["trip~1"].last_seq == len(history) + 1
    assert (await tapes(memory))["trip~1"][-1] == "assistant: Another answer."
    assert await memory.check() == ()


async def test_a_branch_after_a_restart_shares_the_notes(
    upstream: ModelServer, memory: Memory
) -> None:
    async with served(create_app(memory, openai_url=upstream.url)) as proxy:
        history = await talk(proxy, upstream, memory, 20)
    async with served(create_app(memory, openai_url=upstream.url)) as proxy:
        response = await ask(proxy, CHAT, [*history[:20], user("Another question.")])

    assert response.headers["x-remanence-conversation"] == "trip~1"
    states = {state.ref.id: state for state in await memory.conversations()}
    assert states["trip~1"].last_seq == 22
    (entry, *_) = await tape_of(memory, states["trip~1"]).log()
    assert (entry.kind, entry.last_seq) == ("forked", 20)


@pytest.mark.parametrize("change", ["answer", "question"])
async def test_a_forgotten_message_stays_forgotten_in_a_branch(
    proxy: Client, upstream: ModelServer, memory: Memory, change: str
) -> None:
    history = [user("My code is 8814."), assistant("I keep it."), user("Which gate?")]
    upstream.script(Reply("I keep it."), Reply("B42."), Reply("B43."))
    await ask(proxy, CHAT, history[:1])
    await ask(proxy, CHAT, history)
    (state,) = await memory.conversations()
    tape = tape_of(memory, state)
    (secret, *_) = await tape.messages()
    await tape.forget(secret.id or "")

    await ask(proxy, CHAT, history if change == "answer" else [*history[:2], user("Which seat?")])

    branch = (await tapes(memory))["trip~1"]
    assert branch[0].endswith("[forgotten]")
    assert (len(branch), branch[-1]) == (4, "assistant: B43.")
    assert "8814" not in str(await tapes(memory))


async def test_a_forgotten_answer_takes_no_history_from_its_own_branch(
    proxy: Client, upstream: ModelServer, memory: Memory
) -> None:
    history = await talk(proxy, upstream, memory, 4)
    upstream.script(Reply("Its code is 8814."), Reply("Gate 3."), Reply("Gate 4."))
    await ask(proxy, CHAT, history[:-1])
    for state in await memory.conversations():
        tape = tape_of(memory, state)
        await tape.forget((await tape.messages())[-1].id or "")
    history[-1] = assistant("Its code is 8814.")
    history.append(user("Which gate?"))
    await ask(proxy, CHAT, history)
    response = await ask(proxy, CHAT, history)

    assert response.headers["x-remanence-conversation"] == "trip~2"
    kept = await tapes(memory)
    assert [len(tape) for tape in kept.values()] == [8, 10, 10]
    assert "8814" not in str(kept)


@pytest.mark.parametrize("change", ["text around questions", "answers in two parts"])
async def test_a_branch_after_a_restart_shares_the_notes_of_a_history_that_changed(
    upstream: ModelServer, memory: Memory, change: str
) -> None:
    history: list[dict[str, Any]] = []
    parts = ("First {}.", "Then {}.") if "parts" in change else ("Noted {}.",)
    around = "{0}" if "parts" in change else "<now>12:{1}</now>\n{0}"
    async with served(create_app(memory, openai_url=upstream.url)) as proxy:
        for number in range(20):
            question = LONG.format(number)
            sent = [*history, user(around.format(question, number))]
            history.append(user(question))
            for part in parts:
                upstream.script(Reply(part.format(number)))
                await ask(proxy, CHAT, sent)
                history.append(assistant(part.format(number)))
                sent.append(history[-1])
            await observe(memory)
    end = 18 * (1 + len(parts))
    async with served(create_app(memory, openai_url=upstream.url)) as proxy:
        await ask(proxy, CHAT, [*history[:end], user("Another question.")])

    states = {state.ref.id: state for state in await memory.conversations()}
    (entry, *_) = await tape_of(memory, states["trip~1"]).log()
    assert (entry.kind, entry.last_seq) == ("forked", end)


async def ask_for_pier(
    proxy: Client, upstream: ModelServer, history: list[Any], number: int
) -> list[Any]:
    """Hold one more turn of a history, and return the messages that the provider got."""
    upstream.script(Reply(f"Pier {number}."))
    await ask(proxy, CHAT, [*history, user("And now?")])
    history += [user("And now?"), assistant(f"Pier {number}.")]
    return list(upstream.received[-1].body["messages"])


async def test_a_message_that_a_client_changes_with_each_request_makes_one_branch(
    proxy: Client, upstream: ModelServer, memory: Memory
) -> None:
    """Such as one with the present state of a project, behind examples."""
    history = await talk(proxy, upstream, memory, 12)
    for number in range(5):
        history[2] = user(f"There are {number} boats.")
        assert history[2] in await ask_for_pier(proxy, upstream, history, number)

    assert {id_: len(tape) for id_, tape in (await tapes(memory)).items()} == {
        "trip": 24,
        "trip~1": 34,
    }


async def test_a_first_message_that_changes_with_each_request_makes_no_branch(
    proxy: Client, upstream: ModelServer, memory: Memory
) -> None:
    """Such as one with the time of day."""
    history = await talk(proxy, upstream, memory, 12)
    for number in range(3):
        history[0] = user(f"It is {number} o'clock.")
        sent = await ask_for_pier(proxy, upstream, history, number)
        assert sent.count(history[0]) == 1

    assert {id_: len(tape) for id_, tape in (await tapes(memory)).items()} == {"trip": 30}


@pytest.mark.parametrize("path", slow_except([CHAT, RESPONSES, MESSAGES], [CHAT, MESSAGES]))
@pytest.mark.parametrize(
    "around",
    ["<now>12:{0}</now>\n{1}", "{1}\n\nDocuments: boat {0} is blue. "],
    ids=["time", "rag"],
)
async def test_text_that_a_client_adds_to_the_newest_message_makes_no_branch(
    proxy: Client, upstream: ModelServer, memory: Memory, path: str, around: str
) -> None:
    """Its history has the bare text."""
    history: list[dict[str, Any]] = []
    sizes = []
    for number in range(32):
        question = f"Which pier has boat {number}, and when?"
        newest = user(around.format(number, question))
        upstream.script(Reply(f"Pier {number}, at nine."))
        await ask(proxy, path, [*history, newest])
        sent = upstream.received[-1].body["input" if path == RESPONSES else "messages"]
        assert question in str(sent[-1])
        sizes.append(len(sent))
        history += [user(question), assistant(f"Pier {number}, at nine.")]
        if number % 5 == 4:
            await observe(memory)

    assert [len(tape) for tape in (await tapes(memory)).values()] == [64]
    assert max(sizes) < 40


async def test_a_newest_message_that_was_edited_to_a_part_of_itself_makes_a_branch(
    proxy: Client, upstream: ModelServer, memory: Memory
) -> None:
    history = [user("Which pier, and when?"), assistant("Pier 3."), user("Is it open at night?")]
    upstream.script(Reply("Pier 3."), Fail(500), Reply("Yes."))
    await ask(proxy, CHAT, history[:1])
    await ask(proxy, CHAT, history)
    await ask(proxy, CHAT, [*history[:-1], user("Is it open?")])

    ends = {id_: tape[2:] for id_, tape in (await tapes(memory)).items()}
    assert ends == {
        "trip": ["user: Is it open at night?"],
        "trip~1": ["user: Is it open?", "assistant: Yes."],
    }


@pytest.mark.parametrize("status", [401, 403])
async def test_a_request_that_the_provider_refused_is_on_the_tape_once_when_it_is_sent_again(
    proxy: Client, upstream: ModelServer, memory: Memory, status: int
) -> None:
    upstream.script(Fail(status), Reply("Pier 3."))
    refused = await ask(proxy, CHAT, [user("Which pier?")])
    unanswered = await tapes(memory)
    await ask(proxy, CHAT, [user("Which pier?")])

    assert refused.status_code == status
    assert unanswered == {"trip": ["user: Which pier?"]}
    assert await tapes(memory) == {"trip": ["user: Which pier?", "assistant: Pier 3."]}


@pytest.mark.parametrize("newest", [3, 4, 5])
async def test_a_named_conversation_stays_on_one_tape_however_few_short_messages_are_sent(
    proxy: Client, upstream: ModelServer, memory: Memory, newest: int
) -> None:
    history: list[dict[str, Any]] = []
    for number in range(100, 115):
        history.append(user(f"Which pier? {number}."))
        upstream.script(Reply(f"Pier {number}."))
        response = await ask(proxy, CHAT, history[-newest:])
        history.append(assistant(f"Pier {number}."))

        assert response.headers["x-remanence-memory"] == "on"
    assert [len(tape) for tape in (await tapes(memory)).values()] == [len(history)]


async def test_an_answer_shows_which_tape_a_history_without_its_beginning_continues(
    memory: Memory, upstream: ModelServer
) -> None:
    """Whichever process gets it, as no other conversation has such a long answer."""
    answer = (
        "It leaves from the third pier on the left, beside the old lighthouse, each day at nine."
    )
    asked = [user("Hi."), assistant("Hello!"), user("Which boat?")]
    upstream.script(Reply(answer), Reply("At noon."))
    async with served(create_app(memory, openai_url=upstream.url)) as proxy:
        await ask(proxy, CHAT, asked)
    async with served(create_app(memory, openai_url=upstream.url)) as proxy:
        await ask(proxy, CHAT, [asked[-1], assistant(answer), user("And back?")])

    assert [len(tape) for tape in (await tapes(memory)).values()] == [6]


@pytest.mark.parametrize("status", [429, 503])
async def test_another_first_text_after_a_failed_request_has_memory(
    proxy: Client, upstream: ModelServer, status: int
) -> None:
    upstream.script(Fail(status), Reply("Pier 3."))
    await ask(proxy, CHAT, [user("Which peer?")])
    response = await ask(proxy, CHAT, [user("Which pier is it?")])

    assert response.headers["x-remanence-conversation"] == "trip~1"


async def test_a_request_for_a_title_after_a_failed_request_that_was_sent_again_has_no_memory(
    proxy: Client, upstream: ModelServer, memory: Memory
) -> None:
    upstream.script(Fail(429), Reply("Pier 3."), Reply("Piers"))
    for _ in range(2):
        await ask(proxy, CHAT, [user("Which pier?")])
    body = {"model": "m", "messages": [user("Write a title for: Which pier?")]}
    response = await proxy.http.post(CHAT, json=body, headers=NAMED)

    assert response.headers["x-remanence-memory"].startswith("off; ")
    assert await tapes(memory) == {"trip": ["user: Which pier?", "assistant: Pier 3."]}


async def test_an_edited_first_text_has_memory_once_it_has_an_answer(
    proxy: Client, upstream: ModelServer, memory: Memory
) -> None:
    upstream.script(Reply("At nine."), Reply("Pier 3."), Reply("At noon."))
    await ask(proxy, CHAT, [user("When?")])
    edited = [user("Which pier?"), assistant("Pier 3."), user("And when?")]
    await proxy.http.post(CHAT, json={"model": "m", "messages": edited[:1]}, headers=NAMED)
    response = await ask(proxy, CHAT, edited)

    assert response.headers["x-remanence-conversation"] == "trip~1"


async def test_a_history_with_words_that_a_tape_ends_with_does_not_continue_it(
    memory: Memory, upstream: ModelServer
) -> None:
    """Such as the prompt behind a button, which people use again, or for the first time."""
    prompt = user(
        "Tell me the state of all the boats that I may take today, each with its pier and time."
    )
    async with served(create_app(memory, openai_url=upstream.url)) as proxy:
        history = [prompt]
        upstream.script(*map(Reply, ["Which island?", *(f"Gate {n}." for n in range(9))]))
        await ask(proxy, CHAT, history)
        for number in range(9):
            history += [assistant("Which island?" if number == 0 else f"Gate {number - 1}.")]
            history += [user(f"My code for island {number} is 88{number}.")]
            await ask(proxy, CHAT, history)
        history += [assistant("Gate 8."), prompt]
        upstream.script(Reply("Which island?"), Reply("Gate 99."))
        await ask(proxy, CHAT, history)
        await observe(memory)
    async with served(create_app(memory, openai_url=upstream.url)) as proxy:
        again = [prompt, assistant("Which island?"), user("The third one.")]
        response = await ask(proxy, CHAT, again)

    assert response.headers["x-remanence-conversation"] == "trip~1"
    assert upstream.received[-1].body["messages"] == again
    assert (await tapes(memory))["trip~1"][2:] == ["user: The third one.", "assistant: Gate 99."]


@pytest.mark.parametrize("restarts", [False, True])
async def test_a_message_in_place_of_a_forgotten_one_is_stored(
    memory: Memory, upstream: ModelServer, *, restarts: bool
) -> None:
    """As a user stops the answer, has the message forgotten, and writes another one."""
    apps = [create_app(memory, openai_url=upstream.url) for _ in range(2)]
    history = [user("Which pier?"), assistant("Pier 3."), user("My code is 8814. Which gate?")]
    upstream.script(Reply("Pier 3."), Fail(500), Reply("B42."), Reply("At nine."))
    async with served(apps[0]) as proxy:
        await ask(proxy, CHAT, history[:1])
        await ask(proxy, CHAT, history)
    (state,) = await memory.conversations()
    tape = tape_of(memory, state)
    await tape.forget((await tape.messages())[-1].id or "")
    history[-1] = user("Which gate?")
    async with served(apps[restarts]) as proxy:
        await ask(proxy, CHAT, history)
        history += [assistant("B42."), user("When?")]
        await ask(proxy, CHAT, history)

    said = ["user: Which gate?", "assistant: B42.", "user: When?", "assistant: At nine."]
    assert (await tapes(memory))["trip~1"][2:] == said


@pytest.mark.parametrize("path", [CHAT, RESPONSES, MESSAGES])
async def test_old_results_that_a_client_shortens_make_no_branch(
    proxy: Client, upstream: ModelServer, memory: Memory, path: str
) -> None:
    """As coding agents do with results that they do not need any more."""
    history: list[dict[str, Any]] = []
    for number in range(10):
        history.append(user(LONG.format(number) * 2))
        upstream.script(Reply("", calls=(Call(f"c{number}", "find"),)), Reply(f"Noted {number}."))
        await ask(proxy, path, history)
        history += called(path, f"c{number}", "A long list of boats. " * 20)
        await ask(proxy, path, history)
        history.append(assistant(f"Noted {number}."))
        await observe(memory)
        if number > 3:
            history[(number - 3) * 4 + 1 : (number - 3) * 4 + 3] = called(
                path, f"c{number - 3}", "[cleared]"
            )
    (tape,) = (await tapes(memory)).values()
    assert len(tape) == 40


def called(path: str, id_: str, result: str) -> list[dict[str, Any]]:
    """A call and its result, in the form of an API."""
    if path == RESPONSES:
        call = {"type": "function_call", "call_id": id_, "name": "find", "arguments": "{}"}
        return [call, {"type": "function_call_output", "call_id": id_, "output": result}]
    if path == CHAT:
        function = {"name": "find", "arguments": "{}"}
        calls = [{"id": id_, "type": "function", "function": function}]
        return [
            {**assistant(None), "tool_calls": calls},
            {"role": "tool", "tool_call_id": id_, "content": result},
        ]
    block = {"type": "tool_result", "tool_use_id": id_, "content": result}
    use = {"type": "tool_use", "id": id_, "name": "find", "input": {}}
    return [assistant([use]), {"role": "user", "content": [block]}]


@pytest.mark.parametrize("ends", ["whole", "in two requests"])
async def test_results_of_a_round_are_on_one_tape_in_the_form_of_any_api(
    proxy: Client, upstream: ModelServer, memory: Memory, ends: str
) -> None:
    """Chat Completions has a message for each result, Anthropic one for all of them."""
    histories: dict[str, list[dict[str, Any]]] = {path: [] for path in (CHAT, MESSAGES, RESPONSES)}
    for number in range(12):
        ids = [f"call{number}-{each}" for each in range(2)]
        rounds = {path: round_of(path, ids) for path in histories}
        path = [*histories][number % 3]
        for form, history in histories.items():
            history += [user(LONG.format(number) * 2), *rounds[form]]
        if ends == "in two requests" and path == CHAT:
            await ask(proxy, path, histories[path][:-1])  # which is refused
        upstream.script(Reply(f"Noted {number}."))
        await ask(proxy, path, histories[path])
        for history in histories.values():
            history.append(assistant(f"Noted {number}."))
        await observe(memory)

    (tape,) = (await tapes(memory)).values()
    assert [text for text in tape if text.startswith("assistant: Noted")] == [
        f"assistant: Noted {number}." for number in range(12)
    ]
    assert str(tape).count("[result] open") == 24
    sent = upstream.received[-1].body["input"]
    own = [one for one in sent if one in histories[RESPONSES]]
    assert len(sent) < 30
    assert len(own) >= len(sent) - 2, "but for the notes and the newest question"


@pytest.mark.parametrize("ends", ["answered", "interrupted"])
async def test_words_beside_results_are_on_one_tape_in_the_form_of_any_api(
    proxy: Client, upstream: ModelServer, memory: Memory, ends: str
) -> None:
    """Anthropic has them in the message of the results, OpenAI in the next one.

    As of a user who interrupts: the results may have been sent before them.
    """
    histories: dict[str, list[dict[str, Any]]] = {path: [] for path in (CHAT, MESSAGES, RESPONSES)}
    for number in range(12):
        ids = [f"call{number}-{each}" for each in range(2)]
        rounds = {path: round_of(path, ids) for path in histories}
        path = [*histories][number % 3]
        for form, history in histories.items():
            history += [user(f"Boat {number}?"), *rounds[form]]
        if ends == "interrupted":
            upstream.script(Fail(503))
            await ask(proxy, path, histories[path])
        for form, history in histories.items():
            words = f"Then boat {number}. {LONG.format(number) * 5}"
            if form == MESSAGES:
                text = {"type": "text", "text": words}
                history[-1] = {"role": "user", "content": [*history[-1]["content"], text]}
            else:
                history.append(user(words))
        upstream.script(Reply(f"Noted {number}."))
        response = await ask(proxy, path, histories[path])
        assert response.status_code == 200, "no result without its call"
        for history in histories.values():
            history.append(assistant(f"Noted {number}."))
        await observe(memory)

    (tape,) = (await tapes(memory)).values()
    for number in range(12):
        assert str(tape).count(f"Then boat {number}.") == 1
        assert str(tape).count(f"Noted {number}.") == 1
    assert str(tape).count("[result] open") == 24
    assert len(upstream.received[-1].body["input"]) < 40


@pytest.mark.parametrize("path", [CHAT, RESPONSES, MESSAGES])
@pytest.mark.parametrize("rounds", [1, 12])
@pytest.mark.parametrize("ends", ["answered", "with results"])
async def test_a_tape_with_an_id_for_each_result_of_a_round_goes_on(
    proxy: Client, upstream: ModelServer, memory: Memory, path: str, rounds: int, ends: str
) -> None:
    """As it is in a database of a version that joined no results."""
    stored: list[dict[str, Any]] = []
    history: list[dict[str, Any]] = []
    for number in range(rounds):
        ids = [f"call{number}-{each}" for each in range(3)]
        for form, messages in ((CHAT, stored), (path, history)):
            messages += [user(f"Which of boat {number}?"), *round_of(form, ids)]
            if ends == "answered" or number < rounds - 1:
                messages.append(assistant(f"Boat {number} is open."))
    old = [Message.from_openai(message) for message in stored]
    tenant = name_of(NAMED, "trip", None).tenant
    tape = memory.conversation("trip", tenant=tenant)
    await tape.append(*(m.replace(id=id_) for m, id_ in zip(old, chain(old), strict=True)))
    for question in ("And now?", "And then?"):
        upstream.script(Reply("Soon."))
        history += [user(question)] if ends == "answered" or question == "And then?" else []
        await ask(proxy, path, history)
        history.append(assistant("Soon."))

    (texts,) = (await tapes(memory)).values()
    assert texts[: len(old)] == [message.full_text for message in old]
    assert len(texts) == len(old) + (4 if ends == "answered" else 3)


def round_of(path: str, ids: Sequence[str]) -> list[dict[str, Any]]:
    """Parallel calls and their results, in the form of an API."""
    pairs = [called(path, id_, "open") for id_ in ids]
    if path == RESPONSES:
        return [call for call, _ in pairs] + [result for _, result in pairs]
    if path == CHAT:
        calls = [one for call, _ in pairs for one in call["tool_calls"]]
        return [{**assistant(None), "tool_calls": calls}, *(result for _, result in pairs)]
    uses = [one for call, _ in pairs for one in call["content"]]
    results = [one for _, result in pairs for one in result["content"]]
    return [assistant(uses), {"role": "user", "content": results}]


async def test_results_that_come_one_by_one_are_on_one_tape_however_many_there_are(
    proxy: Client, upstream: ModelServer, memory: Memory
) -> None:
    ids = [f"call_of_pier_{number}" for number in range(14)]
    calls = [
        {"id": id_, "type": "function", "function": {"name": "look", "arguments": "{}"}}
        for id_ in ids
    ]
    history = [user("Which piers?"), {"role": "assistant", "content": None, "tool_calls": calls}]
    for id_ in ids:
        upstream.script(Fail(400))
        history.append({"role": "tool", "tool_call_id": id_, "content": f"{id_} is open"})
        await ask(proxy, CHAT, history)
    upstream.script(Reply("All of them."))
    await ask(proxy, CHAT, history)

    stored = await tapes(memory)

    assert list(stored) == ["trip"]
    assert sum(text.count("is open") for text in stored["trip"]) == len(ids)


async def test_images_that_a_client_leaves_out_of_old_messages_make_no_branch(
    proxy: Client, upstream: ModelServer, memory: Memory
) -> None:
    history: list[dict[str, Any]] = []
    for number in range(12):
        text = {"type": "text", "text": LONG.format(number)}
        url = f"data:image/png;base64,{number:04}"
        history.append(
            {"role": "user", "content": [text, {"type": "image_url", "image_url": {"url": url}}]}
        )
        upstream.script(Reply(f"Noted {number}."))
        await ask(proxy, CHAT, history)
        assert url in str(upstream.received[-1].body)
        history[-1] = {"role": "user", "content": [text]}
        history.append(assistant(f"Noted {number}."))

    (tape,) = (await tapes(memory)).values()
    assert len(tape) == 24


@pytest.mark.parametrize("kept", [["c1"], []], ids=["one", "none"])
async def test_calls_that_a_client_does_not_make_are_no_branch(
    proxy: Client, upstream: ModelServer, memory: Memory, kept: list[str]
) -> None:
    """Some make one call at a time, and drop the others; a user stops others."""
    history = [user("Is the gate open?")]
    upstream.script(Reply("I look.", calls=(Call("c1", "find"), Call("c2", "find"))))
    await ask(proxy, CHAT, history)
    for id_ in kept:
        history += called(CHAT, id_, "open")
    history += [] if kept else [assistant("I look."), user("Stop.")]
    await ask(proxy, CHAT, history)
    history += [assistant("[Fact] noted"), user("Thanks.")]
    await ask(proxy, CHAT, history)

    (tape,) = (await tapes(memory)).values()
    assert len(tape) == 6
    assert upstream.received[-1].body["messages"] == history


PAY = {"to": "Hotel Lisboa", "eur": 9000, "day": "7", "note": "cd /srv && pay --now", "by": 2**60}


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("pay", '{"to": "Hotel Lisboa", "eur": 90}'),
        ("pay", json.dumps(PAY | {"by": 2**60 + 1})),
        ("refund", json.dumps(PAY)),
    ],
)
@pytest.mark.parametrize("is_streamed", [False, True])
async def test_a_call_that_a_person_corrects_before_it_runs_continues_in_a_branch(
    proxy: Client,
    upstream: ModelServer,
    memory: Memory,
    name: str,
    arguments: str,
    *,
    is_streamed: bool,
) -> None:
    history = [user("Pay the hotel.")]
    upstream.script(Reply("", calls=(Call("call-1", "pay", PAY),)))
    await ask(proxy, CHAT, history, stream=is_streamed)
    history += with_arguments(name, arguments)
    await ask(proxy, CHAT, history)
    history += [assistant("[Fact] noted"), user("How much was it?")]
    await ask(proxy, CHAT, history)

    whole = await tapes(memory)
    assert [len(tape) for tape in whole.values()] == [2, 6]
    assert whole["trip~1"][1] == f"assistant: \n[calls {name} {arguments}]"


@pytest.mark.parametrize(
    "arguments",
    [
        json.dumps(dict(reversed(PAY.items())), indent=2),
        json.dumps(PAY | {"eur": 9000.0, "currency": "EUR"}),
        json.dumps(PAY | {"to": "Hotel  Lisboa\n", "note": "pay --now"}),
        json.dumps(PAY | {"day": 7}),
        json.dumps({"eur": 9000}),
        "",
    ],
    ids=["reserialised", "with a default", "shortened", "parsed", "without fields", "cleared"],
)
async def test_a_call_whose_arguments_a_client_normalises_makes_no_branch(
    proxy: Client, upstream: ModelServer, memory: Memory, arguments: str
) -> None:
    history: list[dict[str, Any]] = []
    for number in range(4):
        history.append(user(f"Pay the hotel of day {number}."))
        upstream.script(Reply("", calls=(Call("call-1", "pay", PAY),)), Reply(f"Paid {number}."))
        await ask(proxy, CHAT, history)
        history += with_arguments("pay", arguments)
        await ask(proxy, CHAT, history)
        history.append(assistant(f"Paid {number}."))

    (tape,) = (await tapes(memory)).values()
    assert len(tape) == 16


async def test_a_call_with_broken_arguments_that_a_client_repairs_makes_no_branch(
    proxy: Client, upstream: ModelServer, memory: Memory
) -> None:
    call, _ = with_arguments("pay", '{"to": ')
    upstream.script(Raw((json.dumps({"choices": [{"message": call}]}),)))
    await ask(proxy, CHAT, [user("Pay the hotel.")])
    await ask(proxy, CHAT, [user("Pay the hotel."), *with_arguments("pay", '{"to": "Ana"}')])

    (tape,) = (await tapes(memory)).values()
    assert len(tape) == 4


def with_arguments(name: str, arguments: str) -> list[dict[str, Any]]:
    """A call and its result in Chat Completions."""
    function = {"name": name, "arguments": arguments}
    call = {"id": "call-1", "type": "function", "function": function}
    return [
        assistant(None) | {"tool_calls": [call]},
        {"role": "tool", "tool_call_id": "call-1", "content": "receipt R-7"},
    ]


@pytest.mark.parametrize("stream", [False, True])
async def test_of_several_choices_the_one_that_the_client_goes_on_with_is_stored(
    proxy: Client, upstream: ModelServer, memory: Memory, *, stream: bool
) -> None:
    choices: list[dict[str, Any]] = [{"index": 0}, {"index": 1}]
    for choice, text in zip(choices, ("At nine.", "At ten."), strict=True):
        choice["delta" if stream else "message"] = assistant(text)
    ends: list[dict[str, Any]] = [
        {"index": index, "delta": {}, "finish_reason": "stop"} for index in (0, 1)
    ]
    events = [{"choices": [choice]} for choice in (*choices, *ends)]
    documents = events if stream else [{"choices": choices}]
    upstream.script(Raw(tuple(map(json.dumps, documents))), Reply("Yes."))
    history = [user("When?")]
    await ask(proxy, CHAT, history, n=2, stream=stream)
    await ask(proxy, CHAT, [*history, assistant("At ten."), user("Sure?")])

    assert await tapes(memory) == {
        "trip": ["user: When?", "assistant: At ten.", "user: Sure?", "assistant: Yes."]
    }


@pytest.mark.parametrize("stream", [False, True])
async def test_a_spoken_answer_that_comes_back_by_its_id_is_the_same(
    proxy: Client, upstream: ModelServer, memory: Memory, *, stream: bool
) -> None:
    audio = {"id": "audio_1", "data": "UklGRg==", "transcript": "At nine.", "expires_at": 1}
    pieces = [{"id": "audio_1", "transcript": "At "}, {"transcript": "nine."}, {"data": "UklGRg=="}]
    events: list[dict[str, Any]] = [{"index": 0, "delta": {"audio": piece}} for piece in pieces]
    events.append({"index": 0, "delta": {}, "finish_reason": "stop"})
    whole = {"index": 0, "message": {**assistant(None), "audio": audio}}
    documents = [{"choices": [one]} for one in (events if stream else [whole])]
    upstream.script(Raw(tuple(map(json.dumps, documents))), Reply("Yes."))
    history = [user("When?")]
    await ask(proxy, CHAT, history, stream=stream)
    history += [{"role": "assistant", "audio": {"id": "audio_1"}}, user("Sure?")]
    await ask(proxy, CHAT, history)

    assert upstream.received[-1].body["messages"] == history
    assert await tapes(memory) == {
        "trip": ["user: When?", "assistant: At nine.", "user: Sure?", "assistant: Yes."]
    }


@pytest.mark.parametrize("stream", [False, True])
async def test_a_call_of_a_tool_of_the_provider_is_the_same_with_its_fields_sorted(
    proxy: Client, upstream: ModelServer, memory: Memory, *, stream: bool
) -> None:
    """As the official clients for Python sort them; one of Anthropic may end before its result."""
    search = {"type": "server_tool_use", "id": "srv_1", "name": "web_search", "input": {"q": "9"}}
    whole = {"type": "message", "role": "assistant", "content": [search]}
    start = {"type": "content_block_start", "index": 0, "content_block": {**search, "input": {}}}
    delta = {"type": "input_json_delta", "partial_json": '{"q": "9"}'}
    events = [
        start,
        {"type": "content_block_delta", "index": 0, "delta": delta},
        {"type": "message_stop"},
    ]
    documents = events if stream else [whole]
    upstream.script(Raw(tuple(map(json.dumps, documents))), Reply("At nine."), Reply("Yes."))
    history = [user("When?")]
    await ask(proxy, MESSAGES, history, stream=stream)
    history.append(assistant([dict(sorted(search.items()))]))
    await ask(proxy, MESSAGES, history, stream=stream)
    history += [assistant("At nine."), user("Sure?")]
    await ask(proxy, MESSAGES, history, stream=stream)

    (tape,) = (await tapes(memory)).values()
    assert [text for text in tape if "nine" in text or text.startswith("user")] == [
        "user: When?", "assistant: At nine.", "user: Sure?",
    ]  # fmt: skip


@pytest.mark.parametrize("resent", ["sorted", "with another field"])
async def test_an_answer_that_is_an_item_of_the_provider_is_the_same_with_other_fields(
    proxy: Client, upstream: ModelServer, memory: Memory, resent: str
) -> None:
    image = {"type": "image_generation_call", "id": "ig_1", "status": "completed", "result": "aWk="}
    response = {"status": "completed", "output": [image]}
    upstream.script(Raw((json.dumps(response),)), Reply("Yes."))
    history = [user("Draw a boat.")]
    await ask(proxy, RESPONSES, history)
    image = dict(sorted(image.items())) if resent == "sorted" else {**image, "size": "auto"}
    await ask(proxy, RESPONSES, [*history, image, user("A red one?")])

    (tape,) = (await tapes(memory)).values()
    assert len(tape) == 4


async def test_a_streamed_refusal_is_stored(
    proxy: Client, upstream: ModelServer, memory: Memory
) -> None:
    upstream.script(Reply("I cannot say.", ending="refusal"))
    await ask(proxy, CHAT, [user("When?")], stream=True)

    assert await tapes(memory) == {"trip": ["user: When?", "assistant: I cannot say."]}


def round_with(path: str, number: int, text: str) -> list[dict[str, Any]]:
    """An answer with a *text* and a call, and the result of the call."""
    id_, output = f"call_{number}", f"Gate {number} is open. " * 9
    match path:
        case "anthropic/v1/messages":
            call = {"type": "tool_use", "id": id_, "name": "look", "input": {}}
            result = {"type": "tool_result", "tool_use_id": id_, "content": output}
            blocks = [{"type": "text", "text": text}] if text else []
            return [assistant([*blocks, call]), {"role": "user", "content": [result]}]
        case "openai/v1/responses":
            item = {"type": "function_call", "call_id": id_, "name": "look", "arguments": "{}"}
            result = {"type": "function_call_output", "call_id": id_, "output": output}
            return [*([assistant(text)] if text else []), item, result]
    function = {"name": "look", "arguments": "{}"}
    calls = [{"id": id_, "type": "function", "function": function}]
    result = {"role": "tool", "tool_call_id": id_, "content": output}
    return [{**assistant(text or None), "tool_calls": calls}, result]


@pytest.mark.parametrize("path", [CHAT, RESPONSES, MESSAGES])
@pytest.mark.parametrize("text", ["", "I look."])
async def test_old_rounds_of_calls_that_a_client_leaves_out_make_no_branch(
    upstream: ModelServer, memory: Memory, path: str, text: str
) -> None:
    """As `pruneMessages` of the AI SDK does; the server is restarted in between."""
    urls = dict[str, Any](openai_url=upstream.url, anthropic_url=upstream.url)
    history: list[dict[str, Any]] = []
    for number in range(9):
        question = user(LONG.format(number) * 2)
        history.append(question)
        request = [*history, *round_with(path, number, text)]
        said = f"Gate {number} is open."
        upstream.script(Reply(text, calls=(Call(f"call_{number}", "look"),)), Reply(said))
        async with served(create_app(memory, **urls)) as proxy:
            await ask(proxy, path, history)
            await ask(proxy, path, request)
        history += [*([assistant(text)] if text else []), assistant(said)]
        if number < 6:  # the newest messages have left out rounds among them
            await observe(memory)
    (tape,) = (await tapes(memory)).values()

    assert len(tape) == 9 * 4
    last = upstream.received[-1].body["input" if path == RESPONSES else "messages"]
    own = [one for one in last if one in request]
    at = request.index(own[0])
    assert "call_7" not in json.dumps(last)
    assert len(own) >= len(last) - 2, "the notes, and the newest with what was recalled"
    assert 0 < at < len(request) - 4
    assert own[0]["content"].partition(" and ")[0] not in json.dumps(last[0]), "notes have it"
    assert [one for one in request[at:] if one not in own] in ([], [question])


@pytest.mark.parametrize("path", [CHAT, RESPONSES, MESSAGES])
@pytest.mark.parametrize("kept", [0, 1, 2])
async def test_going_back_to_the_words_before_a_call_makes_a_branch_without_the_rest(
    proxy: Client, upstream: ModelServer, memory: Memory, path: str, kept: int
) -> None:
    said = ["Erst zähle ich die Boote.", "では古い予約を消します。", "Ahora borro la lista."]
    rounds = [round_with(path, number, text) for number, text in enumerate(said)]
    question = user("Räum die Buchungen auf.")
    history = [question]
    for number, (text, messages) in enumerate(zip(said, rounds, strict=True)):
        upstream.script(Reply(text, calls=(Call(f"call_{number}", "look"),)))
        await ask(proxy, path, history)
        history += messages
    upstream.script(Reply("Todo está borrado."), Reply("Gut."), Reply("Ja."))
    await ask(proxy, path, history)
    whole = (await tapes(memory))["trip"]
    shown = [message for messages in rounds[:kept] for message in messages]
    edited = [question, *shown, assistant(said[kept]), user("Halt, nichts löschen.")]
    await ask(proxy, path, edited)
    await ask(proxy, path, [*edited, assistant("Gut."), user("Sicher?")])
    found = await tapes(memory)

    end = [
        f"assistant: {said[kept]}", "user: Halt, nichts löschen.",
        "assistant: Gut.", "user: Sicher?", "assistant: Ja.",
    ]  # fmt: skip
    assert found == {"trip": whole, "trip~1": [*whole[: 1 + 2 * kept], *end]}
    assert not any(text in json.dumps(upstream.received[-1].body) for text in said[kept + 1 :])


async def test_words_around_a_left_out_round_may_lose_their_markdown(
    proxy: Client, upstream: ModelServer, memory: Memory
) -> None:
    history = [user("Le portail est-il ouvert ?")]
    upstream.script(
        Reply("Je **regarde**.", calls=(Call("call_1", "look"),)), Reply("Il est `ouvert`."),
        Reply("De rien."),
    )  # fmt: skip
    await ask(proxy, CHAT, history)
    await ask(proxy, CHAT, [*history, *round_with(CHAT, 1, "Je **regarde**.")])
    shown = [assistant("Je regarde."), assistant("Il est ouvert."), user("Merci.")]
    response = await ask(proxy, CHAT, [*history, *shown])

    assert response.headers["x-remanence-conversation"] == "trip"


async def test_another_answer_after_a_left_out_round_makes_a_branch(
    proxy: Client, upstream: ModelServer, memory: Memory
) -> None:
    history = [user("Is the gate open?"), *round_with(CHAT, 1, "I look.")]
    upstream.script(Reply("Gate 1 is open."))
    await ask(proxy, CHAT, history)
    edited = [history[0], assistant("I look."), assistant("Gate 1 is closed."), user("Why?")]
    response = await ask(proxy, CHAT, edited)

    assert response.headers["x-remanence-conversation"] == "trip~1"
    assert "[calls" not in " ".join((await tapes(memory))["trip~1"])


async def test_a_streamed_call_of_a_custom_tool_is_stored(
    proxy: Client, upstream: ModelServer, memory: Memory
) -> None:
    begun = {"index": 0, "id": "c1", "type": "custom", "custom": {"name": "py", "input": "1 "}}
    deltas = [{"tool_calls": [begun]}, {"tool_calls": [{"index": 0, "custom": {"input": "+ 1"}}]}]
    choices = [{"index": 0, "delta": delta} for delta in deltas]
    choices.append({"index": 0, "delta": {}, "finish_reason": "tool_calls"})
    upstream.script(Raw(tuple(json.dumps({"choices": [choice]}) for choice in choices)))
    await ask(proxy, CHAT, [user("What is 1 + 1?")], stream=True)

    (tape,) = (await tapes(memory)).values()
    assert tape == ["user: What is 1 + 1?", 'assistant: \n[calls py "1 + 1"]']


async def test_a_streamed_answer_of_anthropic_has_the_same_tape_as_a_whole_one(
    memory: Memory, proxy: Client, upstream: ModelServer
) -> None:
    """Its thinking, too, which a request to Anthropic may have only with its signature."""
    called, kept = Call("c1", "find", {"pier": 3}), []
    for stream in (False, True):
        upstream.script(Reply("I look.", calls=(called,), thinking="Where is pier 3?"))
        named = {**NAMED, "x-remanence-conversation": f"stream {stream}"}
        body = {"model": "m", "max_tokens": 900, "messages": [user("Find it.")], "stream": stream}
        await proxy.http.post(MESSAGES, json=body, headers=named)
    for state in await memory.conversations():
        conversation = memory.conversation(state.ref.id, tenant=state.ref.tenant)
        kept.append([message.content for message in await conversation.messages()])

    whole, streamed = kept
    assert streamed == whole
    assert "Where is pier 3?" in str(whole[1][0])


@pytest.mark.parametrize("path", [CHAT, RESPONSES, MESSAGES])
async def test_a_result_with_bytes_that_no_tape_takes_leaves_the_memory_on(
    proxy: Client, upstream: ModelServer, memory: Memory, path: str
) -> None:
    """Such as that of a tool that read a program."""
    history = [user("Read it."), *called(path, "c1", "ELF\0 Lisbon")]
    await ask(proxy, path, history)

    assert upstream.received[-1].body["input" if path == RESPONSES else "messages"] == history
    (tape,) = (await tapes(memory)).values()
    assert "[result] ELF Lisbon" in tape[2]


async def test_a_request_that_caches_by_itself_keeps_within_four_breakpoints(
    proxy: Client, upstream: ModelServer, memory: Memory
) -> None:
    mark = {"cache_control": {"type": "ephemeral"}}
    prompt = [{"type": "text", "text": text, **mark} for text in ("You help.", "Be brief.")]
    tools = [{"name": "find", "input_schema": {"type": "object"}, **mark}]
    history: list[dict[str, Any]] = []
    for number in range(12):
        history.append(user(LONG.format(number) * 2))
        await ask(proxy, MESSAGES, history, system=prompt, tools=tools, **mark)
        history.append(assistant("[Fact] noted"))
        await observe(memory)

    sent = upstream.received[-1].body
    assert len(sent["messages"]) < len(history)
    assert json.dumps(sent).count("cache_control") == 4


@pytest.mark.parametrize("on_message", [True, False])
@pytest.mark.parametrize("mark", [{"type": "ephemeral"}, {"type": "ephemeral", "ttl": "1h"}])
async def test_the_breakpoint_of_the_notes_lasts_as_long_as_those_after_it(
    proxy: Client, upstream: ModelServer, memory: Memory, *, on_message: bool, mark: dict[str, str]
) -> None:
    """Anthropic refuses a breakpoint that lasts longer than one before it."""
    history: list[dict[str, Any]] = []
    for number in range(12):
        history.append(user(LONG.format(number) * 2))
        block = {"type": "text", "text": history[-1]["content"], "cache_control": mark}
        sent = [*history[:-1], {"role": "user", "content": [block]}] if on_message else history
        await ask(proxy, MESSAGES, sent, **({} if on_message else {"cache_control": mark}))
        history.append(assistant("[Fact] noted"))
        await observe(memory)

    (notes,) = upstream.received[-1].body["messages"][0]["content"]
    assert notes["cache_control"] == mark


@pytest.mark.parametrize("path", [CHAT, RESPONSES])
async def test_a_prompt_that_moves_with_the_newest_message_makes_no_branch(
    proxy: Client, upstream: ModelServer, memory: Memory, path: str
) -> None:
    """Such as one with the time of day, which is not in the history that comes next."""
    history: list[dict[str, Any]] = []
    for number in range(12):
        prompt = {"role": "system", "content": f"It is {number} o'clock."}
        question = user(LONG.format(number) * 2)
        sent = [*history, prompt, question]
        await ask(proxy, path, sent if number % 2 else [*history, question, prompt])
        assert prompt in upstream.received[-1].body["input" if path == RESPONSES else "messages"]
        history += [question, assistant("[Fact] noted")]
        await observe(memory)

    (tape,) = (await tapes(memory)).values()
    assert len(upstream.received[-1].body["input" if path == RESPONSES else "messages"]) < 20
    assert len(tape) == len(history)


@pytest.mark.parametrize("role", ["system", "developer"])
@pytest.mark.parametrize("path", [CHAT, RESPONSES])
async def test_a_prompt_within_the_history_is_sent_on_behind_notes(
    proxy: Client, upstream: ModelServer, memory: Memory, path: str, role: str
) -> None:
    """The notes do not have it: it is of the application, and holds for what follows."""
    policies = [{"role": role, "content": f"Policy {n}: never quote prices."} for n in range(2)]
    history: list[dict[str, Any]] = [{"role": role, "content": "You help."}]
    for number in range(12):
        history += policies[number - 1 : number] if number < 3 else []
        history.append(user(LONG.format(number) * 2))
        await ask(proxy, path, history)
        history.append(assistant("[Fact] noted"))
        await observe(memory)
    for _ in range(3):  # the first one may activate notes
        await ask(proxy, path, [*history, user("And now?")])
        history += [user("And now?"), assistant("[Fact] noted")]
        await observe(memory)

    field = "input" if path == RESPONSES else "messages"
    first, second = [request.body[field] for request in upstream.received[-2:]]
    assert len(first) < len(history) - 10
    assert [first[0], *first[2:4]] == [history[0], *policies]
    assert first[4:-1] == history[-(len(first[4:-1]) + 4) : -4]
    assert second[: len(first) - 1] == first[:-1]


async def test_prompts_within_a_history_are_sent_to_anthropic_as_one_behind_the_users_turn(
    proxy: Client, upstream: ModelServer, memory: Memory
) -> None:
    history: list[dict[str, Any]] = []
    for number in range(12):
        history.append(user(LONG.format(number) * 2))
        if number in (1, 2, 11):
            history.append({"role": "system", "content": f"Policy {number}."})
        if number == 3:
            history.append({"role": "system", "content": "Now.", "clear_at": "next_user_message"})
        await ask(proxy, MESSAGES, history)
        assert upstream.received[-1].body["messages"][0]["role"] == "user"
        history.append(assistant("[Fact] noted"))
        await observe(memory)
    await ask(proxy, MESSAGES, [*history, user("And now?")])

    sent = upstream.received[-1].body["messages"]
    joined, own = [one["content"] for one in sent if one["role"] == "system"]
    assert [one["text"] for one in joined] == ["Policy 1.", "Policy 2."]
    assert own == "Policy 11."
    assert len(sent) < len(history) - 10


async def test_old_screens_that_a_client_leaves_out_make_no_branch(
    proxy: Client, upstream: ModelServer, memory: Memory
) -> None:
    """The results of calls that only some providers have are known by the call, as others are."""
    history: list[dict[str, Any]] = []
    for number in range(8):
        call = {"type": "computer_call", "call_id": f"c{number}", "action": {"type": "screenshot"}}
        screen = {"type": "computer_screenshot", "image_url": f"data:image/png;base64,{number:04}"}
        result = {"type": "computer_call_output", "call_id": f"c{number}"}
        history += [user(f"Click {number}."), call, {**result, "output": screen}]
        await ask(proxy, RESPONSES, history)
        assert screen in [one.get("output") for one in upstream.received[-1].body["input"]]
        blank = {**screen, "image_url": "data:image/png;base64,AAAA"}
        history[-1:] = [{**result, "output": blank}, assistant("[Fact] noted")]

    (tape,) = (await tapes(memory)).values()
    assert len(tape) == 8 * 4


async def test_a_message_that_a_client_puts_between_the_newest_hides_none_of_them(
    proxy: Client, upstream: ModelServer, memory: Memory
) -> None:
    history = await talk(proxy, upstream, memory, 12)
    for number in range(7):
        history.append(user(f"Short {number}."))
        await ask(proxy, CHAT, history)
        history.append(assistant("[Fact] noted"))
    newest = [user("And now?")]
    await ask(proxy, CHAT, [*history, *newest])
    usual = upstream.received[-1].body["messages"][1:-1]
    assert len(history) > len(usual) > 12, "behind the notes"
    history += [*newest, assistant("[Fact] noted")]
    history.insert(-12, user("Summary: Ana asked for piers."))
    await ask(proxy, CHAT, [*history, *newest])

    sent = upstream.received[-1].body["messages"]
    assert user("Summary: Ana asked for piers.") in sent
    assert all(one in sent for one in usual)
    assert [one for one in sent if one in history] == history[-len(sent) + 2 :]
    assert len(await tapes(memory)) == 1


CALLED: list[dict[str, Any]] = [
    {"role": "assistant", "content": None, "tool_calls": [
        {"id": "call-of-pier", "type": "function", "function": {"name": "find", "arguments": "{}"}}
    ]},
    {"role": "tool", "tool_call_id": "call-of-pier", "content": LONG.format(7)},
]  # fmt: skip


@pytest.mark.parametrize(
    "own", [[user("Summary: Ana asked for piers.")], []], ids=["summary", "cut"]
)
@pytest.mark.parametrize("after", ["answer", "words"])
async def test_a_call_before_a_lost_beginning_keeps_its_result(
    proxy: Client, upstream: ModelServer, memory: Memory, own: list[dict[str, Any]], after: str
) -> None:
    """The history begins after the result, and the messages shown from the tape before it."""
    history: list[dict[str, Any]] = []
    for number in range(4):
        history.append(user(LONG.format(number) * 2))
        upstream.script(Reply(f"Noted {number}."))
        await ask(proxy, CHAT, history)
        history.append(assistant(f"Noted {number}."))
    await observe(memory)
    history += [user("Which pier has the boat?"), *CALLED]
    cut = len(history)
    if after == "answer":
        history.append(assistant("Pier 7."))
    for hour in range(8, 13):
        history.append(user(f"Does a boat leave at {hour}?"))
        upstream.script(Reply(f"Yes, at {hour}."))
        await ask(proxy, CHAT, history)
        history.append(assistant(f"Yes, at {hour}."))
    history.append(user("And back?"))

    upstream.script(Reply("At ten."))
    await ask(proxy, CHAT, [*own, *history[cut:]])

    sent = upstream.received[-1].body["messages"]
    assert [one for one in sent if one.get("role") == "tool"] == CALLED[1:]
    called = next(at for at, one in enumerate(sent) if one.get("tool_calls"))
    assert sent[called + 1]["role"] == "tool"
    assert [sent.count(one) for one in own] == [1] * len(own)
    texts = [one["content"] for one in sent if isinstance(one["content"], str)]
    assert all(texts.count(one["content"]) == 1 for one in history[cut:-1])


@pytest.mark.parametrize(
    "own", [[user("Summary: Ana asked for piers.")], []], ids=["summary", "cut"]
)
async def test_an_edit_in_a_history_without_its_beginning_keeps_the_notes(
    proxy: Client, upstream: ModelServer, memory: Memory, own: list[dict[str, Any]]
) -> None:
    history: list[dict[str, Any]] = []
    for number in range(12):
        history.append(user(LONG.format(number) * 2))
        upstream.script(Reply(f"Noted {number}."))
        await ask(proxy, CHAT, history)
        history.append(assistant(f"Noted {number}."))
    await observe(memory)

    edited = [*own, *history[10:18], user("And pier 9, which I had forgotten?")]
    upstream.script(Reply("At nine."))
    response = await ask(proxy, CHAT, edited)

    assert response.headers["x-remanence-conversation"] == "trip~1"
    told = [*history[:18], edited[-1], assistant("At nine.")]
    assert (await tapes(memory))["trip~1"] == [f"{one['role']}: {one['content']}" for one in told]
    sent = upstream.received[-1].body["messages"]
    assert "pier 1 " in sent[0]["content"]
    assert all(one in sent for one in own)


async def test_a_summary_stands_before_the_excerpt_of_the_message_that_followed_it(
    upstream: ModelServer,
) -> None:
    policy = SMALL.replace(tail_tokens=2_800)
    texts = ["Is there a boat?", "Which one?", LONG.format(7) * 300]
    texts += [f"Does it leave at {hour}?" for hour in range(8, 12)]
    history: list[dict[str, Any]] = []
    async with (
        Memory.open("sqlite:///:memory:", policy=policy) as memory,
        served(create_app(memory, openai_url=upstream.url)) as proxy,
    ):
        for number, text in enumerate(texts):
            history.append(user(text))
            upstream.script(Reply(f"Noted {number} about the boat."))
            await ask(proxy, CHAT, history)
            history.append(assistant(f"Noted {number} about the boat."))
        upstream.script(Reply("At ten."))
        summary, rest = user("Summary: Ana asked for a boat."), [*history[4:], user("And back?")]
        await ask(proxy, CHAT, [summary, *rest])

    sent = upstream.received[-1].body["messages"]
    at = sent.index(summary)
    assert sent[:at] == history[:4]
    assert sent[at + 1]["content"].startswith(LONG.format(7))
    assert sent[at + 2 :] == rest[1:]


@pytest.mark.parametrize("path", [RESPONSES, MESSAGES])
async def test_a_history_that_begins_with_a_compaction_of_the_tape_continues_it(
    proxy: Client, upstream: ModelServer, memory: Memory, path: str
) -> None:
    """However short it is: the provider's own compaction is in no other conversation."""
    said, answer = COMPACTED[path]
    upstream.script(Raw(tuple(map(json.dumps, answer))), Reply("Yes."), Reply("No."))
    await ask(proxy, path, [user("Hi."), assistant("Yes?"), user("A boat?")], stream=True)
    await ask(proxy, path, [*said, user("Daily?")])
    await ask(proxy, path, [*said, user("Daily?"), assistant("Yes."), user("At nine?")])

    (tape,) = (await tapes(memory)).values()
    assert [text.partition(": ")[2] for text in tape if text.startswith("user")] == [
        "Hi.", "A boat?", "Daily?", "At nine?",
    ]  # fmt: skip


COMPACTION: dict[str, Any] = {"type": "compaction", "id": "cmp_1", "encrypted_content": "g"}
AT_TEN = {"type": "message", **assistant([{"type": "output_text", "text": "At ten."}])}
BLOCKS = [{"type": "compaction", "content": "A boat."}, {"type": "text", "text": "At ten."}]
COMPACTED: dict[str, tuple[list[dict[str, Any]], list[dict[str, Any]]]] = {
    RESPONSES: (
        [COMPACTION, AT_TEN],
        [
            {"type": "response.output_item.done", "item": COMPACTION},
            {"type": "response.output_item.done", "item": AT_TEN},
            {"type": "response.completed"},
        ],
    ),
    MESSAGES: (
        [assistant(BLOCKS)],
        [
            {
                "type": "content_block_start",
                "index": 0,
                "content_block": {"type": "compaction", "content": None},
            },
            {
                "type": "content_block_delta",
                "index": 0,
                "delta": {"type": "compaction_delta", "content": "A boat."},
            },
            {"type": "content_block_start", "index": 1, "content_block": BLOCKS[1]},
            {"type": "message_stop"},
        ],
    ),
}
"""The items or messages of an answer that compacts, and its events."""
