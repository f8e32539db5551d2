"""The typed client, awaited and not, of a service on loopback."""

import asyncio
import inspect
import json
import subprocess
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import aclosing, asynccontextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.types import Receive, Scope, Send
from tests.server.conftest import Client as Service, Speaker, served
from tests.server.process import service as server_process
from tests.slow import slow_except
from tests.wire.dialects import Reply
from tests.wire.servers import ModelServer

from remanence import Memory, Message
from remanence.client import AsyncClient, Client, blocking, conversation, service
from remanence.client.conversation import AsyncConversation
from remanence.errors import (
    Closed,
    ConversationGrown,
    ConversationNotFound,
    DuplicateMessage,
    InvalidArgument,
    InvalidMessage,
    ModelError,
    RemanenceError,
    ServiceError,
    StoreUnavailable,
    WrongUser,
)
from remanence.http.documents import ReplyDocument, TextDocument
from remanence.server.access import by_key
from remanence.server.app import create_app
from remanence.server.problems import response_to
from remanence.testing import FixedClock, ScriptedObserver
from remanence.testing.store_contract.samples import usage
from remanence.types import Event

FLIGHT = {"role": "user", "content": "My flight to Lisbon is LH 454.", "id": "m-1"}
DAMAGED = {"role": "user", "content": "My flight \ud800"}


class Relay:
    """A TCP relay to a server, which can lose answers and break connections."""

    def __init__(self, target: Any) -> None:
        self._target = target
        self._open: list[asyncio.StreamWriter] = []
        self.answers_to_lose = 0
        self.url = ""

    @asynccontextmanager
    async def running(self) -> AsyncIterator["Relay"]:
        server = await asyncio.start_server(self._connected, "127.0.0.1", 0)
        self.url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
        yield self
        server.close()
        self.cut()

    def cut(self) -> None:
        """Break all connections."""
        while self._open:
            self._open.pop().transport.abort()

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        to = await asyncio.open_connection(self._target.host, self._target.port)
        self._open += (writer, to[1])
        await asyncio.wait(
            [
                asyncio.create_task(self._copy(reader, to[1], loses=False)),
                asyncio.create_task(self._copy(to[0], writer, loses=True)),
            ]
        )

    async def _copy(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, *, loses: bool
    ) -> None:
        try:
            while data := await reader.read(65_536):
                if loses and self.answers_to_lose:
                    self.answers_to_lose -= 1
                    break
                writer.write(data)
            writer.close()
        except ConnectionError:
            pass


@pytest.fixture
async def remote(client: Service) -> AsyncIterator[AsyncClient]:
    async with AsyncClient(str(client.http.base_url)) as remote:
        yield remote


@pytest.fixture
async def relay(client: Service) -> AsyncIterator[Relay]:
    async with Relay(client.http.base_url).running() as relay:
        yield relay


async def test_usage_is_that_of_the_tenant_narrowed_by_user_conversation_and_time(
    remote: AsyncClient, memory: Memory
) -> None:
    now = memory.clock.now()
    for tenant, name, user in (
        ("default", "a", "ana"),
        ("default", "b", "bo"),
        ("acme", "a", "ana"),
    ):
        chat = memory.conversation(name, tenant=tenant, user=user)
        await chat.append(Message.user("Hi."))
        await chat.record_call(usage(user=None, at=now))

    [of_tenant] = await remote.usage()
    assert (of_tenant.purpose, of_tenant.model, of_tenant.calls) == ("observe", "a", 2)
    assert of_tenant.cost_usd == pytest.approx(0.02)
    assert await remote.usage(user="ana") == await memory.usage(user="ana")
    assert [total.calls for total in await remote.usage(conversation="b")] == [1]
    assert [total.calls for total in await remote.usage(tenant="acme", since=now)] == [1]
    assert await remote.usage(user="ana", conversation="b") == ()
    assert await remote.usage(tenant="other") == ()
    assert await remote.usage(until=now) == ()


