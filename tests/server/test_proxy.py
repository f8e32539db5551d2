"""Clients of OpenAI and Anthropic, unchanged, with the memory between them and their provider."""

import asyncio
import contextlib
import copy
import gzip
import hashlib
import json
import re
import socket
import zlib
from collections.abc import AsyncIterator
from contextlib import closing
from pathlib import Path
from random import Random
from typing import Any

import anthropic
import apsw
import httpx2
import openai
import pytest
from tests.server.conftest import POLICY, Client, served
from tests.wire.dialects import Call, Reply
from tests.wire.servers import Compressed, Fail, Held, ModelServer, Raw, Trouble

from remanence import Budget, Memory, Message, Policy
from remanence.errors import InvalidArgument
from remanence.server.access import by_key
from remanence.server.app import create_app
from remanence.server.proxy.naming import conversation_of, name_of
from remanence.testing.models import ScriptedModel

NAMED = {"x-remanence-conversation": "trip"}
KEY = {"authorization": "Bearer key-of-a"}
TOOLS: list[Any] = [{"name": "find", "input_schema": {"type": "object"}}]
LONG = "The boat to the island leaves from pier {0} and takes {0} minutes in good weather. "


@pytest.fixture
async def proxy(memory: Memory, upstream: ModelServer) -> AsyncIterator[Client]:
    app = create_app(memory, openai_url=upstream.url, anthropic_url=upstream.url)
    async with served(app) as client:
        yield client


def openai_client(proxy: Client) -> openai.AsyncOpenAI:
    return openai.AsyncOpenAI(
        base_url=f"{proxy.http.base_url}/openai/v1", api_key="key-of-a", max_retries=0
    )


def anthropic_client(proxy: Client) -> anthropic.AsyncAnthropic:
    return anthropic.AsyncAnthropic(
        base_url=f"{proxy.http.base_url}/anthropic", api_key="key-of-a", max_retries=0
    )


async def only_tape(memory: Memory) -> list[str]:
    (state,) = await memory.conversations()
    conversation = memory.conversation(state.ref.id, tenant=state.ref.tenant)
    return [message.text for message in await conversation.messages()]


async def test_a_short_conversation_reaches_openai_as_it_was_sent(
    proxy: Client, upstream: ModelServer, memory: Memory
) -> None:
    upstream.script(Reply("Gate B42."))
    async with openai_client(proxy) as client:
        answer = await client.chat.completions.create(
            model="gpt-5",
            messages=[{"role": "user", "content": "Which gate?"}],
            extra_headers=NAMED,
        )
    assert answer.choices[0].message.content == "Gate B42."
    (received,) = upstream.received
    assert received.body == {
        "model": "gpt-5",
        "messages": [{"role": "user", "content": "Which gate?"}],
    }
    assert await only_tape(memory) == ["Which gate?", "Gate B42."]


async def test_a_system_prompt_with_a_lone_surrogate_is_no_obstacle_to_the_memory(
    proxy: Client, upstream: ModelServer, memory: Memory
) -> None:
    upstream.script(Reply("Gate B42."))
    prompts = [{"role": "system", "content": "You help \ud800"}]
    body = {"model": "gpt-5", "messages": [*prompts, {"role": "user", "content": "Which gate?"}]}

    answer = await proxy.http.post(
        "/openai/v1/chat/completions", content=json.dumps(body), headers={**KEY, **NAMED}
    )

    assert answer.headers["x-remanence-memory"] == "on"
    assert await only_tape(memory) == ["Which gate?", "Gate B42."]


async def test_a_request_is_bounded_for_the_model_that_it_names(upstream: ModelServer) -> None:
    policy = Policy(model="claude-sonnet-5-5", observe_tokens=1_000_000)
    history: list[Any] = [
        {"role": role, "content": LONG.format(number) * 600}
        for number in range(10)
        for role in ("user", "assistant")
    ]
    history.append({"role": "user", "content": "Which pier?"})
    async with Memory.open("sqlite:///:memory:", policy=policy) as memory:
        app = create_app(memory, openai_url=upstream.url)
        omitted = {}
        async with served(app) as proxy, openai_client(proxy) as client:
            for model in ("gpt-4o", "gpt-4.1", "a-model-of-our-own"):
                upstream.script(Reply("Pier 3."))
                response = await client.chat.completions.with_raw_response.create(
                    model=model, messages=history, extra_headers=NAMED
                )
                omitted[model] = response.headers.get("x-remanence-omitted")
        *_, branch = await memory.conversations()
        conversation = memory.conversation(branch.ref.id, tenant=branch.ref.tenant)
        tokens = {
            model: (await conversation.context(model=model)).stats.context_tokens
            for model in ("gpt-4o", "gpt-4.1", "a-model-of-our-own")
        }

    small, large, unknown = [len(request.body["messages"]) for request in upstream.received]
    assert 180_000 < tokens["gpt-4.1"] < 900_000
    assert tokens["gpt-4o"] <= 115_200
    assert 115_200 < tokens["a-model-of-our-own"] <= 180_000, "as the policy's model"
    assert large == len(history)
    assert small < unknown < large
    assert omitted["gpt-4.1"] is None
    assert re.fullmatch(r"1-\d+ over_budget(, \d+-\d+ \w+)*", omitted["gpt-4o"] or "")


@pytest.mark.parametrize("stream", [False, True])
async def test_openai_gets_notes_for_what_is_old(
    proxy: Client, upstream: ModelServer, memory: Memory, *, stream: bool
) -> None:
    turns = 24
    history: list[Any] = [{"role": "system", "content": "You help."}]
    async with openai_client(proxy) as client:
        for number in range(turns):
            history.append({"role": "user", "content": LONG.format(number) * 2})
            upstream.script(Reply(f"Pier {number} it is."))
            if stream:
                text = ""
                async for chunk in await client.chat.completions.create(
                    model="gpt-5", messages=history, extra_headers=NAMED, stream=True
                ):
                    text += chunk.choices[0].delta.content or "" if chunk.choices else ""
            else:
                answer = await client.chat.completions.create(
                    model="gpt-5", messages=history, extra_headers=NAMED
                )
                text = answer.choices[0].message.content or ""
            assert text == f"Pier {number} it is."
            history.append({"role": "assistant", "content": text})
            await observe_all(memory)
    sent = upstream.received[-1].body["messages"]
    assert sent[0] == history[0]
    assert sent[1]["role"] == "system"
    assert "pier" in sent[1]["content"]
    assert len(sent) < 20
    own = sent[2:-1]
    assert own == history[-len(own) - 2 : -2]
    assert len(await only_tape(memory)) == 2 * turns


async def test_anthropic_gets_notes_and_the_clients_own_blocks(
    proxy: Client, upstream: ModelServer, memory: Memory
) -> None:
    """A loop with tools, streamed, with thinking and the client's own cache marks."""
    history: list[dict[str, Any]] = []
    async with anthropic_client(proxy) as client:
        for number in range(16):
            history.append({"role": "user", "content": LONG.format(number) * 2})
            upstream.script(Reply("I look.", calls=(Call(f"call{number}", "find", {"n": number}),)))
            history.append(await ask_messages(client, history))
            result = {"type": "tool_result", "tool_use_id": f"call{number}", "content": "open"}
            history.append({"role": "user", "content": [result]})
            upstream.script(Reply(f"Pier {number} is open."))
            history.append(await ask_messages(client, history))
            await observe_all(memory)
    sent = upstream.received[-1].body
    assert "pier" in sent["messages"][0]["content"][0]["text"]
    assert sent["messages"][0]["content"][0]["cache_control"] == {"type": "ephemeral"}
    assert sent["tools"] == TOOLS
    assert sent["messages"][-1] == with_breakpoints(history[:-1])[-1], "as the client sent it"
    own = [message for message in sent["messages"][1:] if message in with_breakpoints(history[:-1])]
    assert len(own) == len(sent["messages"]) - 2, "the user's newest carries what was recalled"
    assert len(sent["messages"]) < 30
    assert len(await only_tape(memory)) == len(history)


async def test_anthropic_gets_the_task_as_it_was_sent_as_long_as_the_model_works_on_it(
    proxy: Client, upstream: ModelServer, memory: Memory
) -> None:
    task = {"role": "user", "content": [{"type": "text", "text": LONG.format(7) * 4}]}
    history: list[dict[str, Any]] = [{"role": "user", "content": "Hi."}]
    async with anthropic_client(proxy) as client:
        upstream.script(Reply("Hello."))
        history += [await ask_messages(client, history), task]
        for number in range(24):
            upstream.script(Reply("I look.", calls=(Call(f"call{number}", "find"),)))
            history.append(await ask_messages(client, history))
            result = {
                "type": "tool_result",
                "tool_use_id": f"call{number}",
                "content": "open " * 40,
            }
            words = {"type": "text", "text": "Mind the list of tasks."}
            history.append({"role": "user", "content": [result, words][: 1 + number % 2]})
            await observe_all(memory)
    sent = upstream.received[-1].body["messages"]
    assert "Notes of the earlier part" in sent[0]["content"][0]["text"]
    assert sent[1] == task
    assert sent[2] in history[20:], "the newest messages"
    assert len(sent) < 20


