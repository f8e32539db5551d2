"""SIGTERM, SIGINT and SIGHUP: what is in progress ends in order, and nothing is left behind."""

import asyncio
import json
import re
import signal
import sqlite3
from collections.abc import AsyncIterator
from contextlib import closing
from pathlib import Path
from typing import Literal

import httpx2
import openai
import pytest
from openai.types.chat import ChatCompletionUserMessageParam
from openai.types.responses import ResponseErrorEvent
from tests.server.conftest import Speaker, served
from tests.server.process import Service, service
from tests.wire.dialects import Reply
from tests.wire.servers import Held, ModelServer

from remanence import Memory
from remanence.chat import BROKEN_OFF
from remanence.cli.service import ending_on_signals
from remanence.server.app import create_app

CHAT = "/v1/conversations/trip/chat"
QUESTION = "My flight to Lisbon is LH 454 on the fifth of May at nine, and I take the early bus."
OBSERVED_EARLY = {
    "REMANENCE_POLICY__OBSERVE_TOKENS": "10",
    "REMANENCE_POLICY__TAIL_TOKENS": "40",
    "REMANENCE_POLICY__TAIL_KEEP_TOKENS": "5",
    "REMANENCE_POLICY__KEEP_LAST": "1",
}

# Each test starts a process that loads the clients of providers. Both signals set the same event;
# each of them ends some of the processes.
pytestmark = pytest.mark.timeout(60)


@pytest.fixture
async def answering() -> AsyncIterator[ModelServer]:
    async with ModelServer().running() as server:
        yield server


@pytest.fixture
async def noting() -> AsyncIterator[ModelServer]:
    async with ModelServer().running() as server:
        yield server


def calls(directory: Path, purpose: str) -> list[tuple[str, int]]:
    """Outcome and input tokens of the recorded calls."""
    select = "SELECT outcome, input_tokens FROM model_calls WHERE purpose = ?"
    with closing(sqlite3.connect(directory / "memory.db")) as connection:
        return connection.execute(select, (purpose,)).fetchall()


def state(directory: Path) -> tuple[int, int, str | None]:
    """last_seq, observed_seq and the owner of the lease."""
    select = "SELECT last_seq, observed_seq, lease_owner FROM states"
    with closing(sqlite3.connect(directory / "memory.db")) as connection:
        found: tuple[int, int, str | None] = connection.execute(select).fetchone()
        return found


async def until_refused(running: Service) -> None:
    """Ask until there is no server any more."""
    while True:
        try:
            await running.http.get("/healthz")
        except httpx2.TransportError:
            return


async def ask(running: Service) -> None:
    response = await running.http.post(CHAT, json={"text": QUESTION, "user": "ana"})
    assert response.status_code == 200


async def test_a_step_in_progress_is_finished_after_the_last_request_was_taken(
    tmp_path: Path, answering: ModelServer, noting: ModelServer
) -> None:
    step = Held(Reply("[2026-05-05] IMPORTANT user: flies to Lisbon with LH 454"))
    noting.script(step)
    model = f"openai:mine@{answering.url}/v1"
    variables = {**OBSERVED_EARLY, "REMANENCE_OBSERVER_MODEL": f"openai:notes@{noting.url}/v1"}
    async with service(tmp_path, "--model", model, **variables) as running, asyncio.timeout(50):
        await ask(running)
        await step.reached.wait()
        running.process.send_signal(signal.SIGTERM)
        await until_refused(running)
        still_running = running.process.returncode is None
        step.gate.set()
        code = await running.process.wait()

    _, observed_seq, owner = state(tmp_path)
    assert (still_running, code) == (True, 0)
    assert observed_seq > 0
    assert owner is None
    assert [outcome for outcome, _ in calls(tmp_path, "observe")][:1] == ["ok"]