async def test_a_conversation_is_kept_noted_found_and_forgotten(
    remote: AsyncClient, memory: Memory
) -> None:
    trip = remote.conversation("trip", user="ana")
    [appended] = await trip.append(FLIGHT)
    await trip.append({"role": "assistant", "content": [{"type": "text", "text": "Noted."}]})
    context = await trip.context(system="You help.", recall="flight", format="openai")
    ended = await trip.end()
    [observation] = await trip.observations()
    [hit, *_] = await trip.recall("flight")
    everywhere = await remote.recall("flight", user="ana", limit=9)
    found = await remote.conversation("other", user="ana").forget(query="LH 454", everywhere=True)
    receipt = await trip.forget("m-1")

    assert [(each.conversation, each.id) for each in found.messages] == [("trip", "m-1")]
    assert (appended.seq, appended.id, appended.rendered[0]["role"]) == (1, "m-1", "user")
    assert "LH 454" in json.dumps(context.request)
    assert context.stats.last_seq == 2
    assert ended.observed_seq == 2
    assert "LH 454" in observation.text
    assert await trip.reflections() == ()
    assert (await trip.log())[0].kind == "observed"
    assert hit.conversation == "trip"
    assert hit in everywhere
    assert receipt.message_ids == ("m-1",)
    assert (await trip.messages(limit=1))[0].kind == "forgotten"
    assert [c.id for c in (await remote.conversations()).conversations] == ["trip"]
    deleted = await trip.delete()
    assert deleted is not None
    assert (deleted.conversations, len(deleted.messages)) == (("trip",), 1)
    assert await trip.delete() is None
    with pytest.raises(ConversationNotFound):
        await trip.state()


async def test_a_conversation_is_forked_once(remote: AsyncClient) -> None:
    trip = remote.conversation("trip", user="ana")
    await trip.append(FLIGHT, {"role": "assistant", "content": "Noted."})

    forked = await trip.fork("again", last_seq=1)

    assert (forked.id, forked.user, forked.last_seq) == ("again", "ana", 1)
    with pytest.raises(ConversationGrown, match="'again' already has messages"):
        await trip.fork("again", last_seq=1)


async def test_work_that_failed_is_tried_at_once_where_a_client_asks_for_it() -> None:
    down = ScriptedObserver([ModelError("auth", "the key is wrong")])
    async with (
        Memory.open("sqlite:///:memory:", observer=down, clock=FixedClock()) as memory,
        served(create_app(memory)) as client,
        AsyncClient(str(client.http.base_url)) as remote,
    ):
        trip = remote.conversation("trip", user="ana")
        await trip.append(FLIGHT)
        not_due = await trip.flush()
        failed = await trip.flush(everything=True)
        waiting = await trip.flush(everything=True)
        done = await trip.flush(everything=True, retry=True)

    assert (not_due.observed_seq, not_due.failures) == (0, 0)
    assert (failed.observed_seq, failed.failures) == (0, 1)
    assert (waiting.observed_seq, waiting.failures) == (0, 1)
    assert "auth" in (waiting.last_error or "")
    assert (done.observed_seq, done.failures) == (1, 0)


@pytest.mark.parametrize("end", ["/v1", "/v1/"])
async def test_the_address_of_the_service_may_end_with_v1(client: Service, end: str) -> None:
    async with AsyncClient(f"{str(client.http.base_url).rstrip('/')}{end}") as remote:
        await remote.conversation("trip").append(FLIGHT)

        assert [c.id for c in (await remote.conversations()).conversations] == ["trip"]


async def test_facts_and_users_are_kept_exported_and_erased(remote: AsyncClient) -> None:
    fact = await remote.facts.save("Ana lives in Lisbon.", user="ana", tags=["home"])
    found = await remote.facts.search("Lisbon", user="ana")
    listed = await remote.facts.list(user="ana", history=True)
    lines = [json.loads(line) async for line in remote.export_user("ana")]

    assert [fact] == found == listed
    assert {line["line"] for line in lines} >= {"user", "fact"}
    assert await remote.facts.forget(fact.id, user="ana")
    assert not await remote.facts.forget(fact.id, user="ana")
    assert not (await remote.forget_user("ana")).erased  # nothing was left