async def test_anthropic_gets_the_order_by_which_the_user_interrupted_a_task(
    proxy: Client, upstream: ModelServer, memory: Memory
) -> None:
    order = {"role": "user", "content": [{"type": "text", "text": LONG.format(7) * 4}]}
    history: list[dict[str, Any]] = [{"role": "user", "content": LONG.format(8) * 4}]
    interrupted = {"type": "text", "text": "[Request interrupted by user for tool use]"}
    async with anthropic_client(proxy) as client:
        for number in range(24):
            upstream.script(Reply("I look.", calls=(Call(f"call{number}", "find"),)))
            history.append(await ask_messages(client, history))
            text = "open " * 40
            result = {"type": "tool_result", "tool_use_id": f"call{number}", "content": text}
            if number == 3:
                history += [{"role": "user", "content": [result, interrupted]}, order]
            else:
                history.append({"role": "user", "content": [result]})
            await observe_all(memory)
    sent = upstream.received[-1].body["messages"]
    assert sent[1] == order
    assert len(sent) < 20


async def test_openai_gets_the_task_as_it_was_sent_as_long_as_the_model_works_on_it(
    proxy: Client, upstream: ModelServer, memory: Memory
) -> None:
    history: list[Any] = [{"role": "user", "content": "Hi."}]
    task = {"role": "user", "content": LONG.format(7) * 4}
    async with openai_client(proxy) as client:
        upstream.script(Reply("Hello."))
        history += [*await ask_responses(client, history), task]
        for number in range(24):
            upstream.script(Reply("", calls=(Call(f"call{number}", "find"),)))
            history += await ask_responses(client, history)
            result = {
                "type": "function_call_output",
                "call_id": f"call{number}",
                "output": "a " * 99,
            }
            history.append(result)
            await observe_all(memory)
    sent = upstream.received[-1].body["input"]
    assert "Notes of the earlier part" in str(sent[0])
    assert sent[1] == task
    assert sent[2] in history[20:], "the newest messages"
    assert len(sent) < 20


async def test_a_request_to_anthropic_begins_with_the_user_where_nothing_was_noted(
    upstream: ModelServer,
) -> None:
    model = ScriptedModel([], otherwise="NOTHING")
    policy = POLICY.replace(keep_last=1, recall_each_turn=False)
    history: list[dict[str, Any]] = []
    async with (
        Memory.open("sqlite:///:memory:", policy=policy, model=model) as memory,
        served(create_app(memory, anthropic_url=upstream.url)) as proxy,
        anthropic_client(proxy) as client,
    ):
        for number in range(4):
            history.append({"role": "user", "content": LONG.format(number) * 12})
            upstream.script(Reply(LONG.format(number) * 12))
            history.append(await ask_messages(client, history))
            await observe_all(memory)
    sent = [received.body["messages"] for received in upstream.received]
    assert len(sent[-1]) < 6, "old messages are left out"
    assert {messages[0]["role"] for messages in sent} == {"user"}


@pytest.mark.parametrize("stream", [False, True])
async def test_an_answer_that_the_client_began_is_on_the_tape_whole(
    proxy: Client, upstream: ModelServer, memory: Memory, *, stream: bool
) -> None:
    history: list[dict[str, Any]] = []
    begun = assistant('{"pier":')
    for number in range(12):
        history.append(user(LONG.format(number) * 2))
        upstream.script(Reply(f" {number}}}"))
        response = await proxy.http.post(
            "anthropic/v1/messages",
            json={"model": "m", "max_tokens": 99, "messages": [*history, begun], "stream": stream},
            headers=NAMED,
        )
        assert response.headers["x-remanence-memory"] == "on"
        assert upstream.received[-1].body["messages"][-1] == begun
        history.append(assistant(f'{{"pier": {number}}}'))
        await observe_all(memory)
    assert len(upstream.received[-1].body["messages"]) < 20
    assert await only_tape(memory) == [message["content"] for message in history]


async def test_responses_get_notes_and_the_clients_own_items(
    proxy: Client, upstream: ModelServer, memory: Memory
) -> None:
    """A loop with tools, streamed; the conversation is in the input of each request."""
    items: list[Any] = [{"role": "developer", "content": "You help."}]
    async with openai_client(proxy) as client:
        for number in range(16):
            items.append({"role": "user", "content": LONG.format(number) * 2})
            upstream.script(Reply("I look.", calls=(Call(f"call{number}", "find", {"n": number}),)))
            items += await ask_responses(client, items)
            result = {"call_id": f"call{number}", "output": "open"}
            items.append({"type": "function_call_output", **result})
            upstream.script(Reply(f"Pier {number} is open."))
            items += await ask_responses(client, items)
            await observe_all(memory)
    sent = upstream.received[-1].body["input"]
    assert sent[0] == items[0]
    assert sent[1]["role"] == "developer"
    assert "pier" in sent[1]["content"]
    assert len([item for item in sent[2:] if item in items]) == len(sent) - 3
    assert len(sent) < 40
    assert len(await only_tape(memory)) == 4 * 16


@pytest.mark.parametrize(
    "fields",
    [
        {"previous_response_id": "resp_1", "input": "And the seat?"},
        {"conversation": "conv_1", "input": "And the seat?"},
        {"input": [{"type": "item_reference", "id": "msg_1"}]},
        {
            "input": [
                {"role": "user", "content": "Which gate?"},
                {"type": "item_reference", "id": "msg_1"},
                {"role": "user", "content": "And the seat?"},
            ]
        },
    ],
)
async def test_a_conversation_that_is_with_the_provider_stays_there(
    proxy: Client, upstream: ModelServer, memory: Memory, fields: dict[str, Any]
) -> None:
    response = await proxy.http.post(
        "openai/v1/responses", json={"model": "m", **fields}, headers=NAMED
    )
    assert "the provider stores" in response.headers["x-remanence-memory"]
    assert upstream.received[0].body == {"model": "m", **fields}
    assert await memory.conversations() == ()


@pytest.mark.parametrize("named", [True, False])
async def test_items_that_a_client_refers_to_are_those_of_the_tape(
    memory: Memory, upstream: ModelServer, *, named: bool
) -> None:
    """As the AI SDK does, in a loop with tools; the server is restarted in between."""
    turns, items = 12, []
    app = dict[str, Any](openai_url=upstream.url, recognize=True)
    for number in range(turns):
        async with served(create_app(memory, **app)) as proxy:
            items.append(user(LONG.format(number) * 2))
            call = Call(f"call{number}", "find", {"n": number})
            upstream.script(Reply("I look.", id=f"call{number}", calls=(call,)))
            items += await references_of_answer(proxy, items, named=named)
            result = {"call_id": f"call{number}", "output": "open"}
            items.append({"type": "function_call_output", **result})
            upstream.script(Reply(f"Pier {number} is open.", id=f"answer{number}"))
            items += await references_of_answer(proxy, items, named=named)
        await observe_all(memory)
    told, *sent = upstream.received[-1].body["input"]
    assert "pier" in told["content"]
    assert len([item for item in sent if item in items]) == len(sent) - 1  # with what was recalled
    assert len(sent) < 30 < len(items)
    texts = [[LONG.format(n) * 2, "I look.", "", f"Pier {n} is open."] for n in range(turns)]
    assert await only_tape(memory) == [text for turn in texts for text in turn]


SENT = ({"authorization": "Bearer key-of-a"}, {"x-api-key": "key-of-a"})


async def ask_twice(proxy: Client, upstream: ModelServer, *headers: dict[str, str]) -> None:
    """Hold two turns of a conversation, each with its headers."""
    history = [user("Which gate?")]
    for sent, answer in zip(headers, ("Gate B42.", "Seat 14C."), strict=True):
        upstream.script(Reply(answer))
        body = {"model": "m", "max_tokens": 900, "messages": history}
        await proxy.http.post("anthropic/v1/messages", json=body, headers=NAMED | sent)
        history += [{"role": "assistant", "content": answer}, user("And the seat?")]