async def test_a_step_that_takes_longer_is_ended_and_its_call_recorded(
    tmp_path: Path, answering: ModelServer, noting: ModelServer
) -> None:
    step = Held()
    noting.script(step)
    variables = {
        **OBSERVED_EARLY,
        "REMANENCE_OBSERVER_MODEL": f"openai:notes@{noting.url}/v1",
        "REMANENCE_SHUTDOWN_TIMEOUT_SECONDS": "0.3",
    }
    model = f"openai:mine@{answering.url}/v1"
    async with service(tmp_path, "--model", model, **variables) as running, asyncio.timeout(50):
        await ask(running)
        await step.reached.wait()
        code = await running.end(signal.SIGTERM)

    last_seq, observed_seq, owner = state(tmp_path)
    assert code == 0
    assert (last_seq, observed_seq, owner) == (2, 0, None)
    assert [outcome for outcome, _ in calls(tmp_path, "observe")] == ["cancelled"]


async def test_an_open_stream_ends_with_an_event_and_keeps_what_was_said(
    tmp_path: Path, answering: ModelServer
) -> None:
    answering.script(Held(Reply("Gate B42 is open.")))
    model = f"anthropic:mine@{answering.url}"
    async with service(tmp_path, "--model", model) as running, asyncio.timeout(50):
        body = {"text": QUESTION, "stream": True, "user": "ana"}
        async with running.http.stream("POST", CHAT, json=body) as response:
            lines = response.aiter_lines()
            first = await anext(lines)
            running.process.send_signal(signal.SIGINT)
            rest = [line async for line in lines if line]
        code = await running.process.wait()

    assert first == "event: text"
    assert rest[-2] == "event: error"
    assert '"status": 503' in rest[-1]
    assert code == 0
    assert state(tmp_path)[:1] == (2,)
    [(outcome, input_tokens)] = calls(tmp_path, "chat")
    assert outcome == "cancelled"
    assert input_tokens > 0
    [line] = [line for line in running.log if "POST" in line]
    assert re.fullmatch(r"[\d-]+ [\d:,]+ INFO \[\w+\] POST \S+/chat: 200 in \d+ ms", line)
    assert "Traceback" not in "".join(running.log)


async def test_a_turn_in_one_piece_is_ended_with_a_problem(
    memory: Memory, speaker: Speaker
) -> None:
    speaker.gate, ending = asyncio.Event(), asyncio.Event()
    async with served(create_app(memory, model=speaker, ending=ending)) as client:
        async with asyncio.timeout(60), asyncio.TaskGroup() as group:
            asked = group.create_task(client.post(CHAT, text=QUESTION))
            await speaker.asked.wait()
            ending.set()
        response = asked.result()

    assert response.status_code == 503
    assert response.headers["content-type"] == "application/problem+json"
    assert "send it again" in response.json()["detail"]
    assert speaker.broken_off.is_set()


class ImpatientGate(asyncio.Event):
    """A gate that opens when the time limit of its wait expires."""

    limit: asyncio.Timeout

    async def wait(self) -> Literal[True]:
        try:
            async with asyncio.timeout(None) as self.limit:
                return await super().wait()
        except TimeoutError:
            return True


@pytest.mark.parametrize("first", ["time limit", "shutdown"])
async def test_a_turn_ends_although_a_time_limit_in_it_expires_at_the_same_moment(
    memory: Memory, speaker: Speaker, first: str
) -> None:
    speaker.gate, ending = (gate := ImpatientGate()), asyncio.Event()
    async with served(create_app(memory, model=speaker, ending=ending)) as client:
        body = {"text": "Which gate?", "stream": True}
        async with client.http.stream("POST", CHAT, json=body) as response:
            lines = response.aiter_lines()
            await anext(lines)
            if first == "shutdown":
                ending.set()
            gate.limit.reschedule(asyncio.get_running_loop().time())
            ending.set()
            rest = [line async for line in lines]

    assert "event: error" in rest
    _, said = await memory.conversation("trip").messages()
    assert said.text == f"Gate\n{BROKEN_OFF}"


@pytest.mark.parametrize("stream", [False, True])
async def test_a_proxied_request_ends_with_an_error_that_its_client_reads(
    memory: Memory, answering: ModelServer, *, stream: bool
) -> None:
    held, ending = Held(Reply("Gate B42 is open.")), asyncio.Event()
    answering.script(held)
    app = create_app(memory, openai_url=answering.url, ending=ending, grace_seconds=0.1)
    async with served(app) as server, asyncio.timeout(60), asyncio.TaskGroup() as group:
        client = openai.AsyncOpenAI(
            base_url=f"{server.http.base_url}/openai/v1", api_key="key", max_retries=0
        )
        asked = group.create_task(ask_openai(client, stream=stream))
        await held.reached.wait()
        ending.set()
        error = await asked
        await client.close()

    if stream:
        assert error.code == error.type == "server_error"
        assert str(error) == "the server is shutting down: send the request again"
    else:
        assert isinstance(error, openai.InternalServerError)
        assert error.status_code == 503


