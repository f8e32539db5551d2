"""A server with few open files."""

import asyncio
import resource
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

import pytest
from tests.server.process import Service, service

from remanence.server.open_files import finite

FEW = 96
EVENTS = b"GET /v1/events HTTP/1.1\r\nhost: localhost\r\n\r\n"
Connection = tuple[asyncio.StreamReader, asyncio.StreamWriter]


@asynccontextmanager
async def few_files(directory: Path) -> AsyncIterator[Service]:
    async with service(directory) as running:
        resource.prlimit(running.process.pid, resource.RLIMIT_NOFILE, (FEW, FEW))
        yield running


async def connect(running: Service) -> Connection:
    url = running.http.base_url
    return await asyncio.open_connection(url.host, url.port)


async def test_connections_without_a_request_leave_files_for_others(tmp_path: Path) -> None:
    async with few_files(tmp_path) as running:
        held = [await connect(running) for _ in range(2 * FEW)]
        answers = [(await running.http.get("/healthz")).status_code for _ in range(3)]
        for _, writer in held:
            writer.close()

    assert answers == [200, 200, 200]
    assert sum("raise the limit" in line for line in running.log) == 1
    assert not any("Too many open files" in line for line in running.log)


async def test_a_connection_waits_while_all_others_have_a_request(tmp_path: Path) -> None:
    post = b"POST /v1/conversations/a/messages HTTP/1.1\r\nhost: localhost\r\ncontent-length: 9\r\n"
    expect = b"content-type: application/json\r\nexpect: 100-continue\r\n\r\n"
    async with few_files(tmp_path) as running:
        held = []
        for _ in range((FEW - 64) // 2):
            reader, writer = await connect(running)
            writer.write(post + expect)
            assert b"100" in await reader.readuntil(b"\r\n\r\n")
            held.append(writer)
        probe = asyncio.ensure_future(running.http.get("/healthz"))
        done, _ = await asyncio.wait([probe], timeout=0.2)
        held.pop().close()
        answer = await probe
        for writer in held:
            writer.close()

    assert not done
    assert answer.status_code == 200


async def test_a_burst_of_more_clients_than_connections_is_answered(tmp_path: Path) -> None:
    async with few_files(tmp_path) as running, asyncio.TaskGroup() as group:
        probes = [group.create_task(_probe(running)) for _ in range(2 * FEW)]

    assert {probe.result() for probe in probes} == {b"200"}


async def _probe(running: Service) -> bytes:
    reader, writer = await connect(running)
    writer.write(b"GET /healthz HTTP/1.1\r\nhost: localhost\r\n\r\n")
    head = await reader.readuntil(b"\r\n\r\n")
    writer.close()
    return head.split()[1]


async def test_the_event_streams_of_a_client_leave_connections_for_others(tmp_path: Path) -> None:
    async with few_files(tmp_path) as running:
        heads, held = [], []
        for _ in range(5):
            reader, writer = await connect(running)
            writer.write(EVENTS)
            heads.append((await reader.readuntil(b"\r\n\r\n")).split()[1])
            held.append(writer)
        held[0].close()
        held[-1].close()
        async with asyncio.timeout(5):
            while (again := await _status_of_stream(running)) == 429:  # noqa: ASYNC110 - the server's own count
                await asyncio.sleep(0.05)
        for writer in held:
            writer.close()

    assert heads == [b"200"] * 4 + [b"429"]
    assert again == 200


async def test_a_client_without_event_streams_learns_that_others_have_all(tmp_path: Path) -> None:
    async with few_files(tmp_path) as running, AsyncExitStack() as stack:
        for address in ("192.0.2.1", "192.0.2.2", "192.0.2.3"):
            headers = {"x-forwarded-for": address}
            for _ in range(4):
                last = await stack.enter_async_context(
                    running.http.stream("GET", "/v1/events", headers=headers)
                )
        detail = (await last.aread()).decode()

    assert "other clients have all 8 event streams" in detail


async def _status_of_stream(running: Service) -> int:
    async with running.http.stream("GET", "/v1/events") as response:
        return response.status_code


@pytest.fixture
def low_limit() -> Iterator[int]:
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(256, before[1]), before[1]))
    yield before[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, before)


async def test_a_server_may_open_all_files_that_its_hard_limit_allows(
    tmp_path: Path, low_limit: int
) -> None:
    async with service(tmp_path) as running:
        limits = resource.prlimit(running.process.pid, resource.RLIMIT_NOFILE)

    assert limits == (low_limit, low_limit)


def test_an_unlimited_number_of_files_counts_as_one_that_macos_grants() -> None:
    assert finite(resource.RLIM_INFINITY) == 10_240
    assert finite(256) == 256
