"""Opening a memory or a chat with a named model leaves the event loop to others."""

import os
import subprocess
import sys

import pytest
from tests.slow import slow_except

PROGRAM = """
import asyncio, sys, threading

class Watch:
    seen = []
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in ("pydantic_ai", "anthropic", "genai_prices"):
            self.seen.append((name, threading.current_thread() is threading.main_thread()))

sys.meta_path.insert(0, Watch())
from remanence import Chat, Memory

async def open_memory():
    async with Memory.open("sqlite:///:memory:", model="anthropic:claude-haiku-4-5"):
        pass

async def make_chat():
    async with Memory.open("sqlite:///:memory:") as memory:
        model = "anthropic:claude-haiku-4-5"
        await asyncio.to_thread(Chat, memory.conversation("a"), model=model)

asyncio.run(locals()[sys.argv[1]]())
assert any(name in ("pydantic_ai", "anthropic") for name, _ in Watch.seen), Watch.seen
on_loop = [name for name, is_main in Watch.seen if is_main]
assert not on_loop, on_loop
"""


@pytest.mark.parametrize("opening", slow_except(["open_memory", "make_chat"], ["make_chat"]))
@pytest.mark.timeout(120)  # the package takes seconds to import on a busy machine
def test_a_providers_package_is_imported_by_another_thread_than_the_loops(opening: str) -> None:
    environment = {**os.environ, "ANTHROPIC_API_KEY": "zz-test"}

    run = subprocess.run(
        [sys.executable, "-c", PROGRAM, opening],
        capture_output=True,
        check=False,
        env=environment,
        text=True,
    )

    assert run.returncode == 0, run.stderr
