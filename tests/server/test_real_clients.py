"""Claude Code and Codex, unchanged, in front of the proxy: where a variable names their binary.

`npm install @anthropic-ai/claude-code @openai/codex` brings both; REMANENCE_TEST_CLAUDE and
REMANENCE_TEST_CODEX name the files in `node_modules/.bin`. They run offline, against a provider on
loopback.
"""

import asyncio
import json
import os
from asyncio.subprocess import DEVNULL, PIPE
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from tests.server.conftest import served
from tests.wire.dialects import Reply
from tests.wire.servers import ModelServer

from remanence import Memory, Policy
from remanence.server.app import create_app

TURNS = int(os.environ.get("REMANENCE_CLIENT_TURNS", "12"))
POLICY = Policy(observe_tokens=600, tail_tokens=1_200, tail_keep_tokens=400, keep_last=2)
CODEX_CONFIG = """
model = "gpt-5"
model_provider = "here"
[model_providers.here]
name = "here"
base_url = "{base}/openai/v1"
wire_api = "responses"
env_key = "HERE_KEY"
"""

pytestmark = pytest.mark.timeout(60 + 30 * TURNS)


class Provider(ModelServer):
    """Answers whatever it is asked: the clients have roles and tools of their own."""

    def __init__(self) -> None:
        super().__init__()
        for dialect in self._dialects.values():
            dialect.problem = _no_problem  # type: ignore[method-assign]


def _no_problem(body: dict[str, Any]) -> str | None:
    return None


@pytest.fixture
async def provider() -> AsyncIterator[ModelServer]:
    async with Provider().running() as server:
        yield server


@pytest.mark.skipif("REMANENCE_TEST_CLAUDE" not in os.environ, reason="no Claude Code is named")
async def test_claude_code_runs_unchanged(provider: ModelServer, tmp_path: Path) -> None:
    async with Memory.open(f"sqlite:///{tmp_path}/memory.db", policy=POLICY) as memory:
        async with served(create_app(memory, anthropic_url=provider.url)) as proxy:
            environment = {
                "HOME": str(tmp_path),
                "CLAUDE_CONFIG_DIR": str(tmp_path / "claude"),
                "ANTHROPIC_BASE_URL": f"{proxy.http.base_url}/anthropic",
                "ANTHROPIC_AUTH_TOKEN": "a-token",
                "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
            }
            for turn in range(TURNS):
                say = ("-c", "-p") if turn else ("-p",)
                command = (os.environ["REMANENCE_TEST_CLAUDE"], *say, prompt_of(turn))
                assert await answer_of(provider, command, environment, tmp_path) == reply_to(turn)
                await observe_all(memory)
        sent = [r.body for r in provider.received if r.body.get("tools")]
        await assert_bounded(memory, [body["messages"] for body in sent])


@pytest.mark.skipif("REMANENCE_TEST_CODEX" not in os.environ, reason="no Codex is named")
async def test_codex_runs_unchanged(provider: ModelServer, tmp_path: Path) -> None:
    async with Memory.open(f"sqlite:///{tmp_path}/memory.db", policy=POLICY) as memory:
        async with served(create_app(memory, openai_url=provider.url)) as proxy:
            (tmp_path / "config.toml").write_text(CODEX_CONFIG.format(base=proxy.http.base_url))
            environment = {"HOME": str(tmp_path), "CODEX_HOME": str(tmp_path), "HERE_KEY": "a-key"}
            for turn in range(TURNS):
                resume = ("resume", "--last") if turn else ()
                command = (os.environ["REMANENCE_TEST_CODEX"], "exec", "--skip-git-repo-check")
                command = (*command, *resume, prompt_of(turn))
                assert await answer_of(provider, command, environment, tmp_path) == reply_to(turn)
                await observe_all(memory)
        await assert_bounded(memory, [r.body["input"] for r in provider.received])


def prompt_of(turn: int) -> str:
    return f"Turn {turn}: boat {turn} leaves from pier {turn} at {turn + 6}:30, please remember it."


def reply_to(turn: int) -> str:
    return f"Noted, pier {turn}. " + "The boat takes an hour in good weather. " * 10


async def answer_of(
    provider: ModelServer, command: tuple[str, ...], environment: dict[str, str], folder: Path
) -> str:
    """The answer that the client prints."""
    number = int(command[-1].split()[1].rstrip(":"))
    provider.script(Reply(reply_to(number)))
    process = await asyncio.create_subprocess_exec(
        *command,
        env={"PATH": os.environ["PATH"], "IS_SANDBOX": "1", **environment},
        cwd=folder,
        stdin=DEVNULL,
        stdout=PIPE,
        stderr=PIPE,
    )
    output, errors = await process.communicate()
    assert process.returncode == 0, errors.decode()
    return output.decode().rstrip() + " "


async def observe_all(memory: Memory) -> None:
    for state in await memory.conversations():
        await memory.conversation(state.ref.id, tenant=state.ref.tenant).flush()


async def assert_bounded(memory: Memory, requests: list[list[Any]]) -> None:
    """Each request has what was said last, its size stays, and all turns are on one tape."""
    assert len(requests) == TURNS
    for turn, messages in enumerate(requests):
        assert prompt_of(turn) in json.dumps(messages)
    sizes = [len(json.dumps(messages)) for messages in requests]
    whole = sum(len(prompt_of(turn)) + len(reply_to(turn)) for turn in range(TURNS))
    assert sizes[-1] - sizes[0] < whole
    (state,) = await memory.conversations()
    tape = await memory.conversation(state.ref.id, tenant=state.ref.tenant).messages()
    texts = "\n".join(message.text for message in tape)
    assert all(texts.count(prompt_of(turn)) == 1 for turn in range(TURNS))
    assert all(texts.count(f"Noted, pier {turn}.") == 1 for turn in range(TURNS))
