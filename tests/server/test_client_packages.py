"""Clients of OpenAI and Anthropic in programs of their own, unchanged, in front of the proxy.

Those for Python run where REMANENCE_CLIENT_TURNS says how many turns. REMANENCE_TEST_OPENAI_NODE and
REMANENCE_TEST_ANTHROPIC_NODE name the folders `node_modules/openai` and
`node_modules/@anthropic-ai/sdk`, REMANENCE_TEST_LITELLM a Python in whose environment `litellm` and
`mcp` are installed.
"""

import asyncio
import json
import os
import sys
from asyncio.subprocess import PIPE
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from tests.server.talk import (
    OFF,
    PIXEL,
    TURNS,
    Setting,
    answers_to,
    check_bytes,
    check_nothing_changed,
    check_requests,
    check_tape,
    observe_all,
    prompt_of,
    reply_to,
    setting,
)
from tests.wire.dialects import Call

CLIENTS = Path(__file__).with_name("clients")
NAMED = {"x-remanence-conversation": "trip"}


def case(id_: str, variable: str, program: str, *arguments: str, path: str) -> Any:
    """A client, if its variable is set; a Python's own packages need only a number of turns."""
    value = os.environ.get(variable, "")
    runner = {"py": value if variable.endswith("LITELLM") else sys.executable, "mjs": "node"}
    command = [runner[program.rpartition(".")[2]], str(CLIENTS / program)]
    command += [value, *arguments] if program.endswith("mjs") else arguments
    is_missing = pytest.mark.skipif(not value, reason=f"{variable} is not set")
    return pytest.param(tuple(command), path, marks=is_missing, id=id_)


PYTHON, LITELLM = "REMANENCE_CLIENT_TURNS", "REMANENCE_TEST_LITELLM"
OPENAI_NODE, ANTHROPIC_NODE = "REMANENCE_TEST_OPENAI_NODE", "REMANENCE_TEST_ANTHROPIC_NODE"
OPENAI, ANTHROPIC = "openai/v1", "anthropic"
CASES = [
    case("openai", PYTHON, "openai_client.py", "chat", path=OPENAI),
    case("openai responses", PYTHON, "openai_client.py", "responses", path=OPENAI),
    case("anthropic", PYTHON, "anthropic_client.py", path=ANTHROPIC),
    case("openai for node", OPENAI_NODE, "openai_node.mjs", path=OPENAI),
    case("anthropic for node", ANTHROPIC_NODE, "anthropic_node.mjs", path=ANTHROPIC),
    case("litellm for openai", LITELLM, "litellm_client.py", "openai/gpt-5", path=OPENAI),
    case(
        "litellm for anthropic",
        LITELLM,
        "litellm_client.py",
        "anthropic/claude-haiku-4-5",
        path=ANTHROPIC,
    ),
]

pytestmark = pytest.mark.timeout(60 + 10 * TURNS)


@pytest.mark.parametrize(("command", "path"), CASES)
async def test_a_client_talks_with_streams_tools_images_and_thinking(
    command: tuple[str, ...], path: str
) -> None:
    async with setting() as here:
        async with client_of(here, command, path, NAMED) as client:
            for turn in range(TURNS):
                assert await answer_of(here, client, turn) == reply_to(turn)
                await observe_all(here.memory)
        assert len(here.turns()) == TURNS + len(range(2, TURNS, 3))
        check_bytes(here)
        await check_tape(here.memory)
        fields = "input" if "responses" in command else "messages"
        await check_requests(here, fields=fields)


@pytest.mark.parametrize(("command", "path"), CASES)
async def test_with_memory_off_each_byte_of_a_client_passes(
    command: tuple[str, ...], path: str
) -> None:
    async with setting() as here:
        async with client_of(here, command, path, {**NAMED, **OFF}) as client:
            for turn in range(6):
                assert await answer_of(here, client, turn) == reply_to(turn)
        check_nothing_changed(here)
        assert await here.memory.conversations() == ()


@asynccontextmanager
async def client_of(
    here: Setting, command: tuple[str, ...], path: str, headers: dict[str, str]
) -> AsyncIterator[asyncio.subprocess.Process]:
    """The client as a process, which ends by itself at the end of its input."""
    client = await asyncio.create_subprocess_exec(
        *(*command, f"{here.url}/{path}", json.dumps(headers)),
        env={**os.environ, "LITELLM_LOCAL_MODEL_COST_MAP": "True"},
        stdin=PIPE,
        stdout=PIPE,
    )
    assert client.stdin is not None
    yield client
    client.stdin.close()
    assert await client.wait() == 0


async def answer_of(here: Setting, client: asyncio.subprocess.Process, turn: int) -> object:
    """The answer that a client has got to a turn; every third one calls a tool first."""
    call = Call(f"call-{turn}", "find", {"pier": turn}) if turn % 3 == 2 else None
    here.provider.script(*answers_to(turn, call))
    asked = {"text": prompt_of(turn), "image": PIXEL if turn % 5 == 4 else None}
    assert client.stdin is not None
    assert client.stdout is not None
    client.stdin.write(f"{json.dumps({**asked, 'stream': turn % 2 == 1})}\n".encode())
    return json.loads(await client.stdout.readline())
