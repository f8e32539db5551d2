"""Webhooks: a receiver gets each event, signed, until it takes it, and over restarts."""

import asyncio
import base64
import json
import signal
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import httpx2
import pytest
from fastapi import FastAPI, Request, Response
from tests.project.test_readme import examples
from tests.server.conftest import POLICY, served
from tests.server.process import service

from remanence import Event, Memory, Message
from remanence.errors import InvalidArgument
from remanence.server.app import create_app
from remanence.server.webhooks import Webhook, post_events

SECRET = f"whsec_{base64.b64encode(bytes(range(32))).decode()}"
TEXT = "My flight LH 454 to San Francisco leaves on 2026-05-08 at 13:25 from gate B42. " * 4


class Receiver:
    """Takes posts, and answers with the scripted statuses, then 204."""

    def __init__(self) -> None:
        self.requests: list[tuple[dict[str, str], bytes]] = []
        self.statuses: list[int] = []
        self.arrived = asyncio.Condition()
        self.app = FastAPI()
        self.app.add_api_route("/hook", self._take, methods=["POST"])
        self.url = ""

    async def _take(self, request: Request) -> Response:
        body = await request.body()
        async with self.arrived:
            self.requests.append((dict(request.headers), body))
            self.arrived.notify_all()
        return Response(status_code=self.statuses.pop(0) if self.statuses else 204)

    async def wait_for(self, event_id: int) -> None:
        async with asyncio.timeout(30), self.arrived:
            await self.arrived.wait_for(lambda: event_id in self.ids)

    @property
    def ids(self) -> list[int]:
        return [json.loads(body)["id"] for _, body in self.requests]


@pytest.fixture
async def receiver() -> AsyncIterator[Receiver]:
    receiver = Receiver()
    async with served(receiver.app) as client:
        receiver.url = f"{str(client.http.base_url).rstrip('/')}/hook"
        yield receiver


def check_of_the_guide() -> Callable[[dict[str, str], bytes, str], bool]:
    page = Path(__file__).parents[2] / "docs" / "howto" / "events.md"
    code = next(code for code in examples(page) if "def is_genuine" in code)
    names: dict[str, Any] = {}
    exec(compile(code, page, "exec"), names)
    check: Callable[[dict[str, str], bytes, str], bool] = names["is_genuine"]
    return check


async def talk(memory: Memory, conversation: str) -> int:
    """Have a conversation observed and activated; return the id of the last event."""
    chat = memory.conversation(conversation, user="ana")
    for _ in range(4):
        await chat.append(Message.user(TEXT), Message.assistant(TEXT))
        await chat.flush()
        await chat.context()
    return (await memory.read_events()).last


async def test_each_event_is_posted_with_a_signature_that_the_guide_checks(
    receiver: Receiver,
) -> None:
    async with Memory.open("sqlite:///:memory:", policy=POLICY) as memory:
        last = await talk(memory, "trip")
        async with post_events(memory, [Webhook(receiver.url, secret=SECRET)]):
            await receiver.wait_for(last)

    assert receiver.ids == list(range(1, last + 1))
    is_genuine = check_of_the_guide()
    headers, body = receiver.requests[0]
    assert headers["content-type"] == "application/json"
    assert is_genuine(headers, body, SECRET)
    assert not is_genuine(headers, body + b" ", SECRET)
    assert not is_genuine({**headers, "webhook-timestamp": "1700000000"}, body, SECRET)
    assert b"LH 454" not in b"".join(body for _, body in receiver.requests)


async def test_an_event_that_is_refused_is_posted_again_under_its_id_and_in_order(
    receiver: Receiver, caplog: pytest.LogCaptureFixture
) -> None:
    receiver.statuses = [204, 500, 302]
    url = f"{receiver.url}?token=hidden"
    async with Memory.open("sqlite:///:memory:", policy=POLICY) as memory:
        await talk(memory, "trip")
        async with post_events(memory, [Webhook(url, secret=SECRET)]):
            await receiver.wait_for(3)

    assert receiver.ids[:5] == [1, 2, 2, 2, 3]
    ids = [headers["webhook-id"] for headers, _ in receiver.requests[:5]]
    assert ids[1] == ids[2] == ids[3]
    assert len(set(ids)) == 3
    assert "the receiver answered 500" in caplog.text
    assert "hidden" not in caplog.text


