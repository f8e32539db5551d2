"""Whatever beginning a client drops from its history, its request stays valid and loses no message."""

import asyncio
import itertools
import json
import re
from collections.abc import Iterator, Sequence
from datetime import timedelta
from typing import Any, Literal, NamedTuple, TypeAlias

import httpx2
import pytest
from hypothesis import example, given, settings, strategies as st
from tests.server.histories import NAMED, PATHS, Form, Path, Provider, Said, render

from remanence import Memory, Message, Policy
from remanence.server.app import create_app
from remanence.testing import FixedClock
from remanence.testing.clock import START
from remanence.types import TextPart, ToolCallPart, ToolResultPart
from remanence.wire.validate import anthropic_problems, openai_problems

pytestmark = pytest.mark.timeout(1_800)

IS_LONG = settings.get_current_profile_name() == "long"
LIVES = itertools.count()
"""Each life begins on a day of its own, so that their contexts are told apart."""

RULE = re.compile(r"<system-reminder>Rule \d\.</system-reminder>")
"""What a client's program puts into messages of the user, which no notes cover."""

IN_A_ROW = "as the one before it"
"""Two messages of a user in a row, which Anthropic takes for one."""

Body: TypeAlias = dict[str, Any]  # JSON


class Move(NamedTuple):
    """A request, and what the client does with its history before it."""

    action: Literal["say", "trim", "summarise", "summarise and answer", "regenerate", "edit"]
    at: int
    calls: int
    has_words: bool
    is_observed: bool
    is_restarted: bool


MOVES = st.builds(
    Move,
    action=st.sampled_from(
        ["say"] * 12 + ["trim", "trim", "summarise", "summarise and answer", "regenerate", "edit"]
    ),
    at=st.integers(0, 9),
    calls=st.sampled_from([0, 0, 1, 2]),
    has_words=st.booleans(),
    is_observed=st.sampled_from([False, False, True]),
    is_restarted=st.sampled_from([False] * 5 + [True]),
)


SAY = Move("say", at=0, calls=0, has_words=False, is_observed=False, is_restarted=False)


class Client:
    """A client that drops the beginning of its history."""

    def __init__(self, form: Form, window: int) -> None:
        self.form: Form = form
        self._window = window
        self._numbers = itertools.count()
        self.path: Path = ()

    def mark(self) -> str:
        return f"mark{next(self._numbers):05}"

    def ask(self, move: Move) -> None:
        """Change the history, which ends with the user then."""
        path = self.path
        asked = [at for at, said in enumerate(path) if said.role == "user" and not said.calls]
        if move.action in ("regenerate", "edit") and asked:
            at = asked[-1 - move.at % min(3, len(asked))]
            path = path[: at + (move.action == "regenerate")]
        elif move.action != "say":
            path = self._cut(path, move.at + 6, move.action)
        if self._window and len(path) > self._window:
            path = self._cut(path, self._window, "trim")
        if not path or path[-1].role == "assistant":
            text = f"I note {self.mark()} of the boats to the island, please."
            text += f"<system-reminder>Rule {move.at}.</system-reminder>" if move.at > 6 else ""
            calls = path[-1].calls if path else ()
            path = (*path, Said("user", text if move.has_words or not calls else "", calls))
        self.path = path

    def _cut(self, path: Path, length: int, action: str) -> Path:
        """Keep about *length* messages, from one on with which a request may begin."""
        for at in range(max(1, len(path) - length), len(path)):
            first = path[at]
            if first.role == "user" and first.text:
                end = (first._replace(calls=()), *path[at + 1 :])
            elif first.role == "assistant" and (self.form != "messages" or action == "summarise"):
                end = path[at:]
            else:
                continue
            if action == "trim":
                return end
            summary = Said("user", f"Summary {self.mark()} of the boats.")
            if action == "summarise":
                return (summary, *end)
            if end[0].role == "user":
                return (
                    summary,
                    Said("assistant", f"Noted {self.mark()} in the log of the harbour."),
                    *end,
                )
        return path

    def body(self) -> Body:
        field = "input" if self.form == "responses" else "messages"
        rendered = itertools.chain.from_iterable(render(said, self.form) for said in self.path)
        tools = [{"type": "function", "function": {"name": "find"}}]
        return {"model": "m", "max_tokens": 900, "tools": tools, field: list(rendered)}


def problems(form: Form, body: Body) -> list[str]:
    """The rules of a provider that a request breaks."""
    if form == "chat":
        return list(openai_problems(body))
    if form == "messages":
        return [one for one in anthropic_problems(body) if IN_A_ROW not in one]
    items = body["input"]
    calls = [item["call_id"] for item in items if item.get("type") == "function_call"]
    outputs = [item["call_id"] for item in items if item.get("type") == "function_call_output"]
    wrong = [id_ for id_ in {*calls, *outputs} if not calls.count(id_) == outputs.count(id_) == 1]
    return [f"calls and outputs of {id_!r}" for id_ in wrong]