async def test_a_turn_is_answered_whole_or_as_it_is_said(
    remote: AsyncClient, speaker: Speaker
) -> None:
    trip = remote.conversation("trip", user="ana")

    reply = await trip.chat("Which gate?")
    events = [event async for event in trip.stream({"role": "user", "content": "And when?"})]

    assert (reply.conversation, reply.text, reply.complete) == ("trip", "Gate B42.", True)
    assert [event.text for event in events if isinstance(event, TextDocument)] == ["Gate", " B42."]
    assert isinstance(events[-1], ReplyDocument)
    assert events[-1].usage.cache_read_tokens == 80


async def test_a_stream_tells_what_became_of_the_memory(remote: AsyncClient) -> None:
    trip, kinds = remote.conversation("trip"), set[str]()
    for number in range(12):
        text = f"The boat to island {number} leaves from pier {number} at 9:30. " * 4
        async for event in trip.stream(text):
            if isinstance(event, Event):
                kinds.add(event.type)
                assert event.conversation == "trip"
        await trip.end()

    assert "activated" in kinds


async def test_leaving_a_stream_stops_the_model(remote: AsyncClient, speaker: Speaker) -> None:
    speaker.gate = asyncio.Event()
    stream = remote.conversation("trip").stream("Which gate?")
    async with asyncio.timeout(30):
        await anext(stream)
        await stream.aclose()
        await speaker.broken_off.wait()


async def test_a_turn_may_bring_a_channel_and_an_identity(
    remote: AsyncClient, speaker: Speaker
) -> None:
    trip = remote.conversation("trip")
    await trip.chat(
        "Which gate?", channel="whatsapp", identity="You are Ada.", timezone="Asia/Tokyo"
    )
    async for _ in trip.stream("And when?", identity="You are Bo."):
        pass

    contexts = [request.context for request in speaker.requests]
    assert [context.system[0].text for context in contexts] == ["You are Ada.", "You are Bo."]
    assert ["whatsapp" in context.volatile for context in contexts] == [True, False]


async def test_messages_and_contexts_may_bring_the_time_zone_of_the_user(
    remote: AsyncClient,
) -> None:
    trip = remote.conversation("trip")
    old = {**FLIGHT, "created_at": "2025-05-01T09:00:00Z"}
    hello = {"role": "user", "content": "Hello."}
    (kept, _) = await trip.append(old, hello, timezone="Asia/Tokyo")
    context = await trip.context(timezone="Asia/Dhaka", format="text")

    assert kept.created_at is not None
    assert kept.created_at.utcoffset() == timedelta(hours=9)
    assert "UTC+06:00" in str(context.request["text"])
    with pytest.raises(InvalidArgument, match="use the name of a time zone"):
        await trip.context(timezone="Dhaka")


async def test_an_error_in_a_stream_is_raised(remote: AsyncClient, speaker: Speaker) -> None:
    speaker.script.append(ModelError("rate_limit", "too fast", retry_after_seconds=60))

    with pytest.raises(ModelError, match="too fast") as raised:
        async for _ in remote.conversation("trip").stream("Which gate?"):
            pass

    assert (raised.value.reason, raised.value.retry_after_seconds) == ("rate_limit", 60)


async def test_a_request_has_only_fields_that_were_given() -> None:
    bodies: list[object] = []

    async def record(scope: Scope, receive: Receive, send: Send) -> None:
        bodies.append(await Request(scope, receive).json())
        await JSONResponse({"erased": False, "at": "2026-03-01T09:30:00Z"})(scope, receive, send)

    async with served(record) as running, AsyncClient(str(running.http.base_url)) as remote:
        await remote.conversation("trip").forget(query="LH 454")

    assert bodies == [{"query": "LH 454"}]


Call = Callable[[AsyncClient], Any]


