"""`remanence chat` in a pipe, with a model on loopback."""

import asyncio
import json
import os
import signal
import sys
from pathlib import Path
from subprocess import CompletedProcess

import pytest
from tests.wire.dialects import Call, Reply
from tests.wire.reach import KEY
from tests.wire.servers import Fail, Held, ModelServer, Raw

from remanence import Memory
from remanence.chat import BROKEN_OFF

# Each runs in a process of its own, which loads the clients of providers.
pytestmark = pytest.mark.timeout(60)


async def typed(
    directory: Path, model: str, lines: str, *options: str, key: str = KEY
) -> "CompletedProcess[str]":
    """The command after some lines on its stdin."""
    process = await started(directory, model, *options, key=key)
    out, err = await process.communicate(lines.encode())
    assert process.returncode is not None
    return CompletedProcess(options, process.returncode, out.decode(), err.decode())


async def started(
    directory: Path, model: str, *options: str, key: str = KEY
) -> asyncio.subprocess.Process:
    """The command, which waits for a line."""
    arguments = ["chat", "--model", model, "--db", "sqlite:///memory.db", *options]
    return await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "remanence", *arguments),
        cwd=directory,
        env={
            **os.environ,
            "OPENAI_API_KEY": key,
            "ANTHROPIC_API_KEY": key,
            "COLUMNS": "20",
        },  # wraps only in a terminal
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )


async def test_each_line_of_a_pipe_is_answered_and_kept(
    server: ModelServer, tmp_path: Path
) -> None:
    server.script(Reply("Gate \x9b5mB42.\x1b[31m\u202e"), Reply("At nine."))
    model = f"openai:gpt-4o-mini@{server.url}/v1"
    options = ("--conversation", "trip", "--user", "ana", "--system", "You help.")
    run = await typed(tmp_path, model, "Which gate?\n\nWhen?\n", *options)
    async with Memory.open(f"sqlite:///{tmp_path / 'memory.db'}") as memory:
        trip = memory.conversation("trip", user="ana")
        kept = [message.text for message in await trip.messages()]
        user = (await trip.state()).user

    assert (run.returncode, run.stdout) == (0, "Gate 5mB42.[31m\nAt nine.\n")
    assert run.stderr.count("openai:gpt-4o-mini: input") == 2
    assert "\x1b" not in run.stdout + run.stderr
    assert kept[0::2] == ["Which gate?", "When?"]
    assert user == "ana"
    assert server.received[0].body["messages"][0] == {"role": "system", "content": "You help."}
    assert server.received[0].body["stream"] is True


@pytest.mark.req("L-10")
async def test_under_lango_the_answering_model_also_writes_the_notes(
    server: ModelServer, tmp_path: Path
) -> None:
    (tmp_path / "remanence.toml").write_text(
        'preset = "lango"\n[policy]\nenabled = true\nobserve_tokens = 20\n'
    )
    server.script(*[Reply("#1-2 [NOTE Fact] user: flies from gate B42 at nine")] * 9)
    model = f"openai:gpt-4o-mini@{server.url}/v1"
    await typed(tmp_path, model, "My flight leaves at nine. " * 9 + "\nWhich gate?\n")

    asked = [str(received.body["messages"]) for received in server.received]
    assert {received.body["model"] for received in server.received} == {"gpt-4o-mini"}
    assert any("My flight leaves" in text and "#1" in text for text in asked)


async def test_a_line_that_gets_no_answer_ends_a_pipe_with_the_reason(
    server: ModelServer, tmp_path: Path
) -> None:
    server.script(Fail(404, "no such model", "not_found_error"))
    model = f"openai:nope@{server.url}/v1"
    run = await typed(tmp_path, model, "Which gate?\nWhen?\n")

    assert (run.returncode, run.stdout) == (1, "")
    assert (
        run.stderr
        == "remanence: openai:nope is not known to its provider (HTTP 404): no such model\n"
        "The message is kept without an answer; the lines after it were not sent.\n"
    )
    assert len(server.received) == 1


