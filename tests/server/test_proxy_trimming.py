"""Clients that keep the first messages of a conversation and its newest ones."""

from collections.abc import Iterator, Sequence
from typing import Any

import pytest
from tests.server.conftest import served
from tests.slow import slow_except
from tests.wire.dialects import Call, Reply
from tests.wire.servers import ModelServer

from remanence import Memory, Message, Policy
from remanence.server.app import create_app
from remanence.server.proxy.anthropic import AnthropicMessages
from remanence.server.proxy.api import ProxiedAPI, read_units
from remanence.server.proxy.history import Histories
from remanence.server.proxy.naming import Name
from remanence.server.proxy.openai import OpenAIChat

CHAT = "openai/v1/chat/completions"
MESSAGES = "anthropic/v1/messages"
NAMED = {"x-remanence-conversation": "trip", "authorization": "Bearer key-of-a"}
APIS: dict[str, ProxiedAPI] = {CHAT: OpenAIChat(), MESSAGES: AnthropicMessages()}


def call_of(path: str, number: int) -> dict[str, Any]:
    id_, text = f"call-of-boat-{number}", f"I look up boat {number}."
    if path == CHAT:
        function = {"name": "find", "arguments": "{}"}
        calls = [{"id": id_, "type": "function", "function": function}]
        return {"role": "assistant", "content": text, "tool_calls": calls}
    call = {"type": "tool_use", "id": id_, "name": "find", "input": {}}
    return {"role": "assistant", "content": [{"type": "text", "text": text}, call]}


def result_of(path: str, number: int) -> dict[str, Any]:
    id_, text = f"call-of-boat-{number}", f"Pier {number}."
    if path == CHAT:
        return {"role": "tool", "tool_call_id": id_, "content": text}
    result = {"type": "tool_result", "tool_use_id": id_, "content": text}
    return {"role": "user", "content": [result]}


def reply_of(answer: dict[str, Any]) -> Reply:
    text, called = answer["content"], "call-of-" in str(answer)
    if not isinstance(text, str):
        text = text[0]["text"]
    number = "".join(filter(str.isdigit, text))
    return Reply(text, calls=(Call(f"call-of-boat-{number}", "find"),) if called else ())


def is_result(one: dict[str, Any]) -> bool:
    return one["role"] == "tool" or "tool_result" in str(one["content"])


def turns(path: str, count: int) -> Iterator[dict[str, Any]]:
    """The messages of so many turns; a tool is called in each third one."""
    for number in range(1, count + 1):
        yield {"role": "user", "content": f"Which pier has boat {number}?"}
        if number % 3 == 0:
            yield call_of(path, number)
            yield result_of(path, number)
        yield {"role": "assistant", "content": f"Boat {number} leaves from pier {number}."}


def trim(history: Sequence[dict[str, Any]], first: int, newest: int) -> list[dict[str, Any]]:
    """Keep the first messages and the newest ones, and no call or result without the other."""
    head, rest = [*history[:first]], history[first:]
    window = [*rest[-newest:]]
    if len(window) < len(rest):
        while window and is_result(window[0]):
            del window[0]
        while "call-of-" in str(head[-1]) and not is_result(head[-1]):
            head.pop()
    return [*head, *window]


def messages_of(api: ProxiedAPI, objects: Sequence[dict[str, Any]]) -> list[Message]:
    return [unit.message for unit in read_units(api, objects)]


@pytest.mark.parametrize("path", [CHAT, MESSAGES])
@pytest.mark.parametrize("first", slow_except(range(1, 5), [1, 4]))
async def test_each_message_is_stored_once_and_in_order_however_many_a_client_keeps(
    memory: Memory, first: int, path: str
) -> None:
    histories, api = Histories(memory), APIS[path]
    windows = range(4, 14)
    for newest in windows:
        name = Name(tenant="default", conversation=f"trip-{newest}")
        history: list[dict[str, Any]] = []
        question = None
        for one in turns(path, 8):
            if one["role"] == "assistant":
                answered = [*trim(history, first, newest), one]
                await histories.absorb(name, messages_of(api, answered), question=question)
            history.append(one)
            if one["role"] != "assistant":
                kept = trim(history, first, newest)
                question = await histories.absorb(name, messages_of(api, kept))
        tape = await memory.conversation(name.conversation).messages()
        assert [one.full_text for one in tape] == [api.read(one).full_text for one in history]

    assert len(await memory.conversations()) == len(windows), "there are no branches"


@pytest.mark.parametrize("path", [CHAT, MESSAGES])
@pytest.mark.parametrize("newest", [11, 12, 13])
async def test_a_call_right_behind_a_kept_answer_is_sent_once(
    upstream: ModelServer, newest: int, path: str
) -> None:
    policy = Policy.default(observe_tokens=200, tail_tokens=400, tail_keep_tokens=300)
    history: list[dict[str, Any]] = []
    async with Memory.open("sqlite:///:memory:", policy=policy) as memory:
        app = create_app(memory, openai_url=upstream.url, anthropic_url=upstream.url)
        async with served(app) as proxy:
            for one in turns(path, 14):
                if one["role"] == "assistant":
                    kept = trim(history, 2, newest)
                    upstream.script(reply_of(one))
                    body = {"model": "m", "max_tokens": 900, "messages": kept}
                    response = await proxy.http.post(path, json=body, headers=NAMED)
                    assert response.status_code == 200, response.text
                    assert response.headers["x-remanence-memory"] == "on"
                    for state in await memory.conversations():
                        await memory.conversation("trip", tenant=state.ref.tenant).flush()
                history.append(one)

    assert "## Conversation Memory" in str(upstream.received[-1].body)