@pytest.mark.parametrize(
    ("call", "error"),
    [
        (lambda remote: remote.conversation("c").append({"role": "user"}), InvalidMessage),
        (lambda remote: remote.conversation("c").append("a text"), InvalidMessage),
        (lambda remote: remote.conversation("c").chat(["a text"]), InvalidMessage),
        (lambda remote: remote.conversation("c").append(DAMAGED), InvalidMessage),
        (lambda remote: remote.conversation("c").recall("\ud800"), InvalidArgument),
        (lambda remote: remote.conversation("\ud800").state(), InvalidMessage),
        (lambda remote: remote.forget_user("\ud800"), InvalidMessage),
        (lambda remote: remote.conversation("..").chat("Hi."), InvalidMessage),
        (lambda remote: remote.forget_user(".."), InvalidMessage),
        (lambda remote: remote.conversation("c").context(system=3), InvalidArgument),
        (lambda remote: remote.facts.save(3, user="ana"), InvalidArgument),
        (lambda remote: remote.conversation("c").messages(limit=0), InvalidArgument),
        (lambda remote: remote.conversation("trip", user="bob").append(FLIGHT), WrongUser),
        (
            lambda remote: remote.conversation("trip", user="ana").append(
                {**FLIGHT, "content": "Other"}
            ),
            DuplicateMessage,
        ),
    ],
)
async def test_what_the_service_refuses_is_raised_as_in_the_library(
    remote: AsyncClient, call: Call, error: type[RemanenceError]
) -> None:
    await remote.conversation("trip", user="ana").append(FLIGHT)

    with pytest.raises(error) as raised:
        await call(remote)

    assert len(str(raised.value)) > 20


async def test_a_service_that_is_not_there_is_an_error_with_its_address() -> None:
    async with AsyncClient("http://127.0.0.1:9") as remote:
        with pytest.raises(
            ServiceError, match=r"GET http://127.0.0.1:9/v1/conversations"
        ) as raised:
            await remote.conversations()

    assert raised.value.status is None


def test_an_address_without_a_scheme_is_refused_at_once() -> None:
    with pytest.raises(InvalidArgument, match=r"'127\.0\.0\.1:8765' is impossible: use a URL"):
        AsyncClient("127.0.0.1:8765")


async def test_a_key_opens_the_tenant_that_it_is_for(memory: Memory) -> None:
    key = await memory.keys.create("app", tenant="acme", scopes=("read", "write"))
    async with served(create_app(memory, auth=by_key(memory.keys))) as running:
        url = str(running.http.base_url)
        async with AsyncClient(url, key=key.token) as remote:
            await remote.conversation("trip").append(FLIGHT)
        async with AsyncClient(url) as stranger:
            with pytest.raises(ServiceError, match="in x-remanence-key or x-api-key") as raised:
                await stranger.conversation("trip").messages()

    assert (await memory.conversation("trip", tenant="acme").state()).last_seq == 1
    assert (raised.value.status, raised.value.code) == (401, "no_key")


async def test_an_append_whose_answer_is_lost_takes_effect_once(relay: Relay) -> None:
    relay.answers_to_lose = 1
    async with AsyncClient(relay.url) as remote:
        trip = remote.conversation("trip")
        [appended] = await trip.append({"role": "user", "content": "Once."})

        assert appended.seq == 1
        assert [message.text for message in await trip.messages()] == ["Once."]


async def leave_at_first_piece(trip: AsyncConversation, text: str) -> None:
    async with aclosing(trip.stream(text)) as events:
        await anext(events)


@pytest.mark.timeout(60)
@pytest.mark.parametrize("streams", slow_except([False, True], [True]))
async def test_a_turn_whose_answer_was_lost_gets_it_when_it_is_asked_again(
    tmp_path: Path, streams: bool
) -> None:
    async def ask(remote: AsyncClient) -> str:
        trip = remote.conversation("trip")
        if not streams:
            return (await trip.chat("Which gate?")).text
        events = [event async for event in trip.stream("Which gate?")]
        return "".join(event.text for event in events if isinstance(event, TextDocument))

    async with (
        ModelServer().running() as model,
        server_process(tmp_path, "--model", f"openai:mine@{model.url}/v1") as running,
        Relay(running.http.base_url).running() as relay,
        AsyncClient(relay.url) as remote,
    ):
        model.script(Reply("Gate B42."), Reply("Gate C9."))
        relay.answers_to_lose = 1 if streams else 3  # a stream is not retried
        with pytest.raises(ServiceError, match="check that the service is running"):
            await ask(remote)
        answers = [await ask(remote), await ask(remote)]
        tape = [message.text for message in await remote.conversation("trip").messages()]

    assert answers == ["Gate B42.", "Gate C9."]
    assert tape == ["Which gate?", "Gate B42.", "Which gate?", "Gate C9."]