@pytest.mark.parametrize("scheme", ["Bearer", "bearer"])
async def test_a_provider_key_has_one_memory_however_it_is_sent(
    proxy: Client, upstream: ModelServer, memory: Memory, scheme: str
) -> None:
    _, as_key = SENT
    await ask_twice(proxy, upstream, as_key, {"authorization": f"{scheme} key-of-a"})

    (state,) = await memory.conversations()
    digest = hashlib.sha256(b"key-of-a").hexdigest()
    assert (state.ref.tenant, state.last_seq) == (f"credential-{digest[:32]}", 4)


@pytest.mark.parametrize("sent", [SENT, SENT[::-1]], ids=["bearer first", "key first"])
@pytest.mark.parametrize("has_both", [False, True])
async def test_a_provider_key_keeps_the_memory_that_an_earlier_version_has_stored(
    proxy: Client, upstream: ModelServer, memory: Memory, sent: Any, has_both: bool
) -> None:
    """It hashed the header, so that a key had a second tenant as a bearer token."""
    names = ("key-of-a", "Bearer key-of-a") if has_both else ("Bearer key-of-a",)
    tenants = [f"credential-{hashlib.sha256(one.encode()).hexdigest()[:32]}" for one in names]
    for tenant in tenants:
        await memory.conversation("old", tenant=tenant).append(Message.user("Hello."))
    await ask_twice(proxy, upstream, *sent)

    (state,) = [one for one in await memory.conversations() if one.ref.id == "trip"]
    assert (state.ref.tenant, state.last_seq) == (tenants[0], 4)


async def test_items_are_found_beside_another_users_conversation_with_the_name_of_a_branch(
    proxy: Client, upstream: ModelServer, memory: Memory
) -> None:
    tenant = name_of(KEY, "trip", None).tenant
    await memory.conversation("trip~1", user="bo", tenant=tenant).append(Message.user("Mine."))
    mine = NAMED | KEY | {"x-remanence-user": "ana"}
    items: list[Any] = [user("Which gate?")]
    upstream.script(Reply("Gate B42.", id="1"), Reply("Seat 14C.", id="2"))
    for question in ("And the seat?", None):
        response = await proxy.http.post(
            "openai/v1/responses", json={"model": "m", "input": items}, headers=mine
        )
        assert response.headers["x-remanence-memory"] == "on"
        items += [{"type": "item_reference", "id": one["id"]} for one in response.json()["output"]]
        items.append(user(question or ""))

    trip = memory.conversation("trip", user="ana", tenant=tenant)
    texts = [message.text for message in await trip.messages()]
    assert texts == ["Which gate?", "Gate B42.", "And the seat?", "Seat 14C."]


async def test_an_item_that_was_forgotten_is_not_kept_again(
    proxy: Client, upstream: ModelServer, memory: Memory
) -> None:
    items: list[Any] = [user("Which gate?")]
    upstream.script(Reply("Gate B42.", id="1"), Reply("Seat 14C.", id="2"))
    items += await references_of_answer(proxy, items)
    items.append(user("And the seat?"))
    items += await references_of_answer(proxy, items)
    (state,) = await memory.conversations()
    conversation = memory.conversation(state.ref.id, tenant=state.ref.tenant)
    await conversation.forget(*[m.id or "" for m in await conversation.messages() if m.seq == 2])

    items.append(user("Thanks."))
    upstream.script(Reply("Welcome."))
    response = await proxy.http.post(
        "openai/v1/responses", json={"model": "m", "input": items}, headers=NAMED | KEY
    )
    assert "the provider stores" in response.headers["x-remanence-memory"]
    assert upstream.received[-1].body["input"] == items
    assert not any("B42" in text for tape in (await all_tapes(memory)).values() for text in tape)


async def test_an_edited_history_is_a_conversation_of_its_own(
    proxy: Client, upstream: ModelServer, memory: Memory
) -> None:
    first = [user("Which gate?"), assistant("B42."), user("And the seat?")]
    edited = [user("Which gate?"), assistant("B42."), user("And the train?")]
    await ask(proxy, first, "14C.", upstream)
    await ask(proxy, edited, "At nine.", upstream)
    await ask(proxy, [*edited, assistant("At nine."), user("Thanks.")], "Welcome.", upstream)
    await ask(proxy, [*first, assistant("14C."), user("Window?")], "Yes.", upstream)
    tapes = await all_tapes(memory)
    assert tapes == {
        "trip": ["Which gate?", "B42.", "And the seat?", "14C.", "Window?", "Yes."],
        "trip~1": ["Which gate?", "B42.", "And the train?", "At nine.", "Thanks.", "Welcome."],
    }


async def test_a_branch_whose_name_is_that_of_another_users_conversation_gets_the_next_free_name(
    proxy: Client, upstream: ModelServer, memory: Memory
) -> None:
    tenant = name_of(KEY, "trip", None).tenant
    theirs = memory.conversation("trip~1", user="bo", tenant=tenant)
    await theirs.append(Message.user("My own trip."))
    mine = NAMED | KEY | {"x-remanence-user": "ana"}
    for answer in ("One.", "Two.", "Three."):
        upstream.script(Reply(answer))
        response = await proxy.http.post(
            "openai/v1/chat/completions",
            json={"model": "m", "messages": [user("Tell me a number.")]},
            headers=mine,
        )
        assert response.headers["x-remanence-memory"] == "on"

    assert [message.text for message in await theirs.messages()] == ["My own trip."]
    states = await memory.conversations()
    tapes = {
        state.ref.id: [
            message.text
            for message in await memory.conversation(
                state.ref.id, user="ana", tenant=tenant
            ).messages()
        ]
        for state in states
        if state.user == "ana"
    }
    assert tapes == {
        "trip": ["Tell me a number.", "One."],
        "trip~2": ["Tell me a number.", "Two."],
        "trip~3": ["Tell me a number.", "Three."],
    }


async def test_a_turn_under_a_wrong_key_is_kept_and_answered_by_the_next_request_with_a_right_one(
    upstream: ModelServer, memory: Memory
) -> None:
    ours = {"x-remanence-key": (await memory.keys.create("app", tenant="acme")).token}
    app = create_app(memory, auth=by_key(memory.keys), openai_url=upstream.url)
    body = {"model": "m", "messages": [user("Which gate?")]}
    async with served(app) as proxy:
        upstream.script(Fail(401), Reply("Gate B42."))
        statuses = [
            (
                await proxy.http.post(
                    "openai/v1/chat/completions",
                    json=body,
                    headers=NAMED | ours | {"authorization": f"Bearer {key}"},
                )
            ).status_code
            for key in ("wrong", "right")
        ]

    trip = memory.conversation("trip", tenant="acme")
    assert statuses == [401, 200]
    assert [message.text for message in await trip.messages()] == ["Which gate?", "Gate B42."]


@pytest.mark.parametrize(
    ("name", "scheme"),
    [
        ("api-key", ""),
        ("x-goog-api-key", ""),
        ("x-other", ""),
        ("authorization", "Token "),
        ("authorization", "Bearer\t"),
        ("cookie", "session=1; key="),
    ],
)
async def test_a_key_of_this_server_is_not_sent_to_the_provider_in_any_header(
    upstream: ModelServer, memory: Memory, name: str, scheme: str
) -> None:
    token = (await memory.keys.create("app", tenant="acme")).token
    app = create_app(memory, auth=by_key(memory.keys), openai_url=upstream.url, openai_key="theirs")
    body = {"model": "m", "messages": [user("Which gate?")]}
    headers = NAMED | {"x-remanence-key": token, name: f"{scheme}{token}"}
    async with served(app) as proxy:
        upstream.script(Reply("B42."))
        await proxy.http.post("openai/v1/chat/completions", json=body, headers=headers)

    (request,) = upstream.received
    assert token not in str(request.headers)
    assert request.headers["authorization"] == "Bearer theirs"


@pytest.mark.parametrize("has_keys", [True, False])
async def test_results_of_batches_are_read_through_a_proxy_with_keys(
    upstream: ModelServer, memory: Memory, *, has_keys: bool
) -> None:
    """Anthropic's clients follow the link with their key, which is one of this server."""
    path = "v1/messages/batches/b1/cancel"
    upstream.dialects[f"/{path}"] = upstream.dialects["/v1/messages"]
    token = (await memory.keys.create("app", tenant="acme")).token
    app = create_app(memory, auth=by_key(memory.keys), anthropic_url=upstream.url)
    if not has_keys:
        app = create_app(memory, anthropic_url=upstream.url)
    batch = {"id": "b1", "results_url": f"{upstream.url}/v1/messages/batches/b1/results"}
    upstream.script(Raw((json.dumps(batch),)))
    async with served(app) as proxy:
        body = {"model": "m", "max_tokens": 9, "messages": [user("Which gate?")]}
        response = await proxy.http.post(
            f"anthropic/{path}", json=body, headers={"x-api-key": token}
        )

    own = {"results_url": "/v1/messages/batches/b1/results"} if has_keys else {}
    assert response.json() == {**batch, **own}


