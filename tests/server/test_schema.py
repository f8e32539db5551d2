"""The service answers as its OpenAPI document says: schemathesis, where a variable names it.

REMANENCE_TEST_SCHEMATHESIS names the program `st` of an environment with `schemathesis`.
"""

import asyncio
import os
from asyncio.subprocess import PIPE
from pathlib import Path

import pytest
from tests.server.process import service

PROGRAM = os.environ.get("REMANENCE_TEST_SCHEMATHESIS", "")
WITHOUT_MODELS = r"openai|anthropic|chat|events"
LEFT_OUT = "positive_data_acceptance,use_after_free"
"""A schema does not say what is a name, or a message of a provider; and a conversation without
messages, such as one that was deleted, can be read."""


@pytest.mark.skipif(not PROGRAM, reason="REMANENCE_TEST_SCHEMATHESIS names no program")
@pytest.mark.timeout(900)
async def test_generated_requests_are_answered_as_the_document_says(tmp_path: Path) -> None:
    async with service(tmp_path) as running:
        process = await asyncio.create_subprocess_exec(
            *(PROGRAM, "run", f"{running.http.base_url}/openapi.json", "--no-color"),
            *("--max-examples", "40", "--exclude-path-regex", WITHOUT_MODELS),
            *("--exclude-checks", LEFT_OUT),
            cwd=tmp_path,
            stdout=PIPE,
        )
        output, _ = await process.communicate()

    assert process.returncode == 0, output.decode()
    assert "Traceback" not in "\n".join(running.log)
