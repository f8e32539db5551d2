"""Claude Code and Codex, unchanged, in front of the proxy: where a variable names their binary.

`npm install @anthropic-ai/claude-code @openai/codex` brings both; REMANENCE_TEST_CLAUDE and
REMANENCE_TEST_CODEX name the files in `node_modules/.bin`. They run offline, against a provider on
loopback, a process for each turn, and use their own tools.
"""

import asyncio
import base64
import os
from asyncio.subprocess import DEVNULL, PIPE
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TypeAlias

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
from tests.wire.dialects import Call, Reply

CODEX_CONFIG = """
model = "gpt-5"
model_provider = "here"
[model_providers.here]
name = "here"
base_url = "{base}/openai/v1"
wire_api = "responses"
env_key = "HERE_KEY"
http_headers = {{ {headers} }}
"""
OFF_TURNS = 4

pytestmark = pytest.mark.timeout(60 + 30 * TURNS)


@dataclass(frozen=True, kw_only=True)
class Program:
    """A client of the command line, at home in a folder of its own."""

    first: tuple[str, ...]
    next: tuple[str, ...]
    environment: dict[str, str]
    folder: Path
    text: Call
    image: Call

    async def answer_of(self, here: Setting, turn: int) -> str:
        """What it prints for a turn; every third one calls a tool first, every fifth an image."""
        call = self.image if turn % 5 == 4 else self.text if turn % 3 == 2 else None
        here.provider.script(*answers_to(turn, call and replace(call, id=f"{call.id}_{turn}")))
        return await self.say(prompt_of(turn), is_first=turn == 0)

    async def say(self, text: str, *, is_first: bool = False) -> str:
        """What it prints when it is told *text*."""
        process = await asyncio.create_subprocess_exec(
            *(self.first if is_first else self.next),
            text,
            env={"PATH": os.environ["PATH"], "IS_SANDBOX": "1", **self.environment},
            cwd=self.folder,
            stdin=DEVNULL,
            stdout=PIPE,
            stderr=PIPE,
        )
        output, errors = await process.communicate()
        assert process.returncode == 0, errors.decode()
        return f"{output.decode().rstrip()} "


Opener: TypeAlias = Callable[[Setting, Path, dict[str, str]], Program]


def claude_code(here: Setting, folder: Path, headers: dict[str, str]) -> Program:
    command = (os.environ["REMANENCE_TEST_CLAUDE"], "--allowedTools", "Read", "-p")
    text, image = _files(folder)
    return Program(
        first=command,
        next=(*command, "-c"),
        environment={
            "HOME": str(folder),
            "CLAUDE_CONFIG_DIR": str(folder / "claude"),
            "ANTHROPIC_BASE_URL": f"{here.url}/anthropic",
            "ANTHROPIC_AUTH_TOKEN": "a-token",
            "ANTHROPIC_CUSTOM_HEADERS": "\n".join(f"{key}: {headers[key]}" for key in headers),
            "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
        },
        folder=folder,
        text=Call("toolu", "Read", {"file_path": str(text)}),
        image=Call("toolu", "Read", {"file_path": str(image)}),
    )


def codex(here: Setting, folder: Path, headers: dict[str, str]) -> Program:
    command = (os.environ["REMANENCE_TEST_CODEX"], "exec", "--skip-git-repo-check")
    text, image = _files(folder)
    more = ", ".join(f'"{name}" = "{value}"' for name, value in headers.items())
    (folder / "config.toml").write_text(CODEX_CONFIG.format(base=here.url, headers=more))
    return Program(
        first=command,
        next=(*command, "resume", "--last"),
        environment={"HOME": str(folder), "CODEX_HOME": str(folder), "HERE_KEY": "a-key"},
        folder=folder,
        text=Call("call", "exec_command", {"cmd": f"cat {text.name}"}),
        image=Call("call", "view_image", {"path": str(image)}),
    )


def _files(folder: Path) -> tuple[Path, Path]:
    """A text and an image for the tools of a client."""
    (text := folder / "piers.txt").write_text("Each pier has a boat.\n")
    (image := folder / "pier.png").write_bytes(base64.b64decode(PIXEL.partition(",")[2]))
    return text, image


CASES = [
    pytest.param(
        program,
        field,
        marks=pytest.mark.skipif(variable not in os.environ, reason=f"{variable} is not set"),
        id=variable.rpartition("_")[2].lower(),
    )
    for program, field, variable in (
        (claude_code, "messages", "REMANENCE_TEST_CLAUDE"),
        (codex, "input", "REMANENCE_TEST_CODEX"),
    )
]


@pytest.mark.parametrize(("client", "field"), CASES)
async def test_a_client_of_the_command_line_runs_unchanged(
    client: Opener, field: str, tmp_path: Path
) -> None:
    async with setting(f"sqlite:///{tmp_path}/memory.db") as here:
        program = client(here, tmp_path, {})
        for turn in range(TURNS):
            assert await program.answer_of(here, turn) == reply_to(turn)
            await observe_all(here.memory)
        assert len(here.turns()) == TURNS + sum(t % 5 == 4 or t % 3 == 2 for t in range(TURNS))
        check_bytes(here)
        await check_tape(here.memory)
        await check_requests(here, fields=field)


@pytest.mark.parametrize(("client", "field"), CASES)
async def test_with_memory_off_each_byte_of_a_client_passes(
    client: Opener, field: str, tmp_path: Path
) -> None:
    async with setting() as here:
        program = client(here, tmp_path, OFF)
        for turn in range(OFF_TURNS):
            assert await program.answer_of(here, turn) == reply_to(turn)
        check_nothing_changed(here)
        assert await here.memory.conversations() == ()


@pytest.mark.skipif("REMANENCE_TEST_CLAUDE" not in os.environ, reason="no Claude Code is named")
async def test_claude_code_compacts_its_history_and_the_memory_goes_on(tmp_path: Path) -> None:
    async with setting() as here:
        program = claude_code(here, tmp_path, {})
        for turn in range(OFF_TURNS):
            await program.answer_of(here, turn)
        here.provider.script(Reply("<summary>They spoke of boats.</summary>", id="summary"))
        await program.say("/compact")
        assert await program.answer_of(here, OFF_TURNS + 1) == reply_to(OFF_TURNS + 1)
        memory = [exchange.memory for exchange in here.tap.exchanges]
        tapes = {state.ref.id: state for state in await here.memory.conversations()}
        texts = [
            message.text
            for state in tapes.values()
            for message in await here.memory.conversation(
                state.ref.id, tenant=state.ref.tenant
            ).messages()
        ]

    assert [each for each in memory if each != "on"] == [
        "off; the client asks for a summary of the conversation"
    ]
    assert len(tapes) == 2, "what the client goes on with is a branch"
    assert not any(text.startswith("CRITICAL") for text in texts)
