"""`remanence import` with a model on loopback that writes the notes."""

import asyncio
import json
import os
import signal
import sys
from pathlib import Path
from typing import Any

import pytest
from tests.wire.dialects import Reply
from tests.wire.reach import KEY
from tests.wire.servers import Fail, Held, ModelServer

# The command runs in a process of its own, which loads the clients of providers.
pytestmark = pytest.mark.timeout(180)

WORDS = "the quick brown fox jumps over a lazy dog near the old river bank at dawn "
NOTES = Reply("[NOTE Fact] user: saw a fox near the old river bank at dawn")


async def run_import(directory: Path, server: ModelServer) -> tuple[int, dict[str, Any], str]:
    """Import a long conversation; return exit code, JSON and stderr."""
    process = await start_import(directory, server)
    out, err = await process.communicate()
    assert process.returncode is not None
    return process.returncode, json.loads(out), err.decode()


async def start_import(
    directory: Path, server: ModelServer, *, settings: str = ""
) -> asyncio.subprocess.Process:
    lines = [
        {"conversation": "a", "role": "user", "content": f"{number}: {WORDS}"}
        for number in range(60)
    ]
    (directory / "remanence.toml").write_text(
        f'model = "openai:gpt-4o-mini@{server.url}/v1"\nworkers = 3\n{settings}\n'
        "[policy]\nobserve_tokens = 200\ntail_tokens = 400\ntail_keep_tokens = 50\n"
        "reflect_tokens = []\nextract_facts = false\n"
    )
    (directory / "history.jsonl").write_text("".join(f"{json.dumps(line)}\n" for line in lines))
    return await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "remanence", "import", "history.jsonl", "--json"),
        cwd=directory,
        env={**os.environ, "OPENAI_API_KEY": KEY},
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )


async def test_what_a_model_cost_is_counted_and_where_it_failed_is_said(
    server: ModelServer, tmp_path: Path
) -> None:
    server.script(*[NOTES] * 3, *[Fail(400)] * 40)

    code, imported, err = await run_import(tmp_path, server)

    assert code == 1
    assert (imported["messages"], imported["waiting"]) == (60, 1)
    assert imported["observed_tokens"] > 400
    assert imported["cost_usd"] > 0
    assert (
        "conversations that wait for another attempt: 1 (see 'remanence doctor' for the reasons)"
        in err
    )


async def test_an_interrupted_import_says_how_to_go_on(server: ModelServer, tmp_path: Path) -> None:
    held = Held()
    server.script(held)
    soon = "shutdown_timeout_seconds = 0.1"
    process = await start_import(tmp_path, server, settings=soon)
    await held.reached.wait()
    process.send_signal(signal.SIGINT)
    out, err = await process.communicate()

    assert (process.returncode, out) == (130, b"")
    done = "Interrupted after 60 messages, 60 of them new"
    assert err.decode() == f"{done}; run it again to continue.\n"