def pieces(form: Form, body: Body) -> Iterator[str]:
    """Texts, calls and results of a request, in order."""
    for item in body["input" if form == "responses" else "messages"]:
        content = item.get("content")
        blocks = [{"text": content}] if isinstance(content, str) else content or []
        if result := item.get("tool_call_id"):
            yield f"result {result}"
            continue
        if item.get("type") in ("function_call", "function_call_output"):
            kind = "call" if item["type"] == "function_call" else "result"
            yield f"{kind} {item['call_id']}"
        for block in blocks:
            match block:
                case {"type": "tool_use", "id": id_}:
                    yield f"call {id_}"
                case {"tool_use_id": id_}:
                    yield f"result {id_}"
                case {"text": text}:
                    yield text
        for call in item.get("tool_calls") or ():
            yield f"call {call['id']}"


def pieces_of(message: Message) -> Iterator[str]:
    """Texts, calls and results of a stored message."""
    for part in message.content:
        match part:
            case TextPart(text=text):
                yield text
            case ToolCallPart(id=id_):
                yield f"call {id_}"
            case ToolResultPart(call_id=id_):
                yield f"result {id_}"


async def live(form: Form, window: int, keep_last: int, moves: Sequence[Move]) -> None:
    policy = Policy(
        observe_tokens=60,
        tail_tokens=120,
        tail_keep_tokens=30,
        keep_last=keep_last,
        note_ratio=1.0,
    )
    clock = FixedClock(START + timedelta(days=next(LIVES)))
    async with (
        Provider().running() as provider,
        Memory.open("sqlite:///:memory:", policy=policy, clock=clock) as memory,
    ):
        assert isinstance(provider, Provider)

        def proxy() -> httpx2.AsyncClient:
            app = create_app(memory, openai_url=provider.url, anthropic_url=provider.url)
            return httpx2.AsyncClient(
                transport=httpx2.ASGITransport(app=app), base_url="http://localhost", timeout=60
            )

        client, http = Client(form, window), proxy()
        for move in moves:
            http = proxy() if move.is_restarted else http
            if move.is_observed:
                for state in await memory.conversations():
                    await memory.conversation(state.ref.id, tenant=state.ref.tenant).flush()
            client.ask(move)
            await send(client, http, provider, memory, move)


async def send(
    client: Client, http: httpx2.AsyncClient, provider: Provider, memory: Memory, move: Move
) -> None:
    form, mark, body = client.form, client.mark(), client.body()
    assert not problems(form, body), "the client's own request is invalid"
    calls = tuple(f"call-{mark}-{number}" for number in range(move.calls))
    answer = Said("assistant", f"Noted {mark} in the book of the harbour.", calls)
    wanted = {"mark": mark, "text": answer.text, "calls": calls, "fails": False}
    response = await http.post(
        PATHS[form], json=body, headers=NAMED | {"x-answer": json.dumps(wanted)}
    )
    assert response.status_code == 200, response.text
    assert response.headers["x-remanence-memory"] == "on"
    assert "x-remanence-omitted" not in response.headers
    sent = provider.bodies.pop(mark)
    assert not (found := problems(form, sent)), f"{found} in {sent}"
    named = response.headers["x-remanence-conversation"]
    (state,) = [one for one in await memory.conversations() if one.ref.id == named]
    tape = memory.conversation(named, tenant=state.ref.tenant)
    stored = await tape.messages()
    noted = {part for one in stored if one.seq <= state.active_seq for part in pieces_of(one)}
    told = {part for one in stored for part in pieces_of(one)} - {answer.text}
    told -= {f"call {id_}" for id_ in calls}
    shown, own = list(pieces(form, sent)), list(pieces(form, body))
    lost = {*RULE.findall(json.dumps(body))} - {*RULE.findall(json.dumps(sent))}
    assert not lost, f"{lost} of {own} in {sent}"
    assert not (lost := {*own} - {*shown} - noted), f"{lost} of {own} in {sent}"
    assert sent == body or not (lost := told - {*shown} - noted), f"{lost} of the tape in {sent}"
    assert [one for one in shown if one in own] == [one for one in own if one in shown]
    client.path = (*client.path, answer)


@settings(max_examples=1_000 if IS_LONG else 6)
@given(
    form=st.sampled_from(["chat", "responses", "messages"]),
    window=st.sampled_from([0, 0, 6, 11, 16]),
    keep_last=st.sampled_from([2, 8, 15]),
    moves=st.lists(MOVES, min_size=10, max_size=40),
)
@example(  # the summary has the place of a call that no note covers
    form="responses",
    window=0,
    keep_last=15,
    moves=[
        SAY._replace(calls=1),
        SAY._replace(has_words=True),
        *[SAY] * 5,
        SAY._replace(action="summarise and answer", at=8),
        SAY._replace(is_observed=True),
    ],
)
def test_a_request_without_its_beginning_stays_valid_and_loses_nothing(
    form: Form, window: int, keep_last: int, moves: list[Move]
) -> None:
    asyncio.run(live(form, window, keep_last, moves))
