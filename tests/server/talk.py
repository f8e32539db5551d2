"""A conversation of many turns by a client that cannot be changed, and checks of what came of it."""

import asyncio
import itertools
import json
import os
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any, Final, TypeAlias, cast

import h11
from starlette.types import ASGIApp, Message as ASGIMessage, Receive, Scope, Send
from tests.server.conftest import Client, served
from tests.wire.dialects import Call, Reply
from tests.wire.servers import ModelServer, Received

from remanence import Memory, Policy
from remanence.server.app import create_app

Body: TypeAlias = dict[str, Any]  # JSON

TURNS: Final = int(os.environ.get("REMANENCE_CLIENT_TURNS", "12"))
POLICY: Final = Policy(observe_tokens=600, tail_tokens=1_200, tail_keep_tokens=400, keep_last=2)
OFF: Final = {"x-remanence-memory": "off"}
PIXEL: Final = (
    "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk"
    "+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)
MAX_GROWTH: Final = 25_000
"""Characters of notes and newest messages, however long the conversation is."""

_MAX_MARKS: Final = 4


class Provider(ModelServer):
    """Answers whatever it is asked, and keeps the bytes of its answers.

    Clients have roles and tools of their own, which the protocols of `ModelServer` do not know.
    """

    def __init__(self) -> None:
        super().__init__()
        self.sent: list[bytes] = []
        for dialect in self.dialects.values():
            dialect.problem = _no_problem  # type: ignore[method-assign]

    async def respond(self, request: Received, writer: asyncio.StreamWriter) -> None:
        copy = _Copy(writer)
        await super().respond(request, cast("asyncio.StreamWriter", copy))  # as far as needed
        self.sent.append(_content(bytes(copy.written)))


def _no_problem(body: Body) -> str | None:
    return None


class _Copy:
    """A writer, and what was written to it."""

    def __init__(self, writer: asyncio.StreamWriter) -> None:
        self._writer = writer
        self.written = bytearray()

    def write(self, data: bytes) -> None:
        self.written += data
        self._writer.write(data)


def _content(response: bytes) -> bytes:
    """Return the body of a response of HTTP/1.1."""
    reader = h11.Connection(h11.CLIENT)
    reader.send(h11.Request(method="GET", target="/", headers=[("host", "here")]))
    reader.receive_data(response)
    reader.receive_data(b"")
    body = bytearray()
    while not isinstance(event := reader.next_event(), h11.EndOfMessage):
        body += event.data if isinstance(event, h11.Data) else b""
    return bytes(body)


@dataclass(kw_only=True)
class Exchange:
    """A request of a client as it reached the proxy, and the bytes and headers that it got."""

    path: str
    request: bytearray = field(default_factory=bytearray)
    response: bytearray = field(default_factory=bytearray)
    memory: str = ""


class Tap:
    """The proxy, with a copy of all that passes between it and its client."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app
        self.exchanges: list[Exchange] = []

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        passed = Exchange(path=scope["path"])
        self.exchanges.append(passed)

        async def receive_copied() -> ASGIMessage:
            message = await receive()
            passed.request += message.get("body", b"")
            return message

        async def send_copied(message: ASGIMessage) -> None:
            passed.response += message.get("body", b"")
            headers = dict(message.get("headers", ()))
            passed.memory += headers.get(b"x-remanence-memory", b"").decode()
            await send(message)

        await self._app(scope, receive_copied, send_copied)


@dataclass(frozen=True, kw_only=True)
class Setting:
    """A provider, the proxy before it with its memory, and what passed on both sides."""

    provider: Provider
    tap: Tap
    proxy: Client
    memory: Memory

    @property
    def url(self) -> str:
        return str(self.proxy.http.base_url)

    def turns(self) -> list[tuple[Body, Body]]:
        """The turns of the conversation: as the client sent each, and as the provider got it."""
        pairs = zip(self.tap.exchanges, self.provider.received, strict=True)
        return [(json.loads(one.request), got.body) for one, got in pairs if one.memory == "on"]


@asynccontextmanager
async def setting(database: str = "sqlite:///:memory:") -> AsyncIterator[Setting]:
    """A proxy whose memory observes early."""
    async with Provider().running() as provider, Memory.open(database, policy=POLICY) as memory:
        assert isinstance(provider, Provider)
        app = create_app(memory, openai_url=provider.url, anthropic_url=provider.url)
        async with served(tap := Tap(app)) as proxy:
            yield Setting(provider=provider, tap=tap, proxy=proxy, memory=memory)


def prompt_of(turn: int) -> str:
    return f"Turn {turn}: boat {turn} leaves from pier {turn} at {turn + 6}:30, please remember it."


def reply_to(turn: int) -> str:
    return f"Noted, pier {turn}. " + "The boat takes an hour in good weather. " * 10


def answers_to(turn: int, call: Call | None) -> list[Reply]:
    """The provider's answers to a turn: a call after some thought, if there is one, and a text."""
    thinking = f"Boat {turn} is at pier {turn}." if turn % 4 == 3 else ""
    last = Reply(reply_to(turn), thinking=thinking, id=str(turn))
    if call is None:
        return [last]
    return [Reply("", calls=(call,), thinking=f"Where is pier {turn}?", id=f"call_{turn}"), last]


async def observe_all(memory: Memory) -> None:
    for state in await memory.conversations():
        await memory.conversation(state.ref.id, tenant=state.ref.tenant).flush()


def check_bytes(here: Setting) -> None:
    """What the client got is what the provider sent, byte for byte."""
    for passed, sent in zip(here.tap.exchanges, here.provider.sent, strict=True):
        assert bytes(passed.response) == sent


def check_nothing_changed(here: Setting) -> None:
    """Requests and responses passed byte for byte."""
    check_bytes(here)
    asked = [bytes(one.request) for one in here.tap.exchanges]
    assert [got.raw for got in here.provider.received] == asked


async def check_tape(memory: Memory) -> None:
    """Each message of the client is on one tape, once."""
    (state,) = await memory.conversations()
    chat = memory.conversation(state.ref.id, tenant=state.ref.tenant, user=state.user)
    tape = await chat.messages()
    texts = "\n".join(message.text for message in tape)
    assert all(texts.count(prompt_of(turn)) == 1 for turn in range(TURNS))
    assert all(texts.count(f"Noted, pier {turn}.") == 1 for turn in range(TURNS))


async def check_requests(here: Setting, *, fields: str = "messages") -> None:
    """Each request is valid and of the client's own objects, they stay short, and prefixes stay."""
    turns = here.turns()
    for own, sent in turns:
        _check_own_objects(own, sent, fields)
        _check_pairs(sent[fields])
        assert _marks(sent) <= _MAX_MARKS
    sizes = [len(json.dumps(sent[fields])) for _, sent in turns]
    whole = len(json.dumps(turns[-1][0][fields]))
    breaks = [*_breaks([sent[fields] for _, sent in turns])]
    (state,) = await here.memory.conversations()
    changes = await here.memory.read_events(
        after=0, tenant=state.ref.tenant, types=("activated", "reflected"), limit=10_000
    )
    print(  # noqa: T201 - the figures of a run
        f"{TURNS} turns, {len(turns)} requests; the last history has {whole:,} characters, the "
        f"first request sent on {sizes[0]:,}, the longest {max(sizes):,}; {len(breaks)} changes of "
        f"a prefix, {len(changes.events)} of the notes"
    )
    assert max(sizes) - sizes[0] <= MAX_GROWTH
    assert len(breaks) <= len(changes.events)


def _check_own_objects(own: Body, sent: Body, fields: str) -> None:
    """All but the notes, and the message beside which something was recalled, is the client's."""
    assert {**sent, fields: None} == {**own, fields: None}
    at, added = 0, []
    for item in sent[fields]:
        if item in own[fields][at:]:
            at = own[fields].index(item, at) + 1
        elif not _is_joined(item, own[fields]):
            added.append(item)
    assert len(added) <= 2, added


def _is_joined(item: Body, own: Sequence[Body]) -> bool:
    """Whether a message has the texts of several prompts of the client, as Anthropic takes one."""
    texts = {text for one in own if one.get("role") == "system" for text in _texts(one)}
    return item.get("role") == "system" and {*_texts(item)} <= texts


def _texts(item: Body) -> list[str]:
    content = item["content"]
    return [content] if isinstance(content, str) else [part["text"] for part in content]


def _check_pairs(items: Sequence[Body]) -> None:
    """Each call of a tool has its result right behind it, and each result its call."""
    waiting: set[str] = set()
    for kind, id_ in itertools.chain.from_iterable(map(_steps, items)):
        if kind == "call":
            waiting.add(id_)
        elif kind == "result":
            waiting.remove(id_)
        else:
            assert not waiting, f"{waiting} without a result before {id_!r}"
    assert not waiting


def _steps(item: Body) -> Iterator[tuple[str, str]]:
    """Yield calls, results and texts of a message or an item."""
    if "call_id" in item:
        yield ("result" if item["type"].endswith("_output") else "call"), item["call_id"]
    elif "tool_call_id" in item:
        yield "result", item["tool_call_id"]
    elif item.get("role") == "user" or not isinstance(item.get("content"), list):
        yield from _parts(item)
    for block in item.get("content") or () if item.get("role") == "assistant" else ():
        if isinstance(block, dict) and block["type"] == "tool_use":
            yield "call", block["id"]
    for call in item.get("tool_calls") or ():
        yield "call", call["id"]


def _parts(item: Body) -> Iterator[tuple[str, str]]:
    content = item.get("content")
    for part in content if isinstance(content, list) else ():
        if part["type"] == "tool_result":
            yield "result", part["tool_use_id"]
        else:
            yield "text", json.dumps(part)[:80]
    if isinstance(content, str):
        yield "text", content[:80]


def _marks(value: object) -> int:
    if isinstance(value, dict):
        return ("cache_control" in value) + sum(map(_marks, value.values()))
    return sum(map(_marks, value)) if isinstance(value, list) else 0


def _breaks(requests: Sequence[Sequence[Body]]) -> Iterator[int]:
    """Yield the requests that do not begin as the one before, up to its newest turn."""
    plain = [[_plain(item) for item in items] for items in requests]
    for number, (before, items) in enumerate(itertools.pairwise(plain), 1):
        newest = max(at for at, item in enumerate(before) if "please remember it." in item)
        if before[:newest] != items[:newest]:
            yield number


def _plain(item: Body) -> str:
    """Return an item as a provider's cache sees it: without marks, a text as its one block."""
    content = item.get("content")
    if isinstance(content, str):
        content = [{"type": "text", "text": content}]
    return json.dumps(_unmarked({**item, "content": content}))


def _unmarked(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _unmarked(one) for key, one in value.items() if key != "cache_control"}
    return [*map(_unmarked, value)] if isinstance(value, list) else value