@pytest.mark.parametrize(
    ("failure", "text"),
    [
        (Fail(401), "refused the key (HTTP 401): check OPENAI_API_KEY\n"),
        pytest.param(
            Fail(429, headers={"retry-after": "3600"}),
            "fewer calls (HTTP 429): try again in 3,600 s\n",
            marks=pytest.mark.slow,
        ),
    ],
)
async def test_a_refused_call_has_a_remedy(
    server: ModelServer, tmp_path: Path, failure: Fail, text: str
) -> None:
    server.script(failure)
    run = await typed(tmp_path, f"openai:gpt-4o-mini@{server.url}/v1", "Which gate?\n")

    assert text in run.stderr


async def test_an_interrupt_in_a_pipe_keeps_what_was_said(
    server: ModelServer, tmp_path: Path
) -> None:
    server.script(Held(Reply("Gate B42 is open.")))
    process = await started(tmp_path, f"openai:gpt-4o-mini@{server.url}/v1")
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write(b"Which gate?\n")
    said = (await process.stdout.read(1_000)).decode()
    process.send_signal(signal.SIGINT)
    more, err = await process.communicate()
    async with Memory.open(f"sqlite:///{tmp_path / 'memory.db'}") as memory:
        kept = [message.text for message in await memory.conversation("chat").messages()]

    assert (process.returncode, err) == (130, b"")
    assert kept == ["Which gate?", f"{said}{more.decode()}\n{BROKEN_OFF}"]


async def test_an_answer_that_was_paused_is_not_shown_as_cut_off(
    server: ModelServer, tmp_path: Path
) -> None:
    used = {"type": "server_tool_use", "id": "s", "name": "web_search", "input": {"query": "LH"}}
    ended = {"stop_reason": "pause_turn"}
    events: list[dict[str, object]] = [
        {
            "type": "message_start",
            "message": {"type": "message", "content": [used], **ended, "usage": {}},
        },
        {"type": "message_delta", "delta": ended, "usage": {}},
        {"type": "message_stop"},
    ]
    server.script(Raw(tuple(f"{json.dumps(event)}\nevent: {event['type']}" for event in events)))
    run = await typed(tmp_path, f"anthropic:claude-haiku-4-5@{server.url}", "Which gate?\n")

    assert "paused by the provider before its end]" in run.stderr
    assert "cut off" not in run.stderr


async def test_a_missing_key_is_told_in_one_line(tmp_path: Path) -> None:
    run = await typed(tmp_path, "openai:gpt-4o-mini", "Hello.\n", key="")

    assert run.returncode == 1
    assert run.stderr == "remanence: openai:gpt-4o-mini needs a key: set OPENAI_API_KEY\n"


async def test_the_model_keeps_a_fact_of_the_named_user(
    server: ModelServer, tmp_path: Path
) -> None:
    call = Call("a", "memory_save", {"summary": "Ana keeps bees"})
    server.script(Reply("", calls=(call,)), Reply("Kept."))
    model = f"openai:gpt-4o-mini@{server.url}/v1"
    run = await typed(tmp_path, model, "I keep bees.\n", "--user", "ana")
    async with Memory.open(f"sqlite:///{tmp_path / 'memory.db'}") as memory:
        facts = await memory.facts.list(user="ana")
        [spent] = await memory.usage(user="ana")

    assert (run.returncode, run.stdout) == (0, "Kept.\n")
    assert "[memory_save" in run.stderr
    assert "Ana keeps bees" in [fact.summary for fact in facts]
    assert (spent.purpose, spent.calls) == ("chat", 2)


async def test_without_tools_the_model_is_offered_none(server: ModelServer, tmp_path: Path) -> None:
    model = f"openai:gpt-4o-mini@{server.url}/v1"
    await typed(tmp_path, model, "Hello.\n", "--user", "ana", "--no-tools")

    assert "tools" not in server.received[0].body
