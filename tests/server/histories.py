"""Clients that share a conversation at several proxies, and a check of its tapes and requests.

A path is a history in the form of no API; the histories that were sent, and their answers, are the
paths of a tree, of which each tape must be one.
"""

import asyncio
import itertools
import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple, TypeAlias

import httpx2
from tests.wire.dialects import Call, Reply
from tests.wire.servers import Fail, ModelServer, Received

from remanence import Memory, Message

Body: TypeAlias = dict[str, Any]  # JSON
Form: TypeAlias = Literal["chat", "responses", "messages"]
Action: TypeAlias = Literal["say", "regenerate", "edit", "copy", "follow"]

PATHS: dict[Form, str] = {
    "chat": "openai/v1/chat/completions",
    "responses": "openai/v1/responses",
    "messages": "anthropic/v1/messages",
}
NAMED = {"x-remanence-conversation": "trip", "authorization": "Bearer key-of-a"}
FASTER = "off; another request of this conversation was faster"

_MARK = re.compile(r"mark\d{5}")


class Said(NamedTuple):
    """A message: results of these calls, and a text beside them, or an answer with calls."""

    role: Literal["user", "assistant"]
    text: str
    calls: tuple[str, ...] = ()


Path: TypeAlias = tuple[Said, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Move:
    """A request of a client, which another one *follows* with the same history."""

    client: int
    action: Action
    form: Form = "chat"
    proxy: int = 0
    at: int = 0
    calls: int = 0
    fails: bool = False
    streams: bool = False


class Provider(ModelServer):
    """Answers a request as its client wants, by a header."""

    def __init__(self) -> None:
        super().__init__()
        self.bodies: dict[str, Body] = {}

    async def respond(self, request: Received, writer: asyncio.StreamWriter) -> None:
        wanted = json.loads(request.headers["x-answer"])
        self.bodies[wanted["mark"]] = request.body
        calls = tuple(Call(id_, "find") for id_ in wanted["calls"])
        reply = Reply(wanted["text"], calls=calls, id=wanted["mark"])
        self.script(Fail(503) if wanted["fails"] else reply)
        await super().respond(request, writer)


class Clients:
    """Clients that send their histories of one conversation to several proxies."""

    def __init__(self, provider: Provider, proxies: Sequence[httpx2.AsyncClient]) -> None:
        self.proxies = list(proxies)
        self._provider = provider
        self._paths: dict[int, Path] = {}
        self._known: set[Path] = {()}
        self._kept: set[Path] = set()
        self._numbers = itertools.count()

    async def round(self, moves: Sequence[Move]) -> None:
        """Send the requests of some moves at once."""
        sent: list[Path] = []
        for move in moves:
            sent.append(sent[-1] if move.action == "follow" and sent else self._next(move))
        async with asyncio.TaskGroup() as group:
            for move, path in zip(moves, sent, strict=True):
                group.create_task(self._send(move, path))

    def _next(self, move: Move) -> Path:
        path = self._paths.get(move.client, ())
        text = f"I note {self._mark()} of the boats to the island, please."
        if move.action == "copy":
            path = self._paths.get(move.at % 3, ())
        elif move.action == "regenerate":
            while path and path[-1].role == "assistant":
                path = path[:-1]
            if path:
                return path
        elif move.action == "edit" and (
            questions := [
                at for at, said in enumerate(path) if said.role == "user" and not said.calls
            ]
        ):
            path = path[: questions[move.at % len(questions)]]
        last = path[-1] if path else None
        if last and last.role == "assistant" and last.calls:
            return (*path, Said("user", text if move.at % 2 else "", last.calls))
        if last and last.role == "user" and last.calls and not last.text:
            return (*path[:-1], last._replace(text=text))
        return (*path, Said("user", text))

    def _mark(self) -> str:
        return f"mark{next(self._numbers):05}"

    async def _send(self, move: Move, path: Path) -> None:
        mark = self._mark()
        calls = tuple(f"call-{mark}-{number}" for number in range(move.calls))
        answer = Said("assistant", f"Noted {mark}.", calls)
        wanted = {"mark": mark, "text": answer.text, "calls": calls, "fails": move.fails}
        field = "input" if move.form == "responses" else "messages"
        body = {
            "model": "m",
            "max_tokens": 900,
            "stream": move.streams,
            "tools": [{"type": "function", "function": {"name": "find"}}],
            field: list(itertools.chain.from_iterable(render(said, move.form) for said in path)),
        }
        self._learn(path)
        self._learn((*path, answer))
        proxy = self.proxies[move.proxy % len(self.proxies)]
        response = await proxy.post(
            PATHS[move.form], json=body, headers=NAMED | {"x-answer": json.dumps(wanted)}
        )
        assert response.status_code == (503 if move.fails else 200), response.text
        memory = response.headers["x-remanence-memory"]
        assert memory in ("on", FASTER), memory
        self._check_request(path, self._provider.bodies.pop(mark))
        whole = path if move.fails else (*path, answer)
        self._kept.add(whole if memory == "on" else path)
        self._paths[move.client] = whole

    def _learn(self, path: Path) -> None:
        self._known |= {path[:end] for end in range(len(path) + 1)}

    def _check_request(self, path: Path, body: Body) -> None:
        sent = json.dumps(body)
        own = {mark for said in path for mark in _MARK.findall(f"{said.text} {said.calls}")}
        foreign = set(_MARK.findall(sent)) - own
        assert not foreign, f"{foreign} of another history in {sent}"
        assert path[-1].text in sent

    async def check(self, memory: Memory) -> None:
        """Each tape is a history that was sent, and each history is on one tape."""
        tapes: dict[str, Path] = {}
        for state in await memory.conversations(limit=1_000):
            tape = memory.conversation(state.ref.id, tenant=state.ref.tenant)
            tapes[state.ref.id] = path_of(await tape.messages())
        paths = list(tapes.values())
        for id_, path in tapes.items():
            assert path in self._known, f"{id_} mixes histories: {path}"
            longer = [other for other in paths if other[: len(path)] == path]
            assert len(longer) == 1 or path[-1].role == "user", f"{id_} is on another tape, too"
        assert len(set(paths)) == len(paths)
        for path in self._kept:
            assert any(begins(tape, path) for tape in paths), f"lost: {path}"
        assert [problem for problem in await memory.check() if problem.level == "error"] == []


def begins(tape: Path, path: Path) -> bool:
    """Whether a tape begins with a path, whose results may have got words beside them later."""
    if len(tape) < len(path):
        return False
    last, at = path[-1], len(path) - 1
    is_same = tape[at] == last or (not last.text and tape[at]._replace(text="") == last)
    return is_same and tape[:at] == path[:at]


def render(said: Said, form: Form) -> list[Body]:
    """A message in the form of an API."""
    match said.role, form:
        case "assistant", "chat":
            function = {"name": "find", "arguments": "{}"}
            calls = [{"id": id_, "type": "function", "function": function} for id_ in said.calls]
            message: Body = {"role": "assistant", "content": said.text}
            return [message | {"tool_calls": calls} if calls else message]
        case "assistant", "messages":
            uses = [{"type": "tool_use", "id": i, "name": "find", "input": {}} for i in said.calls]
            text = {"type": "text", "text": said.text}
            return [{"role": "assistant", "content": [text, *uses]}]
        case "assistant", "responses":
            item = {"type": "function_call", "name": "find", "arguments": "{}"}
            message = {"role": "assistant", "content": said.text}
            return [message, *({**item, "call_id": id_} for id_ in said.calls)]
        case "user", "messages":
            blocks: list[Body] = [
                {"type": "tool_result", "tool_use_id": id_, "content": "open"} for id_ in said.calls
            ]
            blocks += [{"type": "text", "text": said.text}] if said.text else []
            return [{"role": "user", "content": blocks}]
    results = [
        {"role": "tool", "tool_call_id": id_, "content": "open"}
        if form == "chat"
        else {"type": "function_call_output", "call_id": id_, "output": "open"}
        for id_ in said.calls
    ]
    return [*results, *([{"role": "user", "content": said.text}] if said.text else [])]


def path_of(messages: Sequence[Message]) -> Path:
    """The path of a tape, whose results and words beside them may be several messages."""
    path: list[Said] = []
    for message in messages:
        results = tuple(result.call_id for result in message.tool_results)
        calls = tuple(call.id for call in message.tool_calls)
        role: Literal["user", "assistant"] = "assistant" if message.role == "assistant" else "user"
        said = Said(role, message.text.strip(), results or calls)
        before = path[-1] if path else None
        if before and role == before.role == "user" and before.calls and not before.text:
            path[-1] = Said("user", said.text, (*before.calls, *said.calls))
        else:
            path.append(said)
    return tuple(path)