@pytest.mark.parametrize("has_keys", [True, False])
@pytest.mark.parametrize("encoding", ["gzip", "deflate", "br"])
async def test_a_compressed_answer_about_a_batch_passes_whole(
    upstream: ModelServer, memory: Memory, *, encoding: Any, has_keys: bool
) -> None:
    path = "v1/messages/batches/b1/cancel"
    upstream.dialects[f"/{path}"] = upstream.dialects["/v1/messages"]
    key = {"x-api-key": (await memory.keys.create("app", tenant="acme")).token}
    auth = by_key(memory.keys) if has_keys else None
    link = {"results_url": f"{upstream.url}/v1/messages/batches/b1/results"}
    text = "¿A qué hora sale el barco? " * 20
    upstream.script(Compressed(encoding, Reply(text, calls=(Call("c1", "look", link),))))
    body = {"model": "m", "max_tokens": 9, "messages": [user("Which gate?")]}
    async with (
        served(create_app(memory, auth=auth, anthropic_url=upstream.url)) as proxy,
        proxy.http.stream("POST", f"anthropic/{path}", json=body, headers=key) as response,
    ):
        raw = b"".join([piece async for piece in response.aiter_raw()])

    is_read = has_keys and encoding != "br"
    assert len(raw) == int(response.headers["content-length"])
    assert response.headers.get("content-encoding") == (None if is_read else encoding)
    answer = json.loads(raw if is_read else zlib.decompress(raw, zlib.MAX_WBITS | 32))
    assert answer["content"][0]["text"] == text
    assert answer["content"][1]["input"]["results_url"].startswith("/") is is_read


@pytest.mark.parametrize("value", ["köln".encode(), "köln".encode("latin-1")])
async def test_a_header_passes_in_whatever_bytes_it_has(
    proxy: Client, upstream: ModelServer, value: bytes
) -> None:
    body = json.dumps({"model": "m", "messages": [user("Which gate?")]})
    headers = [(b"x-team", value), (b"content-type", b"application/json")]
    response = await proxy.http.post("openai/v1/chat/completions", content=body, headers=headers)

    (request,) = upstream.received
    assert response.status_code == 200
    assert request.headers["x-team"].encode("latin-1") == value


async def test_a_server_without_proxies_passes_nothing_on(
    upstream: ModelServer, memory: Memory
) -> None:
    app = create_app(memory, openai_url=upstream.url, openai_key="theirs", proxies=False)
    async with served(app) as service:
        response = await service.http.post("openai/v1/chat/completions", json={})
        document = (await service.http.get("openapi.json")).json()

    assert response.status_code == 404
    assert "this server has no proxies" in response.json()["detail"]
    assert not [path for path in document["paths"] if path.startswith("/openai/")]
    assert not upstream.received


async def test_another_answer_to_the_same_question_is_a_branch(
    proxy: Client, upstream: ModelServer, memory: Memory
) -> None:
    for answer in ("One.", "Two.", "Three."):
        await ask(proxy, [user("Tell me a number.")], answer, upstream)
    await ask(
        proxy, [user("Tell me a number."), assistant("Two."), user("Why?")], "It is even.", upstream
    )
    assert await all_tapes(memory) == {
        "trip": ["Tell me a number.", "One."],
        "trip~1": ["Tell me a number.", "Two.", "Why?", "It is even."],
        "trip~2": ["Tell me a number.", "Three."],
    }


async def test_what_a_client_adds_to_an_answer_makes_no_branch(
    proxy: Client, upstream: ModelServer, memory: Memory
) -> None:
    """LiteLLM resends fields of its own, and fills in the empty text beside a call."""
    history = [user("Which gate?")]
    await ask(proxy, history, "B42.", upstream)
    history += [{**assistant("B42."), "provider_specific_fields": {"refusal": None}}, user("Why?")]
    upstream.script(Reply("", calls=(Call("call-1", "find"),)))
    await ask(proxy, history, None, upstream)
    call = {"id": "call-1", "type": "function", "function": {"name": "find", "arguments": "{}"}}
    result = {"role": "tool", "tool_call_id": "call-1", "content": "It is open."}
    history += [{**assistant("[no text]"), "tool_calls": [call]}, result]
    await ask(proxy, history, "It is open.", upstream)

    assert len(await only_tape(memory)) == len(history) + 1


async def test_a_history_without_its_beginning_continues_the_tape(
    proxy: Client, upstream: ModelServer, memory: Memory
) -> None:
    question = LONG.format(7) * 2
    history = [user("Which gate?"), assistant("B42."), user(question)]
    await ask(proxy, history, "14C.", upstream)
    await ask(proxy, [*history[2:], assistant("14C."), user("Window?")], "Yes.", upstream)
    assert await all_tapes(memory) == {
        "trip": ["Which gate?", "B42.", question, "14C.", "Window?", "Yes."]
    }


async def test_a_history_without_its_beginning_is_known_by_the_call_of_a_tool(
    proxy: Client, upstream: ModelServer, memory: Memory
) -> None:
    call = Call("call_8Fq2Zk", "find")
    upstream.script(Reply("", calls=(call,)))
    await ask(proxy, [user("Hi."), assistant("Hello!"), user("Where?")], None, upstream)
    function = {"name": "find", "arguments": "{}"}
    window = [
        {
            **assistant(""),
            "tool_calls": [{"id": call.id, "type": "function", "function": function}],
        },
        {"role": "tool", "tool_call_id": call.id, "content": "Pier 3."},
    ]
    await ask(proxy, [user("Where?"), *window], "At pier 3.", upstream)
    await ask(proxy, [*window, assistant("At pier 3."), user("When?")], "At nine.", upstream)

    tapes = await all_tapes(memory)
    assert [len(tape) for tape in tapes.values()] == [8]


async def test_a_greeting_is_not_enough_to_continue_a_tape(
    proxy: Client, upstream: ModelServer, memory: Memory
) -> None:
    """Where two people share a name, none of them gets the notes of the other."""
    ana: list[dict[str, Any]] = []
    for number in range(12):
        ana.append(user(LONG.format(number) * 2))
        await ask(proxy, ana, "Noted.", upstream)
        ana.append(assistant("Noted."))
    greeting = [user("Hi"), assistant("Hello! How can I help you today?")]
    await ask(proxy, [*ana, greeting[0]], greeting[1]["content"], upstream)
    await observe_all(memory)

    asked = [*greeting, user("What do you know of me?")]
    await ask(proxy, asked, "Nothing.", upstream)

    assert "island" not in json.dumps(upstream.received[-1].body)
    assert len((await all_tapes(memory))["trip"]) == 26


@pytest.mark.parametrize("place", ["beginning", "first message", "middle"])
async def test_what_a_client_put_beside_an_old_history_reaches_the_provider(
    proxy: Client, upstream: ModelServer, memory: Memory, place: str
) -> None:
    """Such as a summary of its own: the tape goes on, and its notes cannot tell it."""
    history: list[dict[str, Any]] = []
    for number in range(12):
        history.append(user(LONG.format(number) * 2))
        await ask(proxy, history, "Noted.", upstream)
        history.append(assistant("Noted."))
        await observe_all(memory)
    own = user("Summary: Ana asked for piers.")
    replaced = {"beginning": slice(0, -14), "first message": slice(0, 1), "middle": slice(4, 4)}
    history[replaced[place]] = [own]

    await ask(proxy, [*history, user("And now?")], "Pier 3.", upstream)

    sent = upstream.received[-1].body["messages"]
    assert sent.count(own) == 1
    assert sent[0]["role"] == "system"
    shown = sent[sent.index(own) + 1 : -1]
    assert shown == history[-len(shown) :], "then the newest, as the client sent them"
    assert len(await only_tape(memory)) == 26


async def test_a_turn_that_a_client_takes_out_does_not_bring_the_old_ones_back(
    proxy: Client, upstream: ModelServer, memory: Memory
) -> None:
    history: list[dict[str, Any]] = []
    for number in range(14):
        history.append(user(LONG.format(number) * 2))
        await ask(proxy, history, f"Noted {number}.", upstream)
        history.append(assistant(f"Noted {number}."))
        await observe_all(memory)
    usual = len(upstream.received[-1].body["messages"])
    del history[12:14]

    await ask(proxy, [*history, user("And now?")], "Pier 3.", upstream)

    sent = upstream.received[-1].body["messages"]
    assert len(sent) <= usual + 2