async def test_a_turn_that_was_broken_off_is_one_question_when_it_is_asked_again(
    remote: AsyncClient, speaker: Speaker
) -> None:
    trip, speaker.gate = remote.conversation("trip"), asyncio.Event()
    async with asyncio.timeout(30):
        await leave_at_first_piece(trip, "Which gate?")
        await speaker.broken_off.wait()
    speaker.gate = None
    speaker.script.append(ModelError("auth", "the key is wrong"))
    with pytest.raises(ModelError):
        await trip.chat("Which gate?")
    reply = await remote.conversation("trip").chat("Which gate?")

    texts = [message.text for message in await trip.messages()]
    assert (reply.text, texts.count("Which gate?")) == ("Gate B42.", 1)


async def test_a_question_may_be_asked_again_once_its_answer_was_read(remote: AsyncClient) -> None:
    trip = remote.conversation("trip")
    for _ in range(2):
        async with aclosing(trip.stream("Which gate?")) as events:
            async for event in events:
                if isinstance(event, ReplyDocument):
                    break

    assert [message.text for message in await trip.messages()] == ["Which gate?", "Gate B42."] * 2


async def test_a_lost_answer_is_not_that_of_the_same_words_after_the_turn_of_another_client(
    relay: Relay, remote: AsyncClient, speaker: Speaker
) -> None:
    speaker.script += ["Gate B42.", "Seat 14C.", "Gate C9."]
    async with AsyncClient(relay.url) as losing:
        trip, relay.answers_to_lose = losing.conversation("trip"), 3
        with pytest.raises(ServiceError):
            await trip.chat("Which gate?")
        await remote.conversation("trip").chat("Which seat?")
        with pytest.raises(DuplicateMessage, match="is taken by message 2"):
            await trip.chat("Which gate?")

        assert (await trip.chat("Which gate?")).text == "Gate C9."


@asynccontextmanager
async def gateway(*answers: bytes) -> AsyncIterator[str]:
    """The URL of a gateway with these answers, one for each request."""
    left = list(answers)

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(left.pop(0))
        writer.close()

    async with await asyncio.start_server(answer, "127.0.0.1", 0) as server:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"


BUSY = b"HTTP/1.1 502 Bad Gateway\r\nretry-after: 0\r\ncontent-length: 4\r\n\r\nbusy"
NONE = b'HTTP/1.1 200 OK\r\ncontent-length: 36\r\n\r\n{"conversations": [], "after": null}'


async def test_a_busy_gateway_is_asked_again() -> None:
    async with gateway(BUSY, NONE) as url, AsyncClient(url) as remote:
        assert (await remote.conversations()).conversations == []


async def test_a_gateway_that_stays_busy_is_an_error_with_its_text() -> None:
    async with gateway(BUSY, BUSY, BUSY) as url, AsyncClient(url) as remote:
        with pytest.raises(ServiceError, match="busy") as raised:
            await remote.conversations()

    assert raised.value.status == 502


async def test_an_answer_in_json_that_is_no_problem_is_an_error_with_its_text() -> None:
    text = b'HTTP/1.1 404 Not Found\r\ncontent-length: 9\r\n\r\n"no page"'
    async with gateway(text) as url, AsyncClient(url) as remote:
        with pytest.raises(ServiceError, match="no page"):
            await remote.conversations()


async def test_an_answer_of_another_service_is_an_error_that_says_so() -> None:
    page = b"HTTP/1.1 200 OK\r\ncontent-type: text/html\r\ncontent-length: 6\r\n\r\n<html>"
    async with gateway(page, page) as url, AsyncClient(f"{url}/prefix") as remote:
        with pytest.raises(ServiceError, match="/prefix/v1/conversations: the answer is not from"):
            await remote.conversations()
        with pytest.raises(ServiceError, match="/chat: the answer is not from") as raised:
            async for _ in remote.conversation("trip").stream("Which gate?"):
                pass

    assert raised.value.status == 200
    assert "or from another release of it" in str(raised.value)