async def test_a_proxied_stream_is_ended_before_the_process(
    tmp_path: Path, answering: ModelServer
) -> None:
    held = Held(Reply("Gate B42 is open."))
    answering.script(held)
    body = {"model": "gpt-5", "messages": [{"role": "user", "content": QUESTION}], "stream": True}
    async with service(tmp_path, "--openai-url", answering.url) as running, asyncio.timeout(50):
        path = "openai/v1/chat/completions"
        async with running.http.stream("POST", path, json=body) as response:
            lines = response.aiter_lines()
            await anext(lines)
            running.process.send_signal(signal.SIGTERM)
            rest = [line async for line in lines if line]
        code = await running.process.wait()

    assert rest[-2] == "event: error"
    assert "the server is shutting down" in rest[-1]
    assert code == 0
    assert "Traceback" not in "".join(running.log)


async def test_a_stream_of_the_responses_api_ends_with_an_error_in_its_form(
    memory: Memory, answering: ModelServer
) -> None:
    held, ending = Held(Reply("Gate B42 is open.")), asyncio.Event()
    answering.script(held)
    app = create_app(memory, openai_url=answering.url, ending=ending, grace_seconds=0.1)
    body = {"model": "gpt-5", "input": QUESTION, "stream": True}
    async with served(app) as server, asyncio.timeout(60), asyncio.TaskGroup() as group:
        asked = group.create_task(server.http.post("openai/v1/responses", json=body))
        await held.reached.wait()
        ending.set()

    *_, before, last = re.findall("^data: (.*)$", asked.result().text, re.MULTILINE)
    error = ResponseErrorEvent.model_validate_json(last)
    assert error.code == "server_error"
    assert error.sequence_number == json.loads(before)["sequence_number"] + 1


async def ask_openai(client: openai.AsyncOpenAI, *, stream: bool) -> openai.APIError:
    """Return the error in which a request ends."""
    message: ChatCompletionUserMessageParam = {"role": "user", "content": QUESTION}
    try:
        if stream:
            async for _ in await client.chat.completions.create(
                model="gpt-5", messages=[message], stream=True
            ):
                pass
        else:
            await client.chat.completions.create(model="gpt-5", messages=[message])
    except openai.APIError as error:
        return error
    raise AssertionError("the request was answered")


async def test_an_answer_that_comes_within_the_grace_period_is_sent_whole(
    memory: Memory, answering: ModelServer
) -> None:
    held, ending = Held(Reply("Gate B42 is open.")), asyncio.Event()
    answering.script(held)
    app = create_app(memory, openai_url=answering.url, ending=ending, grace_seconds=50)
    body = {"model": "gpt-5", "messages": [{"role": "user", "content": QUESTION}]}
    async with served(app) as server, asyncio.timeout(60), asyncio.TaskGroup() as group:
        asked = group.create_task(
            server.http.post("openai/v1/chat/completions", json={**body, "stream": True})
        )
        await held.reached.wait()
        ending.set()
        held.gate.set()

    assert asked.result().text.endswith("data: [DONE]\n\n")
    assert "server_error" not in asked.result().text


async def test_a_closed_terminal_ends_the_server_in_order(tmp_path: Path) -> None:
    before = signal.signal(signal.SIGHUP, signal.SIG_DFL)  # ignored under nohup, and inherited
    try:
        async with service(tmp_path) as running:
            await running.http.get("/healthz")

            assert await running.end(signal.SIGHUP) == 0
    finally:
        signal.signal(signal.SIGHUP, before)
    assert any("shutting down" in line for line in running.log)


async def test_a_server_under_nohup_ignores_a_closed_terminal() -> None:
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        with ending_on_signals() as ending:
            signal.raise_signal(signal.SIGHUP)
            await asyncio.sleep(0)

            assert not ending.is_set()
    finally:
        signal.signal(signal.SIGHUP, before)