async def test_a_history_without_its_beginning_brings_no_forgotten_message_back(
    proxy: Client, upstream: ModelServer, memory: Memory
) -> None:
    history = [user("Hello."), assistant("Hi."), user("My code is 8814."), assistant("Noted.")]
    question = LONG.format(7) * 2
    await ask(proxy, [*history, user(question)], "B42.", upstream)
    (state,) = await memory.conversations()
    chat = memory.conversation(state.ref.id, tenant=state.ref.tenant)
    (secret,) = await chat.messages(after=2, limit=1)
    assert secret.id is not None
    await chat.forget(secret.id)

    resent = [*history[2:], user(question), assistant("B42."), user("And the seat?")]
    await ask(proxy, resent, "14C.", upstream)

    said = ["Hello.", "Hi.", "[forgotten]", "Noted.", question, "B42.", "And the seat?"]
    assert await all_tapes(memory) == {"trip": [*said, "14C."]}


async def test_an_answer_that_the_client_shortened_is_the_same_answer(
    proxy: Client, upstream: ModelServer, memory: Memory
) -> None:
    await ask(proxy, [user("Which gate?")], "B42. Have a good flight!", upstream)
    resent = [user("Which gate?"), assistant("B42."), user("And the seat?")]
    await ask(proxy, resent, "14C.", upstream)
    await ask(proxy, [*resent, assistant("14C."), user("Window?")], "Yes.", upstream)
    assert await all_tapes(memory) == {
        "trip": [
            "Which gate?",
            "B42. Have a good flight!",
            "And the seat?",
            "14C.",
            "Window?",
            "Yes.",
        ]
    }


async def test_a_request_for_a_title_is_not_of_the_conversation(
    proxy: Client, upstream: ModelServer, memory: Memory
) -> None:
    await ask(proxy, [user("Which gate?")], "B42.", upstream)
    response = await ask(proxy, [user("Write a title for this chat: gates")], "Gates", upstream)
    assert "name a new conversation" in response.headers["x-remanence-memory"]
    assert await all_tapes(memory) == {"trip": ["Which gate?", "B42."]}


async def test_a_request_that_tries_a_key_is_not_of_a_conversation(
    proxy: Client, upstream: ModelServer, memory: Memory
) -> None:
    upstream.script(Reply("Hi."))
    async with anthropic_client(proxy) as client:
        raw = await client.with_options(
            default_headers={"x-remanence-conversation": "trip"}
        ).messages.with_raw_response.create(
            model="m", max_tokens=1, messages=[{"role": "user", "content": "quota"}]
        )
    body = {"model": "m", "max_completion_tokens": 16, "messages": [user("quota")]}
    upstream.script(Reply("Hi."))
    newer = await proxy.http.post(
        "/openai/v1/chat/completions", json=body, headers={"x-remanence-conversation": "trip"}
    )
    assert raw.headers["x-remanence-memory"].startswith("off; max_tokens=1 leaves no room")
    assert "max_completion_tokens=16 leaves no room" in newer.headers["x-remanence-memory"]
    assert await all_tapes(memory) == {}


async def test_a_client_of_openai_shows_what_is_wrong_with_its_key(memory: Memory) -> None:
    app = create_app(memory, auth=by_key(memory.keys))
    async with served(app) as proxy, openai_client(proxy) as client:
        with pytest.raises(openai.AuthenticationError, match="no valid key: send one in"):
            await client.models.list()


@pytest.mark.parametrize("content", ["", " \n", None])
async def test_an_empty_answer_does_not_end_the_memory(
    proxy: Client, upstream: ModelServer, memory: Memory, content: str | None
) -> None:
    empty = {"role": "assistant", "content": content}
    history: list[dict[str, Any]] = [user("Which gate?"), empty]
    for number in range(12):
        history.append(user(LONG.format(number) * 2))
        response = await ask(proxy, history, "Noted.", upstream)
        assert response.headers["x-remanence-memory"] == "on"
        history.append(assistant("Noted."))
        sent = upstream.received[-1].body["messages"]
        assert (empty in sent) == (user("Which gate?") in sent), "as the client sent them"
        await observe_all(memory)
    assert sent[0]["role"] == "system"
    assert await only_tape(memory) == [one["content"] for one in history if one is not empty]


@pytest.mark.parametrize(
    ("headers", "text"),
    [
        (
            {"x-claude-code-session-id": "s"},
            "CRITICAL: Respond with TEXT ONLY. Do NOT call any tools.\n\nSummarize.",
        ),
        (
            {"session-id": "s", "x-codex-turn-metadata": '{"request_kind": "compaction"}'},
            "Summarize.",
        ),
    ],
)
async def test_a_client_that_compacts_its_history_gets_its_summary_of_all_of_it(
    proxy: Client, upstream: ModelServer, memory: Memory, headers: Any, text: str
) -> None:
    history = [user("Which gate?")]
    headers = {**headers, "x-remanence-conversation": ""}
    turn = {**headers, "x-codex-turn-metadata": '{"request_kind": "turn"}'}
    await ask(proxy, history, "B42.", upstream, **turn)
    history += [assistant("B42."), user(text)]
    response = await ask(proxy, history, "They spoke of gates.", upstream, **headers)

    assert "asks for a summary" in response.headers["x-remanence-memory"]
    assert upstream.received[-1].body["messages"] == history
    assert await all_tapes(memory) == {"s": ["Which gate?", "B42."]}


async def test_a_prompt_without_content_stays_beside_its_message(
    proxy: Client, upstream: ModelServer, memory: Memory
) -> None:
    """Claude Code sends one after it has compacted its history."""
    empty = {"role": "system", "content": []}
    history: list[dict[str, Any]] = [user("Which gate?")]
    for number in range(12):
        reply = LONG.format(number) * 2
        await ask(proxy, [*history, empty], reply, upstream)
        history += [empty, assistant(reply), user(f"And boat {number}?")]
        await observe_all(memory)
    response = await ask(proxy, history, "Pier 12.", upstream)
    sent = upstream.received[-1].body["messages"]

    assert response.headers["x-remanence-memory"] == "on"
    assert len(sent) < len(history)
    assert empty in sent
    assert sent[-1]["content"][0]["text"] == "And boat 11?"
    assert len(await only_tape(memory)) == 26


@pytest.mark.parametrize("name", ["api-key", "x-goog-api-key"])
@pytest.mark.parametrize(
    "beside", [{}, {"authorization": "Bearer shared"}], ids=["alone", "beside"]
)
async def test_keys_in_the_headers_of_other_providers_reach_memories_of_their_own(
    proxy: Client, upstream: ModelServer, memory: Memory, name: str, beside: dict[str, str]
) -> None:
    """Azure's and Google's clients use them."""
    body = {"model": "m", "messages": [user("Which gate?")]}
    for key in ("one", "other", "one"):
        upstream.script(Reply("B42."))
        headers = {"x-remanence-conversation": "trip", name: key, **beside}
        await proxy.http.post("openai/v1/chat/completions", json=body, headers=headers)

    states = await memory.conversations()
    assert len({state.ref.tenant for state in states}) == 2


async def test_another_key_reaches_another_memory(
    proxy: Client, upstream: ModelServer, memory: Memory
) -> None:
    await ask(proxy, [user("Which gate?")], "B42.", upstream)
    await ask(proxy, [user("Which gate?")], "None.", upstream, authorization="Bearer other")
    states = await memory.conversations()
    assert [state.ref.id for state in states] == ["trip", "trip"]
    assert len({state.ref.tenant for state in states}) == 2
    assert "key-of-a" not in repr(states)


@pytest.mark.parametrize(
    "headers", [{}, {**NAMED, "x-remanence-memory": "off"}], ids=["no name", "off"]
)
@pytest.mark.parametrize("path", ["openai/v1/chat/completions", "anthropic/v1/messages"])
async def test_without_memory_bytes_pass_unchanged_both_ways(
    proxy: Client, upstream: ModelServer, memory: Memory, path: str, headers: dict[str, str]
) -> None:
    content = json.dumps(
        {"model": "m", "max_tokens": 99, "new": [1.0], "messages": [user("é")], "stream": True},
        indent=1,
    ).encode()
    sent = {"authorization": "Bearer k", "content-type": "application/json", **headers}
    response = await proxy.http.post(path, content=content, headers=sent)
    direct = await proxy.http.post(
        f"{upstream.url}/{path.partition('/')[2]}", content=content, headers=sent
    )
    assert response.status_code == 200
    assert response.content == direct.content
    assert response.headers["x-remanence-memory"].startswith("off; ")
    assert upstream.received[0].raw == upstream.received[1].raw == content
    assert upstream.received[0].headers["authorization"] == "Bearer k"
    assert not any(name.startswith("x-remanence") for name in upstream.received[0].headers)
    assert await memory.conversations() == ()


