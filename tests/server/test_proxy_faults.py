"""The proxies under hostile clients and broken providers: no request hangs, no stored message is lost."""

import asyncio
import hashlib
import json
import re
import resource
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from random import Random
from typing import Any

import apsw
import httpx2
import pytest
from starlette.requests import ClientDisconnect, Request as Incoming
from starlette.responses import JSONResponse
from starlette.types import Receive, Scope, Send
from tests.server.conftest import Client, memory_on, served
from tests.slow import slow_except
from tests.wire.dialects import Anthropic, Dialect, OpenAI, OpenAIResponses, Reply
from tests.wire.servers import Compressed, Held, ModelServer, Raw

from remanence import Memory
from remanence.server.app import create_app
from remanence.stores import open_store
from remanence.testing import FaultyStore, FixedClock

APIS: dict[str, tuple[Dialect, str]] = {
    "openai/v1/chat/completions": (OpenAI(), "messages"),
    "openai/v1/responses": (OpenAIResponses(), "input"),
    "anthropic/v1/messages": (Anthropic(), "messages"),
}
BROKEN = 5
CHAT = "openai/v1/chat/completions"
MESSAGES = "anthropic/v1/messages"
OTHER_FORM = (
    "an answer in conversation 'trip' was not stored: InvalidMessage: the provider's answer is not in "
    "the form of its API"
)
_LAST = '"finish_reason": "|response.completed|message_stop'
JUNK: tuple[Any, ...] = (None, True, -1, "", "\0", [], {}, [[]], {"index": "x"}, 1e308)


@pytest.fixture
async def proxy(memory: Memory, upstream: ModelServer) -> AsyncIterator[Client]:
    url = upstream.url
    app = create_app(
        memory, openai_url=url, anthropic_url=url, max_body_bytes=20_000_000, body_seconds=0.5
    )
    async with served(app) as client:
        yield client


def said(*texts: str) -> list[dict[str, str]]:
    return [
        {"role": "assistant" if index % 2 else "user", "content": text}
        for index, text in enumerate(texts)
    ]


def body_of(path: str, *texts: str, stream: bool = True) -> dict[str, Any]:
    _, field = APIS[path]
    return {"model": "m", "max_tokens": 900, field: said(*texts), "stream": stream}


@pytest.mark.parametrize("path", APIS)
async def test_a_broken_stream_passes_as_it_is_and_no_stored_message_is_lost(
    proxy: Client, upstream: ModelServer, memory: Memory, path: str
) -> None:
    random = Random(path)
    dialect, _ = APIS[path]
    for number in range(BROKEN):
        named = {"x-remanence-conversation": f"trip-{number}"}
        events = spoiled(dialect, body_of(path, "Gate?", "B42.", "Seat?"), random)
        upstream.script(Reply("B42."), Raw(events), Reply("14C."))
        first = await proxy.http.post(path, json=body_of(path, "Gate?"), headers=named)
        later = body_of(path, "Gate?", "B42.", "Seat?")
        broken = await proxy.http.post(path, json=later, headers=named)
        again = await proxy.http.post(path, json=later, headers=named)

        assert [each.status_code for each in (first, broken, again)] == [200] * 3
        assert broken.text == "".join(f"data: {event}\n\n" for event in (*events, "[DONE]"))
        (kept, *_) = tapes = [
            [message.text for message in await conversation.messages()]
            for conversation in await conversations(memory, f"trip-{number}")
        ]
        assert kept[:3] == ["Gate?", "B42.", "Seat?"], events
        assert any(tape[-1] == "14C." for tape in tapes), events


def spoiled(dialect: Dialect, body: dict[str, Any], random: Random) -> tuple[str, ...]:
    """The events of an answer with some lost, repeated, out of order, cut, or of other values."""
    blocks = dialect.events(body, Reply("Seat 12A, by the window."))
    events = [block.rpartition("data: ")[2].strip() for block in blocks]
    for _ in range(random.choice((1, 1, 3))):
        at = random.randrange(len(events))
        match random.choice(("lost", "twice", "moved", "cut", "other", "end")):
            case "lost":
                del events[at]
            case "twice":
                events.insert(at, events[at])
            case "moved":
                events.insert(random.randrange(len(events)), events.pop(at))
            case "cut":
                events[at] = events[at][: random.randrange(len(events[at]) + 1)]
            case "other":
                events[at] = json.dumps(replaced(events[at], random))
            case _:
                del events[at + 1 :]
        events = events or ["{}"]
    return tuple(events)


