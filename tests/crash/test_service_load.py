"""Many clients of one `remanence serve`, which runs on, is killed, or is told to end."""

import asyncio
import os
import signal
from collections import Counter, defaultdict
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from itertools import count, cycle
from pathlib import Path
from typing import Any

import httpx2
import pytest
from tests.server.process import Service, service
from tests.wire.servers import ModelServer

from remanence import Memory, Policy
from remanence.testing import check_coverage, check_tiling

CLIENTS = int(os.environ.get("REMANENCE_TEST_LOAD_CLIENTS", "200"))
SECONDS = float(os.environ.get("REMANENCE_TEST_LOAD_SECONDS", "60"))
TURNS_OF_A_CONVERSATION = 12
ANSWER = "[Fact] noted"
OBSERVED_EARLY = {
    "REMANENCE_POLICY__OBSERVE_TOKENS": "100",
    "REMANENCE_POLICY__TAIL_TOKENS": "200",
    "REMANENCE_POLICY__TAIL_KEEP_TOKENS": "50",
    "REMANENCE_POLICY__KEEP_LAST": "2",
}


class Load:
    """Clients that talk without a pause, half of them through the proxy; what came of it."""

    def __init__(self, running: Service) -> None:
        self.acknowledged: dict[str, list[str]] = defaultdict(list)
        self.outcomes: Counter[str] = Counter()
        self._running = running
        self._answers = asyncio.Semaphore(0)
        self._is_over = False

    @asynccontextmanager
    async def clients(self, number: int) -> AsyncIterator[None]:
        """Talk until the block ends, when each client finishes its turn, or the server does."""
        limits = httpx2.Limits(max_connections=None, max_keepalive_connections=None)
        url = self._running.http.base_url
        async with (
            httpx2.AsyncClient(base_url=url, timeout=90, trust_env=False, limits=limits) as http,
            asyncio.TaskGroup() as group,
        ):
            for client in range(number):
                talk = self._talk_to_proxy if client % 2 else self._append
                group.create_task(self._conversations(talk, http, f"client-{client}"))
            try:
                yield
            finally:
                self._is_over = True

    async def reach(self, answers: int) -> None:
        """Wait for so many answers more."""
        for _ in range(answers):
            await self._answers.acquire()

    async def _conversations(self, talk: Any, http: httpx2.AsyncClient, client: str) -> None:
        for number in count():
            for turn in range(TURNS_OF_A_CONVERSATION):
                name = f"{client}-{number}"
                if self._is_over or not await talk(http, name, question(turn)):
                    return

    async def _append(self, http: httpx2.AsyncClient, name: str, text: str) -> bool:
        """Append a turn, and ask for the next context."""
        path = f"/v1/conversations/{name}"
        contents = {"user": text, "assistant": ANSWER}
        body = {"messages": [{"role": role, "content": contents[role]} for role in contents]}
        if await self._post(http, f"{path}/messages", body) != "201":
            return False
        self.acknowledged[name] += contents.values()
        return await self._post(http, f"{path}/context", {"system": "You help."}) == "200"

    async def _talk_to_proxy(self, http: httpx2.AsyncClient, name: str, text: str) -> bool:
        """Send the whole conversation, and take the answer as a stream."""
        said = self.acknowledged[name]
        turns = zip(cycle(("user", "assistant")), (*said, text), strict=False)
        messages = [{"role": role, "content": content} for role, content in turns]
        body = {"model": "m", "stream": True, "messages": messages}
        if await self._post(http, "/openai/v1/chat/completions", body, name) != "200":
            return False
        said += (text, ANSWER)
        return True

    async def _post(
        self, http: httpx2.AsyncClient, path: str, body: dict[str, Any], name: str = ""
    ) -> str:
        headers = {"x-remanence-conversation": name, "authorization": "Bearer key"}
        try:
            response = await http.post(path, json=body, headers=headers)
        except httpx2.TransportError:
            outcome = "connection"
        else:
            memory = response.headers.get("x-remanence-memory", "on")
            outcome = str(response.status_code) if memory == "on" else memory
        self.outcomes[outcome] += 1
        self._answers.release()
        return outcome


def question(turn: int) -> str:
    return f"Turn {turn}: boat {turn} leaves from pier {turn} at half past {turn + 1}, note it."


async def check_tapes(folder: Path, acknowledged: dict[str, list[str]]) -> None:
    """Each tape begins with what was acknowledged, has whole appends, and is consistent."""
    async with Memory.open(f"sqlite:///{folder}/memory.db", policy=Policy(enabled=False)) as memory:
        problems = await memory.check()
        assert [problem for problem in problems if problem.level == "error"] == []
        tapes: dict[str, list[str]] = {}
        for state in await memory.conversations(limit=100_000):
            conversation = memory.conversation(state.ref.id, tenant=state.ref.tenant)
            tapes[state.ref.id] = [message.text for message in await conversation.messages()]
            snapshot = await conversation.snapshot()
            check_tiling(snapshot.state, snapshot.segments)
            context = await conversation.context(system="You help.")
            check_coverage(context, snapshot.state, snapshot.segments)
    for name, texts in acknowledged.items():
        if texts:
            assert tapes[name][: len(texts)] == texts
    appended = {name: texts for name, texts in tapes.items() if int(name.split("-")[1]) % 2 == 0}
    assert all(len(texts) % 2 == 0 for texts in appended.values())


@pytest.fixture
async def provider() -> AsyncIterator[ModelServer]:
    async with ModelServer().running() as server:
        yield server


@pytest.fixture
async def running(tmp_path: Path, provider: ModelServer) -> AsyncIterator[Service]:
    async with service(tmp_path, "--openai-url", provider.url, **OBSERVED_EARLY) as running:
        yield running


async def test_nothing_acknowledged_is_lost_by_a_service_that_is_killed_under_load(
    tmp_path: Path, running: Service
) -> None:
    load = Load(running)
    async with load.clients(16):
        await load.reach(160)
        await running.end(signal.SIGKILL)

    assert set(load.outcomes) == {"200", "201", "connection"}
    await check_tapes(tmp_path, load.acknowledged)


async def test_a_service_that_ends_under_load_leaves_nothing_half_done(
    tmp_path: Path, running: Service
) -> None:
    load = Load(running)
    async with load.clients(16):
        await load.reach(160)
        code = await running.end(signal.SIGTERM)

    assert code == 0
    assert set(load.outcomes) <= {"200", "201", "503", "connection"}
    await check_tapes(tmp_path, load.acknowledged)


@pytest.mark.slow
@pytest.mark.timeout(300 + 2 * SECONDS)
async def test_many_clients_meet_no_error_and_memory_use_stays_flat(
    tmp_path: Path, running: Service, provider: ModelServer
) -> None:
    load = Load(running)
    rss: list[int] = []
    async with load.clients(CLIENTS):
        for _ in range(12):
            await asyncio.sleep(SECONDS / 12)
            rss.append(resident_mib(running.process.pid))
            provider.received.clear()

    print(f"{CLIENTS} clients, {SECONDS:g} s: {dict(load.outcomes)}; resident MiB {rss}")  # noqa: T201 - the figures of a run
    assert set(load.outcomes) == {"200", "201"}
    assert max(rss[6:]) <= 1.1 * max(rss[:6])
    await check_tapes(tmp_path, load.acknowledged)


def resident_mib(process_id: int) -> int:
    status = Path(f"/proc/{process_id}/status").read_text()
    return int(status.split("VmRSS:")[1].split()[0]) // 1024