@pytest.mark.parametrize("name", ["meta%2Fllama-3", "a%3Fb%23c%25", "caf%C3%A9", "ft:gpt@1+x"])
async def test_the_name_of_a_model_in_a_path_arrives_as_it_was_sent(
    proxy: Client, upstream: ModelServer, name: str
) -> None:
    await proxy.get(f"openai/v1/models/{name}?limit=1")
    await proxy.get(f"anthropic/v1/models/{name}")

    assert [received.path for received in upstream.received] == [f"/v1/models/{name}"] * 2


@pytest.mark.parametrize("path", ["openai", "openai/v1", "anthropic", "anthropic/v1"])
async def test_a_probe_of_a_base_url_reaches_the_provider(
    proxy: Client, upstream: ModelServer, path: str
) -> None:
    await proxy.http.head(path)

    (request,) = upstream.received
    assert (request.method, request.path) == ("HEAD", f"/{path.partition('/')[2]}")


@pytest.mark.parametrize("query", ["after=a%20b&flag", "ids=a%2Cb&ids=c+d", "q=%C3%A9&include[]=x"])
async def test_a_query_arrives_as_it_was_sent(
    proxy: Client, upstream: ModelServer, query: str
) -> None:
    await proxy.get(f"openai/v1/files?{query}")

    assert [received.query for received in upstream.received] == [query]


async def test_an_error_of_the_provider_passes_with_its_headers(
    proxy: Client, upstream: ModelServer
) -> None:
    passed = {"retry-after": "7", "x-request-id": "req_1"}
    headers = {**passed, "Date": "Mon, 04 May 2026 08:00:00 GMT"}
    upstream.script(Fail(429, "slow down", "rate_limit_error", headers))
    response = await ask(proxy, [user("Which gate?")], None, upstream)
    assert response.status_code == 429
    assert passed.items() <= dict(response.headers).items()
    assert len(response.headers.get_list("date")) == 1
    assert response.json()["error"]["message"] == "slow down"


async def test_a_cookie_goes_neither_to_the_provider_nor_to_another_client(
    proxy: Client, upstream: ModelServer
) -> None:
    upstream.script(Fail(429, "slow down", "rate_limit_error", {"Set-Cookie": "of=a; Path=/"}))
    refused = await ask(proxy, [user("Which gate?")], None, upstream)
    other = {"authorization": "Bearer other", "cookie": "login=1"}
    await ask(proxy, [user("Which gate?")], "B42.", upstream, stream=False, **other)

    assert "set-cookie" not in refused.headers
    assert not any("cookie" in received.headers for received in upstream.received)


async def test_headers_of_the_origin_of_the_provider_do_not_reach_the_client(
    proxy: Client, upstream: ModelServer
) -> None:
    of_origin = {
        "Alt-Svc": 'h3=":443"',
        "Strict-Transport-Security": "max-age=1",
        "Access-Control-Allow-Origin": "*",
        "Access-Control-Allow-Credentials": "true",
    }
    upstream.script(Fail(429, "slow down", "rate_limit_error", of_origin))
    refused = await ask(proxy, [user("Which gate?")], None, upstream)

    assert refused.status_code == 429
    assert not {name.lower() for name in of_origin} & set(refused.headers)


async def test_headers_that_connection_names_pass_in_neither_direction(
    proxy: Client, upstream: ModelServer
) -> None:
    named = {"Connection": "close, X-Hop", "X-Hop": "1", "X-End": "1"}
    upstream.script(Fail(429, "slow down", "rate_limit_error", named))
    refused = await ask(proxy, [user("Which gate?")], None, upstream, stream=False, **named)

    for headers in (refused.headers, upstream.received[0].headers):
        assert "x-end" in headers
        assert "x-hop" not in headers