def replaced(event: str, random: Random) -> Any:
    """The event with another value somewhere."""
    try:
        value = whole = json.loads(event)
    except ValueError:
        return random.choice(JUNK)
    while isinstance(value, dict | list) and value:
        key = random.choice([*value] if isinstance(value, dict) else range(len(value)))
        if not isinstance(value[key], dict | list) or random.random() < 0.3:
            value[key] = random.choice(JUNK)
            return whole
        value = value[key]
    return random.choice(JUNK)


async def conversations(memory: Memory, name: str) -> list[Any]:
    """The conversation and its branches, in the order in which they began."""
    return [
        memory.conversation(state.ref.id, tenant=state.ref.tenant)
        for state in await memory.conversations(limit=1_000)
        if state.ref.id.partition("~")[0] == name
    ]


async def test_paths_of_the_server_are_in_its_log_and_not_in_headers_of_a_proxy(
    upstream: ModelServer, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "memory.db"
    store = await open_store(f"sqlite:///{path}", pragmas={"busy_timeout": 1})
    async with (
        memory_on(store, FixedClock()) as memory,
        served(create_app(memory, openai_url=upstream.url)) as proxy,
    ):
        rival = apsw.Connection(str(path))
        rival.execute("BEGIN IMMEDIATE")
        response = await proxy.http.post(
            CHAT, json=body_of(CHAT, "Gate?"), headers={"x-remanence-conversation": "trip"}
        )
        rival.close()
    await store.close()

    why = response.headers["x-remanence-memory"]
    assert why.startswith("off; another process has locked the database")
    assert str(path) in caplog.text


async def test_a_message_that_is_too_large_to_keep_is_sent_on_and_logged_with_the_limit(
    proxy: Client, upstream: ModelServer, caplog: pytest.LogCaptureFixture
) -> None:
    body = body_of(CHAT, "x" * 17_000_000, stream=False)
    response = await proxy.http.post(CHAT, json=body, headers={"x-remanence-conversation": "trip"})

    assert response.status_code == 200
    assert "off; " in response.headers["x-remanence-memory"]
    assert upstream.received[0].body == body
    assert "bytes long, more than max_message_bytes=16,777,216" in caplog.text


async def test_a_body_over_the_limit_or_without_an_end_reaches_no_provider(
    proxy: Client, upstream: ModelServer
) -> None:
    large = await proxy.http.post(CHAT, content=b" " * 20_000_001)
    reader, writer = await connect(proxy)
    writer.write(f"POST /{CHAT} HTTP/1.1\r\nhost: localhost\r\n".encode())
    writer.write(b"content-type: application/json\r\ncontent-length: 100\r\n\r\n{")
    slow = await asyncio.wait_for(reader.read(), 10)
    writer.close()

    assert large.status_code == 413
    assert slow.startswith(b"HTTP/1.1 408")
    assert upstream.received == []


@pytest.mark.parametrize(
    "head",
    ["content-length: 100\r\n\r\nThe be", "transfer-encoding: chunked\r\n\r\n6\r\nThe be\r\n"],
    ids=["of known length", "chunked"],
)
async def test_a_file_that_breaks_off_ends_the_connection_with_one_line_in_the_log(
    memory: Memory,
    caplog: pytest.LogCaptureFixture,
    capsys: pytest.CaptureFixture[str],
    head: str,
) -> None:
    async def break_off(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(f"HTTP/1.1 200 OK\r\ncontent-type: audio/mpeg\r\n{head}".encode())
        await writer.drain()
        writer.close()

    async with await asyncio.start_server(break_off, "127.0.0.1") as server:
        url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
        async with served(create_app(memory, openai_url=url)) as proxy:
            with pytest.raises(httpx2.RemoteProtocolError):
                await proxy.get("openai/v1/files/f1/content")

    ours = [record for record in caplog.records if record.name.startswith("remanence")]
    assert [record.levelname for record in ours] == ["WARNING"]
    assert f"{url} broke off its answer: RemoteProtocolError" in ours[0].getMessage()
    assert "Traceback" not in capsys.readouterr().err


async def test_a_stream_that_breaks_off_is_a_failed_call_of_the_ledger(memory: Memory) -> None:
    event = {"type": "message_start", "message": {"usage": {"input_tokens": 9, "output_tokens": 1}}}
    piece = f"data: {json.dumps(event)}\n\n"

    async def break_off(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked"
        writer.write(f"{head}\r\n\r\n{len(piece):x}\r\n{piece}\r\n".encode())
        await writer.drain()
        writer.close()

    async with await asyncio.start_server(break_off, "127.0.0.1") as server:
        url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
        async with served(create_app(memory, anthropic_url=url)) as proxy:
            path, named = "anthropic/v1/messages", {"x-remanence-conversation": "trip"}
            with pytest.raises(httpx2.RemoteProtocolError):
                await proxy.http.post(path, json=body_of(path, "Gate?"), headers=named)

    [total] = await memory.usage()
    assert (total.calls, total.failed_calls, total.input_tokens) == (1, 1, 9)


async def test_a_stream_that_ends_with_an_error_is_a_failed_call_of_the_ledger(
    proxy: Client, upstream: ModelServer, memory: Memory
) -> None:
    event = {"type": "message_start", "message": {"usage": {"input_tokens": 9, "output_tokens": 1}}}
    error = {"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}}
    upstream.script(Raw((json.dumps(event), json.dumps(error))))
    path, named = "anthropic/v1/messages", {"x-remanence-conversation": "trip"}
    await proxy.http.post(path, json=body_of(path, "Gate?"), headers=named)

    [total] = await memory.usage()
    assert (total.calls, total.failed_calls, total.input_tokens) == (1, 1, 9)


async def test_a_client_that_reads_nothing_holds_up_nobody_else(
    proxy: Client, upstream: ModelServer
) -> None:
    """The provider of one client sends without end; the others are answered all the while."""
    upstream.script("flood")
    reader, writer = await connect(proxy)
    content = json.dumps(body_of(CHAT, "Gate?")).encode()
    writer.write(f"POST /{CHAT} HTTP/1.1\r\nhost: localhost\r\n".encode())
    writer.write(b"x-remanence-conversation: slow\r\ncontent-type: application/json\r\n")
    writer.write(f"content-length: {len(content)}\r\n\r\n".encode() + content)
    await reader.readline()
    others = [
        await proxy.http.post(
            CHAT, json=body_of(CHAT, "Gate?"), headers={"x-remanence-conversation": f"c{number}"}
        )
        for number in range(4)
    ]
    writer.close()
    async with asyncio.timeout(60):
        while upstream.at_once:  # noqa: ASYNC110 - a number of the provider
            await asyncio.sleep(0.01)

    assert [other.headers["x-remanence-memory"] for other in others] == ["on"] * 4


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
@pytest.mark.parametrize("erased", ["user", "conversation", "message"])
async def test_an_answer_to_what_was_erased_meanwhile_is_not_stored(
    proxy: Client,
    upstream: ModelServer,
    memory: Memory,
    caplog: pytest.LogCaptureFixture,
    erased: str,
    stream: bool,
) -> None:
    held = Held(Reply("Your number is 555-0199."))
    upstream.script(held)
    body = {**body_of(CHAT, "My number is 555-0199."), "stream": stream}
    headers = {"x-remanence-conversation": "trip", "x-remanence-user": "ana"}
    async with asyncio.TaskGroup() as group:
        asked = group.create_task(proxy.http.post(CHAT, json=body, headers=headers))
        await asyncio.wait_for(held.reached.wait(), 5)
        (state,) = await memory.conversations()
        chat = memory.conversation(state.ref.id, user="ana", tenant=state.ref.tenant)
        if erased == "user":
            await memory.forget_user("ana", tenant=state.ref.tenant)
        elif erased == "conversation":
            await chat.delete()
        else:
            await chat.forget(*[message.id or "" for message in await chat.messages()])
        held.gate.set()

    assert "555-0199" in asked.result().text
    left = [message.text for message in await chat.messages()]
    assert left == (["[forgotten]"] if erased == "message" else [])
    assert "was not stored: ConversationErased" in caplog.text


@pytest.mark.parametrize("erased", ["conversation", "message"])
async def test_an_answer_is_not_stored_where_its_question_is_erased_while_it_is_appended(
    upstream: ModelServer, caplog: pytest.LogCaptureFixture, erased: str
) -> None:
    upstream.script(Reply("Your number is 555-0199."))
    body, headers = body_of(CHAT, "My number is 555-0199."), {"x-remanence-conversation": "trip"}
    clock = FixedClock()
    store = FaultyStore(await open_store("sqlite:///:memory:", clock=clock))
    async with memory_on(store, clock) as memory:
        gate = store.hold("append", skip=1)
        async with (
            served(create_app(memory, openai_url=upstream.url)) as proxy,
            asyncio.TaskGroup() as group,
        ):
            asked = group.create_task(proxy.http.post(CHAT, json=body, headers=headers))
            await asyncio.wait_for(gate.reached.wait(), 5)
            (state,) = await memory.conversations()
            chat = memory.conversation(state.ref.id, tenant=state.ref.tenant)
            if erased == "conversation":
                await chat.delete()
            else:
                await chat.forget(*[message.id or "" for message in await chat.messages()])
            gate.opened.set()
        left = [message.text for message in await chat.messages()]
    await store.close()

    assert "555-0199" in asked.result().text
    assert left == (["[forgotten]"] if erased == "message" else [])
    assert "was not stored: ConversationErased" in caplog.text


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
async def test_an_answer_is_stored_whose_client_leaves_while_it_is_appended(
    upstream: ModelServer, stream: bool
) -> None:
    upstream.script(Reply("Gate B42."))
    body, headers = body_of(CHAT, "Gate?", stream=stream), {"x-remanence-conversation": "trip"}
    clock = FixedClock()
    store = FaultyStore(await open_store("sqlite:///:memory:", clock=clock))
    async with memory_on(store, clock) as memory:
        gate = store.hold("append", skip=1)
        transport = httpx2.ASGITransport(create_app(memory, openai_url=upstream.url))
        async with httpx2.AsyncClient(transport=transport, base_url="http://localhost") as http:
            asking = asyncio.create_task(http.post(CHAT, json=body, headers=headers))
            await asyncio.wait_for(gate.reached.wait(), 5)
            asking.cancel()
            for _ in range(50):  # for the cancellation to get through
                await asyncio.sleep(0)
            gate.opened.set()
            await asyncio.wait({asking})
        (tape,) = await conversations(memory, "trip")
        stored = [message.text for message in await tape.messages()]
    await store.close()

    assert stored == ["Gate?", "Gate B42."]


@pytest.mark.parametrize("held", ["append", "fork"])
async def test_processes_that_begin_tapes_at_once_keep_their_histories_apart(
    upstream: ModelServer, held: str
) -> None:
    """Two servers on one database: one is held after its plan, while the other one goes on."""
    clock = FixedClock()
    store = FaultyStore(await open_store("sqlite:///:memory:", clock=clock))
    headers = {"x-remanence-conversation": "trip"}
    async with memory_on(store, clock) as memory, memory_on(store, clock) as another:
        async with (
            served(create_app(memory, openai_url=upstream.url)) as left,
            served(create_app(another, openai_url=upstream.url)) as right,
        ):
            begin = ("Gate?", "B42.") if held == "fork" else ()
            if begin:
                upstream.script(Reply("B42."), Reply("14C."))
                for texts in (begin[:1], (*begin, "Seat?")):
                    await left.http.post(CHAT, json=body_of(CHAT, *texts), headers=headers)
            tools = {"tools": [{"type": "function", "function": {"name": "find"}}]}
            bodies = [body_of(CHAT, *begin, text) | tools for text in ("one", "two")]
            gate = store.hold(held)
            async with asyncio.TaskGroup() as group:
                group.create_task(left.http.post(CHAT, json=bodies[0], headers=headers))
                await asyncio.wait_for(gate.reached.wait(), 5)
                await right.http.post(CHAT, json=bodies[1], headers=headers)
                gate.opened.set()
        tapes = [
            [message.text for message in await conversation.messages()]
            for conversation in await conversations(memory, "trip")
        ]
    await store.close()

    assert [[text for text in tape if text in ("one", "two")] for tape in tapes[-2:]] == [
        ["two"],
        ["one"],
    ]
    assert all(len(tape) % 2 == 0 for tape in tapes), "each question has its answer"


async def connect(client: Client) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    url = client.http.base_url
    return await asyncio.open_connection(url.host, url.port)


@pytest.mark.parametrize(
    "path",
    [
        "../../key/generate",
        "../admin",
        "./../x",
        "models/.",
        "%2e%2e/admin",
        "..%2fadmin",
        "%252e%252e/admin",
        "models%2F..%2F..%2Fadmin",
        "..;/admin",
        "..%5Cadmin",
        pytest.param(f"models/%{'25' * 7_000}", id="models/%252525..."),
    ],
)
@pytest.mark.parametrize("provider", ["openai", "anthropic"])
async def test_a_path_that_leads_above_the_base_url_is_refused(
    proxy: Client, upstream: ModelServer, path: str, provider: str
) -> None:
    host, port = proxy.http.base_url.host, proxy.http.base_url.port
    assert port is not None
    reader, writer = await asyncio.open_connection(host, port)
    head = f"POST /{provider}/v1/{path} HTTP/1.1\r\nhost: {host}:{port}\r\n"
    writer.write(f"{head}content-length: 2\r\nconnection: close\r\n\r\n{{}}".encode())
    answer = await reader.read()
    writer.close()
    await writer.wait_closed()

    assert b" 400 " in answer.partition(b"\r\n")[0]
    assert json.loads(answer.partition(b"\r\n\r\n")[2])["error"]["type"] == "invalid_request_error"
    assert upstream.received == []


async def test_turns_without_memory_are_logged_once_a_minute(
    upstream: ModelServer, caplog: pytest.LogCaptureFixture
) -> None:
    clock = FixedClock()
    named = {b"x-remanence-conversation": b"trip", b"x-remanence-user": b"\xc2\x80"}
    async with (
        Memory.open("sqlite:///:memory:", clock=clock) as memory,
        served(create_app(memory, openai_url=upstream.url)) as proxy,
    ):
        for headers in (named, named, named, {}):
            upstream.script(Reply("B42."))
            body = {"model": "m", "messages": said("My PIN is 4711.")}
            response = await proxy.http.post(CHAT, json=body, headers=headers)
            assert response.headers["x-remanence-memory"].startswith("off; ")
            clock.advance(30)

    warnings = [record.getMessage() for record in caplog.records if record.levelname == "WARNING"]
    expected = (
        "a turn of conversation 'trip' was forwarded without memory, and is not stored (refused)"
    )
    refused = [text for text in warnings if text.startswith(expected)]
    assert len(refused) == 2
    assert all("InvalidMessage: the response has the reason" in text for text in refused)
    assert "4711" not in str(warnings)


async def test_a_client_that_names_no_conversation_is_logged_once_for_each_api(
    proxy: Client, caplog: pytest.LogCaptureFixture
) -> None:
    for path in (CHAT, CHAT, "anthropic/v1/messages", CHAT):
        await proxy.http.post(path, json=body_of(path, "My PIN is 4711."))

    unnamed = [text for text in caplog.messages if "names no conversation" in text]
    assert [text.partition(" names ")[0] for text in unnamed] == [
        "a request to the proxy for openai",
        "a request to the proxy for anthropic",
    ]
    assert all("X-Remanence-Conversation" in text and "--recognize" in text for text in unnamed)
    assert "4711" not in str(caplog.messages)


async def test_a_body_that_is_no_json_is_logged_without_a_conversation(
    proxy: Client, caplog: pytest.LogCaptureFixture
) -> None:
    await proxy.http.post(CHAT, content=b"{4711")

    (warning,) = [text for text in caplog.messages if "forwarded without memory" in text]
    assert warning == (
        "a turn that names no conversation was forwarded without memory, and is not stored (refused): "
        "InvalidMessage: the response has the reason, in x-remanence-memory"
    )


async def test_a_name_that_is_too_long_for_a_header_is_refused_with_the_limit(
    proxy: Client, memory: Memory
) -> None:
    answers = [
        await proxy.http.post(
            CHAT, json=body_of(CHAT, "Gate?"), headers={"x-remanence-conversation": "x" * length}
        )
        for length in (500, 501)
    ]

    assert [answer.status_code for answer in answers] == [200, 200]
    assert [answer.headers["x-remanence-memory"] for answer in answers] == [
        "on",
        "off; the conversation's name has 501 characters, more than 500: shorten it",
    ]
    assert len(await memory.conversations()) == 1


@pytest.mark.parametrize("header", ["x-remanence-conversation", "x-remanence-user"])
async def test_a_name_that_clients_drop_from_a_path_is_refused_at_the_proxy(
    proxy: Client, memory: Memory, header: str
) -> None:
    named = {"x-remanence-conversation": "trip", header: ".."}
    answer = await proxy.http.post(CHAT, json=body_of(CHAT, "Gate?", stream=False), headers=named)

    assert answer.headers["x-remanence-memory"].startswith("off; '..' cannot be a name")
    assert await memory.conversations() == ()


@pytest.mark.parametrize("path", APIS)
@pytest.mark.parametrize("answer", ["null", "<html>4711", "[" * 100_000])
async def test_an_answer_of_another_form_is_logged_as_such_with_its_conversation(
    proxy: Client, upstream: ModelServer, caplog: pytest.LogCaptureFixture, path: str, answer: str
) -> None:
    upstream.script(Raw((answer,)))
    named = {"x-remanence-conversation": "trip"}
    await proxy.http.post(path, json=body_of(path, "Gate?", stream=False), headers=named)

    assert [text for text in caplog.messages if "not stored" in text] == [OTHER_FORM]


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("path", APIS)
async def test_an_answer_that_is_too_long_to_keep_is_forwarded_and_logged(
    memory: Memory, upstream: ModelServer, caplog: pytest.LogCaptureFixture, path: str, stream: bool
) -> None:
    upstream.script(Reply("word " * 5_000 + "end"))
    url = upstream.url
    app = create_app(memory, openai_url=url, anthropic_url=url, max_body_bytes=5_000)
    async with served(app) as proxy:
        body = body_of(path, "Gate?", stream=stream)
        named = {"x-remanence-conversation": "trip"}
        response = await proxy.http.post(path, json=body, headers=named)

    assert response.status_code == 200
    assert response.text.count("word") > 4_990
    assert "end" in response.text
    assert "was not stored: InvalidMessage: the provider's answer has more than" in caplog.text
    (tape,) = await conversations(memory, "trip")
    assert [message.text for message in await tape.messages()] == ["Gate?"]


async def test_an_event_of_another_form_is_logged_as_such_with_its_conversation(
    proxy: Client, upstream: ModelServer, caplog: pytest.LogCaptureFixture
) -> None:
    upstream.script(Raw(('{"choices": [{"index": 0, "delta": {"tool_calls": [4711]}}]}',)))
    named = {"x-remanence-conversation": "trip"}
    await proxy.http.post(CHAT, json=body_of(CHAT, "Gate?"), headers=named)

    assert [text for text in caplog.messages if "not stored" in text] == [OTHER_FORM]


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("encoding", ["gzip", "deflate"])
@pytest.mark.parametrize("path", APIS)
async def test_an_answer_that_is_compressed_unasked_is_stored_and_passes_as_it_is(
    proxy: Client, upstream: ModelServer, memory: Memory, path: str, encoding: Any, stream: bool
) -> None:
    upstream.script(Compressed(encoding, Reply("B42.")))
    named = {"x-remanence-conversation": "trip"}
    body = body_of(path, "Gate?", stream=stream)
    response = await proxy.http.post(path, json=body, headers=named)

    assert response.headers["content-encoding"] == encoding
    assert response.text
    (tape,) = await conversations(memory, "trip")
    assert [message.text for message in await tape.messages()] == ["Gate?", "B42."]


@pytest.mark.parametrize("stream", slow_except([False, True], [True]))
@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        (Compressed("br"), "the provider's answer is compressed (br), which was not requested"),
        (Compressed(is_broken=True), "the provider's answer is not gzip"),
        (Compressed(padding_bytes=100_000_000), "the provider's answer has more than"),
    ],
    ids=["another encoding", "broken", "long"],
)
async def test_a_compressed_answer_that_cannot_be_read_is_logged_with_the_reason(
    proxy: Client,
    upstream: ModelServer,
    caplog: pytest.LogCaptureFixture,
    answer: Compressed,
    reason: str,
    stream: bool,
) -> None:
    upstream.script(answer)
    named = {"x-remanence-conversation": "trip"}
    body = body_of(CHAT, "Gate?", stream=stream)
    async with proxy.http.stream("POST", CHAT, json=body, headers=named) as response:
        assert [piece async for piece in response.aiter_raw()]

    assert f"'trip' was not stored: InvalidMessage: {reason}" in caplog.text


@pytest.mark.parametrize("path", APIS)
async def test_an_answer_is_stored_whose_last_event_has_no_blank_line_after_it(
    proxy: Client, upstream: ModelServer, memory: Memory, path: str
) -> None:
    """The clients of the providers read such an event at the end of the stream, too."""
    dialect, _ = APIS[path]
    body = body_of(path, "Gate?")
    data = [re.search("data: (.*)", event) for event in dialect.events(body, Reply("B42."))]
    documents = [found[1] for found in data if found and found[1] != "[DONE]"]
    last = max(n for n, one in enumerate(documents) if re.search(_LAST, one))
    upstream.script(Raw(tuple(documents[: last + 1]), is_ended=False))
    named = {"x-remanence-conversation": "trip"}
    response = await proxy.http.post(path, json=body, headers=named)

    assert response.text.endswith("}")
    (tape,) = await conversations(memory, "trip")
    assert [message.text for message in await tape.messages()] == ["Gate?", "B42."]


def call_piece(name: str, arguments: str) -> dict[str, Any]:
    return {"index": 0, "id": "c1", "function": {"name": name, "arguments": arguments}}


def delta_of(index: int, **delta: str) -> dict[str, Any]:
    return {"type": "content_block_delta", "index": index, "delta": delta}


LOOK = {"type": "tool_use", "id": "c1", "name": "look", "input": {}}
OF_HALVES: dict[str, tuple[Any, ...]] = {
    CHAT: (
        {"choices": [{"index": 0, "delta": {"content": "Sure \ud83d"}}]},
        {"choices": [{"index": 0, "delta": {"content": "\ude00."}}]},
        {"choices": [{"index": 0, "delta": {"tool_calls": [call_piece("look", '{"at":"\ud83c')]}}]},
        {"choices": [{"index": 0, "delta": {"tool_calls": [call_piece("", '\udf0d"}')]}}]},
        {"choices": [{"index": 0, "delta": {}, "finish_reason": "tool_calls"}]},
    ),
    MESSAGES: (
        {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}},
        delta_of(0, type="text_delta", text="Sure \ud83d"),
        delta_of(0, type="text_delta", text="\ude00."),
        {"type": "content_block_start", "index": 1, "content_block": LOOK},
        delta_of(1, type="input_json_delta", partial_json='{"at":"\ud83c'),
        delta_of(1, type="input_json_delta", partial_json='\udf0d"}'),
        {"type": "message_stop"},
    ),
}


@pytest.mark.parametrize("path", OF_HALVES)
async def test_a_character_that_is_cut_between_two_pieces_of_an_answer_is_stored_whole(
    proxy: Client, upstream: ModelServer, memory: Memory, path: str
) -> None:
    """A server in JavaScript cuts a text between two units of UTF-16, which its clients join."""
    upstream.script(Raw(tuple(map(json.dumps, OF_HALVES[path]))))
    named = {"x-remanence-conversation": "trip"}
    await proxy.http.post(path, json=body_of(path, "Ready?"), headers=named)

    (tape,) = await conversations(memory, "trip")
    answer = (await tape.messages())[-1]
    assert (answer.text, answer.tool_calls[0].arguments) == ("Sure 😀.", '{"at":"🌍"}')


async def test_an_answer_is_stored_whatever_follows_its_end(
    proxy: Client, upstream: ModelServer, memory: Memory, caplog: pytest.LogCaptureFixture
) -> None:
    whole = {"index": 0, "delta": {"content": "B42."}, "finish_reason": "stop"}
    malformed = {"index": 0, "delta": {"tool_calls": [4711]}}
    usage = {"prompt_tokens": 9, "completion_tokens": 1}
    events = ({"choices": [whole]}, {"choices": [malformed]}, {"choices": [], "usage": usage})
    upstream.script(Raw(tuple(map(json.dumps, events))))
    named = {"x-remanence-conversation": "trip"}
    await proxy.http.post(CHAT, json=body_of(CHAT, "Gate?"), headers=named)

    (tape,) = await conversations(memory, "trip")
    [total] = await memory.usage()
    assert [message.text for message in await tape.messages()] == ["Gate?", "B42."]
    assert (total.failed_calls, total.input_tokens) == (0, 9)
    assert "not stored" not in caplog.text


async def test_names_in_headers_are_read_as_utf_8(
    proxy: Client, upstream: ModelServer, memory: Memory
) -> None:
    for conversation, user in (("火車", "李".encode()), ("b", "José".encode()), ("c", b"Jos\xe9")):
        upstream.script(Reply("B42."))
        headers = {
            b"x-remanence-conversation": conversation.encode(),
            b"x-remanence-user": user,
        }
        body = {"model": "m", "messages": said("Which gate?")}
        response = await proxy.http.post(CHAT, json=body, headers=headers)
        assert response.headers["x-remanence-memory"] == "on"

    owners = {(state.ref.id, state.user) for state in await memory.conversations()}
    assert owners == {("火車", "李"), ("b", "José"), ("c", "José")}


class Store:
    """A provider that takes an upload, and answers with the hash of its bytes."""

    def __init__(self) -> None:
        self.headers: dict[str, str] = {}
        self.begun = asyncio.Event()
        self.left = asyncio.Event()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        request, digest = Incoming(scope, receive), hashlib.sha256()
        self.headers = dict(request.headers)
        try:
            async for piece in request.stream():
                self.begun.set()
                digest.update(piece)
        except ClientDisconnect:
            self.left.set()
            return
        await JSONResponse({"sha256": digest.hexdigest()})(scope, receive, send)


@asynccontextmanager
async def served_uploads(
    memory: Memory, *, body_seconds: float = 60
) -> AsyncIterator[tuple[Client, Store]]:
    store = Store()
    async with served(store) as provider:
        app = create_app(memory, openai_url=str(provider.http.base_url), body_seconds=body_seconds)
        async with served(app) as client:
            yield client, store


@pytest.mark.parametrize("announced", [True, False])
async def test_an_upload_of_any_size_reaches_the_provider_as_it_arrives(
    memory: Memory, *, announced: bool
) -> None:
    piece, count = Random(1).randbytes(1_000_000), 40
    length = {"content-length": str(len(piece) * count)} if announced else {}

    async def pieces() -> AsyncIterator[bytes]:
        for _ in range(count):
            yield piece

    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    async with served_uploads(memory) as (client, store):
        answer = await client.http.post("openai/v1/files", content=pieces(), headers=length)

    grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    assert answer.status_code == 200
    assert answer.json() == {"sha256": hashlib.sha256(piece * count).hexdigest()}
    assert answer.headers["x-remanence-memory"] == "off; not a turn of a conversation"
    assert store.headers.get("content-length") == length.get("content-length")
    assert grown < 20_000, "KiB"


async def test_an_upload_whose_client_leaves_or_stalls_ends_at_the_provider_too(
    memory: Memory,
) -> None:
    head = b"POST /openai/v1/files HTTP/1.1\r\nhost: localhost\r\ncontent-length: 100\r\n\r\n"
    for stalls in (True, False):
        async with served_uploads(memory, body_seconds=0.3 if stalls else 60) as (client, store):
            url = client.http.base_url
            reader, writer = await asyncio.open_connection(url.host, url.port)
            writer.write(head + b"{")
            await asyncio.wait_for(store.begun.wait(), 5)
            if stalls:
                answer = await asyncio.wait_for(reader.read(), 5)
                assert answer.startswith(b"HTTP/1.1 408")
                assert b"0.3 s" in answer
            writer.close()
            await asyncio.wait_for(store.left.wait(), 5)


@pytest.mark.parametrize("path", APIS)
async def test_a_turn_is_still_limited(memory: Memory, path: str) -> None:
    async with served(create_app(memory, max_body_bytes=1_000)) as client:
        assert (await client.http.post(path, content=b"x" * 2_000)).status_code == 413


@pytest.mark.parametrize("levels", [150, 600, 900])
async def test_a_message_that_is_nested_too_deep_is_refused_by_the_memory_and_forwarded(
    proxy: Client, upstream: ModelServer, levels: int
) -> None:
    upstream.script(Reply("Hi."))
    meta = "[" * levels + "]" * levels
    body = f'{{"model": "m", "messages": [{{"role": "user", "content": "Hi", "meta": {meta}}}]}}'
    headers = {"content-type": "application/json", "x-remanence-conversation": "trip"}

    answer = await proxy.http.post(CHAT, content=body, headers=headers)

    assert answer.status_code == 200
    assert "nested deeper than 100 levels" in answer.headers["x-remanence-memory"]