async def test_a_stream_may_have_large_events_and_those_of_a_later_version() -> None:
    head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n"
    said = "Gate B42. " * 200_000
    events = f'event: mood\ndata: {{}}\n\nevent: text\ndata: {{"text": "{said}"}}\n\n'
    async with gateway((head + events).encode()) as url, AsyncClient(url) as remote:
        found = [event async for event in remote.conversation("trip").stream("Which gate?")]

    assert found == [TextDocument(text=said)]


def stream_of(event_id: int) -> bytes:
    at, data = "2026-05-01T09:30:00Z", '{"data": {}, "conversation": null, "user": null, '
    data += f'"id": {event_id}, "type": "facts", "at": "{at}", "tenant": "default"}}'
    head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n"
    return f"{head}id: {event_id}\ndata: {data}\n\n".encode()


@pytest.mark.parametrize("error", [StoreUnavailable("the database is locked"), Closed("it ends")])
async def test_events_go_on_when_the_memory_can_be_read_again(error: RemanenceError) -> None:
    body = bytes(response_to(error).body)
    length = f"content-length: {len(body)}".encode()
    away = b"HTTP/1.1 503 Service Unavailable\r\n" + length + b"\r\n\r\n" + body
    async with gateway(stream_of(1), away, stream_of(2)) as url, AsyncClient(url) as remote:
        events = remote.events()
        assert [(await anext(events)).id, (await anext(events)).id] == [1, 2]
        await events.aclose()
    while left := asyncio.all_tasks() - {asyncio.current_task()}:
        await asyncio.wait(left)  # for the inner generators, which end one after another


async def test_events_go_on_after_a_broken_connection(
    relay: Relay, memory: Memory, client: Service
) -> None:
    async with AsyncClient(relay.url) as remote, asyncio.timeout(30):
        await memory.facts.save("Ana lives in Lisbon.", user="ana")
        events = remote.events(after=0)
        first = await anext(events)
        relay.cut()
        await memory.facts.save("Ana has a dog.", user="ana")
        second = await anext(events)
        await events.aclose()

    assert [first.id, second.id] == [1, 2]


async def test_the_client_without_await_does_the_same(client: Service) -> None:
    def use(url: str) -> None:
        with Client(url) as remote:
            trip = remote.conversation("trip", user="ana")
            trip.append(FLIGHT)
            pieces = [piece for piece in trip.stream() if isinstance(piece, TextDocument)]
            remote.facts.save("Ana lives in Lisbon.", user="ana")
            event = next(remote.events(after=0))

            assert "".join(piece.text for piece in pieces) == "Gate B42."
            assert trip.state().last_seq == 2
            assert event.user == "ana"
            assert any("LH 454" in line for line in remote.export_user("ana"))

    async with asyncio.timeout(30):
        await asyncio.to_thread(use, str(client.http.base_url))


@pytest.mark.parametrize(
    ("ours", "theirs"),
    [
        (blocking.Client, service.AsyncClient),
        (blocking.Facts, service.AsyncFacts),
        (blocking.Conversation, conversation.AsyncConversation),
    ],
)
def test_both_clients_have_the_same_methods(ours: type, theirs: type) -> None:
    def methods(found: type) -> set[str]:
        return {name for name, _ in inspect.getmembers(found, callable) if name[0] != "_"}

    assert methods(ours) - {"close"} == methods(theirs)


def test_the_client_needs_nothing_of_the_server() -> None:
    program = (
        "import sys\n"
        "for name in ('fastapi', 'starlette', 'uvicorn', 'prometheus_client', 'apsw'):\n"
        "    sys.modules[name] = None\n"
        "import remanence.client"
    )

    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0


def test_the_client_without_its_extra_says_what_to_install() -> None:
    program = "import sys; sys.modules['httpx2'] = None; import remanence.client"

    run = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, check=False, text=True
    )

    assert "pip install '.[client]' in a checkout" in run.stderr