async def test_a_provider_that_cannot_be_reached_is_named_and_its_address_is_only_in_the_log(
    memory: Memory, caplog: pytest.LogCaptureFixture
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    app = create_app(memory, openai_url=f"http://127.0.0.1:{port}")
    async with served(app) as proxy, openai_client(proxy) as client:
        with pytest.raises(openai.InternalServerError) as caught:
            await client.models.list()
    assert "the upstream of /openai/v1 did not answer: ConnectError" in str(caught.value)
    assert "check --openai-url or create_app(openai_url=…), whose address is" in str(caught.value)
    assert str(port) not in str(caught.value)
    assert f"http://127.0.0.1:{port} did not answer: ConnectError" in caplog.text


async def test_an_unreachable_provider_is_named_in_the_form_of_anthropic(memory: Memory) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    app = create_app(memory, anthropic_url=f"http://127.0.0.1:{port}")
    async with served(app) as proxy, anthropic_client(proxy) as client:
        with pytest.raises(anthropic.InternalServerError, match="of /anthropic/v1 did") as caught:
            await client.models.list()
    assert "check --anthropic-url" in str(caught.value)
    assert isinstance(caught.value.body, dict)
    assert caught.value.body["error"]["type"] == "upstream_unreachable"


@pytest.mark.parametrize("path", ["chat/completions", "responses"])
async def test_a_stream_that_breaks_off_breaks_its_clients_connection(
    proxy: Client, upstream: ModelServer, caplog: pytest.LogCaptureFixture, path: str
) -> None:
    upstream.script("broken off")
    asked = {"model": "gpt-5", "stream": True, "messages": [user("Which gate?")], "input": "Gate?"}
    async with proxy.http.stream("POST", f"openai/v1/{path}", json=asked) as response:
        lines = response.aiter_lines()
        first = await anext(lines)
        with pytest.raises(httpx2.RemoteProtocolError):
            await anext(line async for line in lines if "error" in line)

    assert response.status_code == 200
    assert first.startswith(("data:", "event:"))
    assert f"{upstream.url} broke off its answer" in caplog.text


async def test_the_url_of_a_provider_may_end_with_v1(memory: Memory, upstream: ModelServer) -> None:
    app = create_app(memory, openai_url=f"{upstream.url}/v1/")
    async with served(app) as proxy, openai_client(proxy) as client:
        answer = await client.chat.completions.create(
            model="gpt-5", messages=[{"role": "user", "content": "Hello."}]
        )
    assert answer.choices


async def test_a_password_in_the_url_of_a_provider_is_refused_and_not_repeated(
    memory: Memory,
) -> None:
    with pytest.raises(InvalidArgument, match="anthropic_url has a user or password") as caught:
        create_app(memory, anthropic_url="http://reader:hunter2@127.0.0.1:9")
    assert "hunter2" not in str(caught.value)


@pytest.mark.parametrize("base", ["anthropic", "anthropic/v1"])
async def test_the_vercel_ai_sdk_which_appends_messages_may_have_a_base_url_with_or_without_v1(
    proxy: Client, upstream: ModelServer, memory: Memory, base: str
) -> None:
    upstream.script(Reply("B42."))
    body = {"model": "m", "max_tokens": 900, "messages": [user("Which gate?")]}
    response = await proxy.http.post(f"{base}/messages", json=body, headers=NAMED)

    assert response.status_code == 200
    assert upstream.received[0].path == "/v1/messages"
    assert await all_tapes(memory) == {"trip": ["Which gate?", "B42."]}


async def test_a_provider_without_a_url_is_refused(memory: Memory) -> None:
    with pytest.raises(
        InvalidArgument, match=r"openai_url='api\.openai\.com' is impossible: use a URL"
    ):
        create_app(memory, openai_url="api.openai.com")


@pytest.mark.parametrize("trouble", ["broken off", "error event", "ends early", "reset", "garbage"])
async def test_a_broken_answer_is_not_stored_and_the_next_request_goes_on(
    proxy: Client, upstream: ModelServer, memory: Memory, trouble: Trouble
) -> None:
    upstream.script(trouble)
    with contextlib.suppress(httpx2.HTTPError):
        await ask(proxy, [user("Which gate?")], None, upstream, stream=True)
    await ask(proxy, [user("Which gate?")], "B42.", upstream)
    assert await all_tapes(memory) == {"trip": ["Which gate?", "B42."]}


async def test_an_answer_with_an_event_that_cannot_be_read_is_not_stored_in_part(
    proxy: Client, upstream: ModelServer, memory: Memory
) -> None:
    deltas: tuple[Any, ...] = {"content": "Gate "}, {"tool_calls": [{}]}, {"content": "B42."}, {}
    begin, wrong, rest, end = (json.dumps({"choices": [{"index": 0, "delta": d}]}) for d in deltas)
    end = end.replace('"index"', '"finish_reason": "stop", "index"')
    padding = json.dumps({"padding": "x" * 1_000_000})  # what follows arrives in other pieces
    upstream.script(Raw((begin, wrong, padding, rest, end)))
    response = await ask(proxy, [user("Which gate?")], None, upstream, stream=True)

    assert rest in response.text
    assert await all_tapes(memory) == {"trip": ["Which gate?"]}


async def test_a_client_that_leaves_ends_the_call_of_the_provider(
    proxy: Client, upstream: ModelServer, memory: Memory
) -> None:
    held = Held(Reply("Gate B42."))
    upstream.script(held)
    body = {"model": "m", "messages": [user("Which gate?")], "stream": True}
    async with proxy.http.stream(
        "POST", "openai/v1/chat/completions", json=body, headers=NAMED
    ) as response:
        await anext(response.aiter_raw())
    async with asyncio.timeout(60):
        while upstream.at_once:
            await asyncio.sleep(0.01)
            held.gate.set()
    assert await all_tapes(memory) == {"trip": ["Which gate?"]}


@pytest.mark.parametrize("stream", [False, True])
async def test_a_client_that_leaves_before_the_answer_begins_ends_the_call_of_the_provider(
    memory: Memory, *, stream: bool
) -> None:
    asked, ended = asyncio.Event(), asyncio.Event()

    async def never_answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        asked.set()
        while await reader.read(10_000):
            pass
        ended.set()
        writer.close()

    body = {"model": "m", "messages": [user("Which gate?")], "stream": stream}
    async with asyncio.timeout(30), await asyncio.start_server(never_answer, "127.0.0.1") as server:
        app = create_app(
            memory, openai_url=f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
        )
        async with served(app) as proxy:
            asking = asyncio.create_task(
                proxy.http.post("openai/v1/chat/completions", json=body, headers=NAMED)
            )
            await asked.wait()
            asking.cancel()
            await ended.wait()

    assert await all_tapes(memory) == {"trip": ["Which gate?"]}


@pytest.mark.parametrize(
    "content",
    [b"", b"{", b"[]", b'{"messages": 1}', b'{"messages": [1]}', b'{"messages": []}', b"[" * 9_999],
)
async def test_what_cannot_be_read_is_sent_on_as_it_is(
    proxy: Client, upstream: ModelServer, content: bytes
) -> None:
    response = await proxy.http.post("openai/v1/chat/completions", content=content, headers=NAMED)
    assert response.headers["x-remanence-memory"].startswith("off; ")
    assert upstream.received[0].raw == content


async def test_a_compressed_body_is_sent_on_as_it_is_and_the_response_says_so(
    proxy: Client, upstream: ModelServer
) -> None:
    content = gzip.compress(json.dumps({"model": "m", "messages": [user("Hi.")]}).encode())
    response = await proxy.http.post(
        "openai/v1/chat/completions", content=content, headers={**NAMED, "content-encoding": "gzip"}
    )

    assert response.headers["x-remanence-memory"].startswith("off; the body is compressed (gzip)")
    assert upstream.received[0].raw == content
    assert upstream.received[0].headers["content-encoding"] == "gzip"


VALID: dict[str, dict[str, Any]] = {
    "openai/v1/chat/completions": {
        "model": "m",
        "max_tokens": 900,
        "messages": [
            {"role": "system", "content": "You help."},
            {"role": "user", "content": [{"type": "text", "text": "Which gate?"}]},
            {
                "role": "assistant",
                "content": None,
                "tool_calls": [
                    {"id": "c", "type": "function", "function": {"name": "f", "arguments": "{}"}}
                ],
            },
            {"role": "tool", "tool_call_id": "c", "content": "B42"},
        ],
        "tools": [{"type": "function", "function": {"name": "f"}}],
    },
    "openai/v1/responses": {
        "model": "m",
        "input": [
            {"role": "user", "content": [{"type": "input_text", "text": "Which gate?"}]},
            {"type": "function_call", "call_id": "c", "name": "f", "arguments": "{}"},
            {"type": "function_call_output", "call_id": "c", "output": "B42"},
        ],
    },
    "anthropic/v1/messages": {
        "model": "m",
        "max_tokens": 900,
        "metadata": {"user_id": "u"},
        "messages": [
            {"role": "user", "content": [{"type": "text", "text": "Which gate?"}]},
            {
                "role": "assistant",
                "content": [{"type": "tool_use", "id": "c", "name": "f", "input": {}}],
            },
            {
                "role": "user",
                "content": [{"type": "tool_result", "tool_use_id": "c", "content": "B42"}],
            },
        ],
    },
}
WRONG: list[Any] = [
    None,
    True,
    -1,
    1e308,
    "",
    "user",
    "\ud800",
    "\0",
    [],
    {},
    [[]],
    [None],
    {"a": 1},
]


@pytest.mark.parametrize("path", VALID)
async def test_a_request_with_anything_anywhere_in_it_is_answered(
    proxy: Client, upstream: ModelServer, path: str
) -> None:
    random = Random(path)
    for _ in range(150):
        body = copy.deepcopy(VALID[path])
        for _ in range(random.choice((1, 1, 2, 5))):
            spoil(body, random)
        content = json.dumps(body).encode()
        upstream.script(Fail(400))  # as it may be no valid request
        response = await proxy.http.post(path, content=content, headers=NAMED)
        assert response.headers["x-remanence-memory"], "it was sent on"
        if response.headers["x-remanence-memory"] != "on":
            assert upstream.received[-1].raw == content


def spoil(body: Any, random: Random) -> None:
    """Replace a value, or take it away, somewhere in a request."""
    while True:
        keys = list(body) if isinstance(body, dict) else list(range(len(body)))
        if not keys:
            return
        key = random.choice(keys)
        if not isinstance(body[key], dict | list) or random.random() < 0.3:
            break
        body = body[key]
    if random.random() < 0.2:
        del body[key]
    else:
        body[key] = copy.deepcopy(random.choice(WRONG))


async def test_a_memory_that_fails_leaves_the_request_as_it_is(
    upstream: ModelServer, tmp_path: Path
) -> None:
    database = tmp_path / "memory.db"
    async with Memory.open(f"sqlite:///{database}") as memory:
        app = create_app(memory, openai_url=upstream.url)
        async with served(app) as proxy:
            await ask(proxy, [user("Which gate?")], "B42.", upstream)
            with closing(apsw.Connection(str(database))) as other:
                other.execute("DROP TABLE messages")
            history = [user("Which gate?"), assistant("B42."), user("When?")]
            response = await ask(proxy, history, "At nine.", upstream)
    assert response.json()["choices"][0]["message"]["content"] == "At nine."
    assert response.headers["x-remanence-memory"].startswith("off; ")
    assert upstream.received[-1].body["messages"] == history


async def test_conversations_without_names_are_known_by_their_messages(
    upstream: ModelServer, memory: Memory
) -> None:
    async with served(create_app(memory, openai_url=upstream.url, recognize=True)) as proxy:

        async def say(messages: list[dict[str, Any]], answer: str, key: str = "a") -> None:
            upstream.script(Reply(answer))
            body, headers = {"model": "m", "messages": messages}, {"authorization": key}
            await proxy.http.post("openai/v1/chat/completions", json=body, headers=headers)

        gate, hotel = [user("Hi.")], [user("Hi.")]
        await say(gate, "Hello!")
        await say(hotel, "Good day!")
        gate += [assistant("Hello!"), user("Which gate?")]
        hotel += [assistant("Good day!"), user("Which hotel?")]
        await say(hotel, "Astoria.")
        await say(gate, "B42.")
        await say([user("Hello there.")], "Hi!")
        known = await all_tapes(memory)
        await say([user("Hi."), assistant("Hello!"), user("Which gate?")], "None.", key="b")
    assert sorted(known.values()) == [
        ["Hello there.", "Hi!"],
        ["Hi.", "Good day!", "Which hotel?", "Astoria."],
        ["Hi.", "Hello!", "Which gate?", "B42."],
    ]
    assert len(await memory.conversations()) == 4


@pytest.mark.parametrize(
    ("headers", "body", "name"),
    [
        ({"x-claude-code-session-id": "s1"}, {}, "s1"),
        ({"x-claude-code-session-id": "s1", "x-claude-code-agent-id": "a"}, {}, "s1:a"),
        ({"session-id": "c1"}, {}, "c1"),
        ({"x-acme-session-id": "z"}, {}, "z"),
        ({"x-openwebui-chat-id": "w"}, {}, "w"),
        ({"x-remanence-conversation": "ours", "session-id": "c1"}, {}, "ours"),
        ({"x-client-request-id": "r1", "traceparent": "00-1"}, {}, None),
        ({}, {"conversation": {"id": "conv_1"}}, "conv_1"),
        ({}, {"metadata": {"thread_id": "t"}}, "t"),
        ({}, {"metadata": {"user_id": '{"session_id": "s2", "device_id": "d"}'}}, "s2"),
        ({}, {"metadata": {"user_id": "user_1_account__session_s3"}}, "s3"),
        ({}, {"metadata": {"user_id": "someone"}}, None),
        ({}, {"prompt_cache_key": "k"}, None),
        ({}, {"user": "u", "safety_identifier": "u"}, None),
    ],
)
def test_known_clients_name_their_conversation(
    headers: dict[str, str], body: dict[str, object], name: str | None
) -> None:
    assert conversation_of(headers, body) == name


@pytest.mark.parametrize(
    ("headers", "name"),
    [
        ({"x-remanence-user": "ana"}, "ana"),
        ({"x-openwebui-user-id": "u1"}, "u1"),
        ({"x-remanence-user": "ana", "x-openwebui-user-id": "u1"}, "ana"),
        ({"x-remanence-user": "", "x-openwebui-user-id": ""}, None),
        ({"x-openwebui-user-email": "ana@x.test"}, None),
    ],
)
def test_known_clients_name_their_user(headers: dict[str, str], name: str | None) -> None:
    assert name_of(headers, "trip", None).user == name


def user(text: str) -> dict[str, Any]:
    return {"role": "user", "content": text}


def assistant(text: str) -> dict[str, Any]:
    return {"role": "assistant", "content": text}


async def ask(
    proxy: Client,
    messages: list[dict[str, Any]],
    answer: str | None,
    upstream: ModelServer,
    *,
    stream: bool = False,
    **headers: str,
) -> httpx2.Response:
    if answer is not None:
        upstream.script(Reply(answer))
    headers = {"authorization": "Bearer key-of-a", **NAMED, **headers}
    body = {"model": "m", "messages": messages, "stream": stream}
    return await proxy.http.post("openai/v1/chat/completions", json=body, headers=headers)


async def ask_messages(
    client: anthropic.AsyncAnthropic, history: list[dict[str, Any]]
) -> dict[str, Any]:
    """Ask with a stream; the answer as the SDK puts it together."""
    async with client.messages.stream(
        model="claude-sonnet-5",
        max_tokens=900,
        messages=with_breakpoints(history),
        tools=TOOLS,
        extra_headers=NAMED,
    ) as stream:
        answer = await stream.get_final_message()
    return {"role": "assistant", "content": [block.to_dict() for block in answer.content]}


async def ask_responses(client: openai.AsyncOpenAI, items: list[Any]) -> list[Any]:
    """Ask with a stream; the items of the answer as the SDK puts them together."""
    async with client.responses.stream(model="gpt-5", input=items, extra_headers=NAMED) as stream:
        answer = await stream.get_final_response()
    return [item.to_dict(exclude_none=True) for item in answer.output]


async def references_of_answer(
    proxy: Client, items: list[Any], *, named: bool = True
) -> list[dict[str, Any]]:
    """Ask, with the memory on; the client then refers to the items of the answer."""
    response = await proxy.http.post(
        "openai/v1/responses",
        json={"model": "gpt-5", "input": items},
        headers=KEY | (NAMED if named else {}),
    )
    assert response.headers["x-remanence-memory"] == "on"
    assert response.is_success, response.text
    return [{"type": "item_reference", "id": item["id"]} for item in response.json()["output"]]


def with_breakpoints(history: list[dict[str, Any]]) -> list[Any]:
    """The history with the client's own breakpoints, which move with each request."""
    copied = copy.deepcopy(history)
    for message in copied[-2:]:
        if isinstance(message["content"], list):
            message["content"][-1]["cache_control"] = {"type": "ephemeral"}
    return copied


async def observe_all(memory: Memory) -> None:
    (state,) = await memory.conversations()
    await memory.conversation(state.ref.id, tenant=state.ref.tenant).flush()


async def all_tapes(memory: Memory) -> dict[str, list[str]]:
    tapes = {}
    for state in await memory.conversations():
        conversation = memory.conversation(state.ref.id, tenant=state.ref.tenant)
        tapes[state.ref.id] = [message.text for message in await conversation.messages()]
    return tapes


async def test_users_who_begin_with_the_same_text_are_recognised_apart(
    memory: Memory, upstream: ModelServer
) -> None:
    async with served(create_app(memory, openai_url=upstream.url, recognize=True)) as proxy:
        for user in ("ana", "bob", ""):
            history = [{"role": "user", "content": "Hi"}]
            for text in ("Hello.", "It is B42."):
                upstream.script(Reply(text))
                body = {"model": "gpt-5", "messages": history}
                headers = KEY | ({"x-remanence-user": user} if user else {})
                path = "openai/v1/chat/completions"
                response = await proxy.http.post(path, json=body, headers=headers)
                assert response.headers["x-remanence-memory"] == "on"
                history += [
                    {"role": "assistant", "content": text},
                    {"role": "user", "content": "Which gate?"},
                ]

    tapes = {state.user: state.last_seq for state in await memory.conversations()}
    assert tapes == {"ana": 4, "bob": 4, None: 4}


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize(
    ("path", "words"),  # of its JSON for the Responses API, else of its text
    [("openai/v1/chat/completions", 4), ("openai/v1/responses", 7), ("anthropic/v1/messages", 4)],
)
async def test_a_forwarded_turn_is_in_the_ledger_as_the_provider_counted_it(
    upstream: ModelServer, path: str, words: int, stream: bool
) -> None:
    said = [{"role": "user", "content": "Which gate has it?"}]
    field = "input" if path.endswith("responses") else "messages"
    options = {"stream_options": {"include_usage": True}} if path.endswith("ions") else {}
    body = {"model": "m", "max_tokens": 99, "stream": stream, field: said, **options}
    upstream.script(Reply("Gate B42."))
    budgets = [Budget(scope="conversation", hard_tokens=1)]
    async with Memory.open("sqlite:///:memory:", budgets=budgets) as memory:
        app = create_app(memory, openai_url=upstream.url, anthropic_url=upstream.url)
        async with served(app) as proxy:
            await proxy.http.post(path, json=body, headers={**KEY, **NAMED})
        [state] = await memory.conversations()
        trip = memory.conversation(state.ref.id, tenant=state.ref.tenant)
        [total], [budget] = await trip.usage(), await trip.budget()

    assert (total.purpose, total.model) == ("proxy", f"{path.partition('/')[0]}:m")
    assert (total.input_tokens, total.output_tokens, budget.spent_tokens) == (words, 2, 0)


async def test_a_forwarded_turn_is_counted_where_its_input_leaves_out_what_was_cached(
    proxy: Client, memory: Memory, upstream: ModelServer
) -> None:
    answer = {"choices": [{"index": 0, "message": {"role": "assistant", "content": "Gate B42."}}]}
    cached = {"prompt_tokens_details": {"cached_tokens": 8}}
    usage = {"prompt_tokens": 5, "completion_tokens": 1, **cached}
    upstream.script(Raw((json.dumps({**answer, "usage": usage}),)))
    body = {"model": "m", "messages": [{"role": "user", "content": "Which gate has it?"}]}
    await proxy.http.post("openai/v1/chat/completions", json=body, headers={**KEY, **NAMED})

    [total] = await memory.usage()
    assert (total.input_tokens, total.cache_read_tokens) == (8, 8)


async def test_the_ledger_keeps_the_beginning_of_a_very_long_name_of_a_model(
    proxy: Client, memory: Memory, upstream: ModelServer
) -> None:
    body = {"model": "m" * 100_000, "messages": [{"role": "user", "content": "Which gate is it?"}]}
    await proxy.http.post("openai/v1/chat/completions", json=body, headers={**KEY, **NAMED})

    [total] = await memory.usage()
    assert total.model == "openai:".ljust(200, "m")


async def test_a_call_counts_whatever_characters_the_name_of_its_model_has(
    proxy: Client, memory: Memory
) -> None:
    body = {"model": "gpt\0four", "messages": [{"role": "user", "content": "Which gate is it?"}]}
    await proxy.http.post("openai/v1/chat/completions", json=body, headers={**KEY, **NAMED})

    [total] = await memory.usage()
    assert total.model == "openai:gptfour"