@pytest.mark.parametrize("late", [TimeoutError(), httpx2.ReadTimeout("")])
async def test_the_error_of_a_late_answer_says_how_long_it_was_waited_for(late: Exception) -> None:
    def answer_late(_: httpx2.Request) -> httpx2.Response:
        raise late

    webhook = Webhook("http://receiver.example/hook", secret=SECRET)
    transport = httpx2.MockTransport(answer_late)
    async with (
        Memory.open("sqlite:///:memory:", policy=POLICY) as memory,
        httpx2.AsyncClient(transport=transport) as client,
    ):
        await talk(memory, "trip")
        (event, *_) = (await memory.read_events(after=0)).events
        with pytest.raises(TimeoutError, match=r"^no answer within 15 s$") as raised:
            await webhook.post(client, memory.clock, event)

    assert raised.value.__cause__ is None  # which the log would quote


async def test_a_request_to_forget_is_in_the_event_wherever_events_go(receiver: Receiver) -> None:
    delivered: asyncio.Queue[Event] = asyncio.Queue()
    async with Memory.open("sqlite:///:memory:") as memory, served(create_app(memory)) as client:
        chat = memory.conversation("health", user="ana")
        for text in ("I have epilepsy.", "Please forget that I have epilepsy."):
            await chat.append(Message.user(text))
            await chat.end()
        (*_, event) = (await memory.read_events(after=0, types=["facts"])).events
        async with asyncio.timeout(30), asyncio.TaskGroup() as group:
            delivering = group.create_task(memory.deliver_events("mine", delivered.put))
            while (sent := await delivered.get()).id != event.id:
                pass
            delivering.cancel()
            async with client.http.stream("GET", "/v1/events", params={"after": 0}) as stream:
                async for line in stream.aiter_lines():
                    data = line.removeprefix("data: ")
                    if data != line and (seen := json.loads(data))["id"] == event.id:
                        break
            async with post_events(memory, [Webhook(receiver.url, secret=SECRET)]):
                await receiver.wait_for(event.id)
        posted = json.loads(receiver.requests[receiver.ids.index(event.id)][1])
        history = await memory.facts.list(user="ana", history=True)

    (ended,) = [fact.id for fact in history]
    assert event.data["requests"] == 1
    assert event.data["ended"] == ended
    assert sent == event
    assert seen["data"] == posted["data"] == event.data


@pytest.mark.parametrize("secret", ["", "plain", "whsec_", "whsec_c2hvcnQ=", f"whsec_{'*' * 44}"])
def test_a_secret_that_cannot_sign_is_refused_with_a_remedy(secret: str) -> None:
    with pytest.raises(InvalidArgument, match="set REMANENCE_WEBHOOK_SECRET to whsec_"):
        Webhook("https://example.com/hook", secret=secret)


@pytest.mark.parametrize(
    "url", ["", "example.com/hook", "ftp://example.com", "https://", "http://host:port/"]
)
def test_a_url_that_cannot_be_posted_to_is_refused(url: str) -> None:
    with pytest.raises(InvalidArgument, match="use a URL that begins with https://"):
        Webhook(url, secret=SECRET)


async def test_posts_go_on_after_a_restart_where_they_stood(
    receiver: Receiver, tmp_path: Path
) -> None:
    last = 0
    for conversation in ("trip", "other"):
        receiver.requests.clear()
        async with Memory.open(f"sqlite:///{tmp_path}/memory.db", policy=POLICY) as memory:
            before, last = last, await talk(memory, conversation)
            async with post_events(memory, [Webhook(receiver.url, secret=SECRET)]):
                await receiver.wait_for(last)

    # The last one before the end may come twice.
    assert [id_ for id_ in receiver.ids if id_ != before] == list(range(before + 1, last + 1))


@pytest.mark.timeout(60)
async def test_the_server_posts_events_to_the_url_that_it_was_given(
    receiver: Receiver, tmp_path: Path
) -> None:
    options = ("--webhook", receiver.url)
    async with service(tmp_path, *options, REMANENCE_WEBHOOK_SECRET=SECRET) as running:
        messages = [{"role": "user", "content": TEXT}]
        path = "/v1/conversations/trip"
        await running.http.post(f"{path}/messages", json={"messages": messages})
        await running.http.delete(path)
        await receiver.wait_for(1)
        assert await running.end(signal.SIGTERM) == 0

    assert json.loads(receiver.requests[0][1])["type"] == "forgotten"
