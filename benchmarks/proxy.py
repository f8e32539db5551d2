"""Requests through the proxy beside the same requests to the provider, each in its process.

The provider answers at once with a fixed text, so that what is measured is the way there.
"""

import asyncio
import json
import statistics
import sys
import tempfile
import time
from asyncio.subprocess import DEVNULL, PIPE
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager

import httpx2

from benchmarks.rows import Row

TURNS = 20
CLIENTS = 20
TEXT = "The boat to the island leaves from pier four and takes an hour in good weather. " * 4
MESSAGE = {"role": "assistant", "content": TEXT}
ANSWER = json.dumps(
    {"id": "c", "object": "chat.completion", "choices": [{"index": 0, "message": MESSAGE}]}
).encode()
HEAD = b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: %d\r\n\r\n"


def measure() -> list[Row]:
    """Added latency of one client, and requests a second of many."""
    direct, proxied, rates = asyncio.run(_measure())
    added = sorted(slow - fast for slow, fast in zip(proxied, direct, strict=True))
    middle, late = statistics.median(added), added[int(len(added) * 0.99)]
    fast = statistics.median(direct)
    return [
        Row(
            what="latency that the proxy adds to a request, median",
            measured=middle * 1_000,
            unit="ms",
            detail=f"p99 {late * 1_000:.1f} ms; a direct call takes {fast * 1_000:.1f} ms; "
            f"{len(added)} requests of up to {2 * TURNS} messages, each stored before it is sent on",
        ),
        Row(
            what=f"requests a second through the proxy, {CLIENTS} clients",
            measured=rates[1],
            unit="/s",
            detail=f"direct {rates[0]:,.0f}; provider, proxy and clients share the machine",
        ),
    ]


async def _measure() -> tuple[list[float], list[float], tuple[float, float]]:
    async with AsyncExitStack() as stack:
        folder = stack.enter_context(tempfile.TemporaryDirectory())
        provider = await stack.enter_async_context(_process("-m", "benchmarks.proxy"))
        options = ("--db", f"sqlite:///{folder}/memory.db", "--port", "0", "--openai-url", provider)
        proxy = await stack.enter_async_context(_process("-m", "remanence", "serve", *options))
        http = await stack.enter_async_context(httpx2.AsyncClient(timeout=60, trust_env=False))
        urls = (f"{provider}/v1/chat/completions", f"{proxy}/openai/v1/chat/completions")
        await _talk(http, urls, "warm")
        direct, proxied = await _talk(http, urls, "timed")
        rates = [await _rate(http, url) for url in urls]
    return direct, proxied, (rates[0], rates[1])


async def _talk(
    http: httpx2.AsyncClient, urls: tuple[str, ...], name: str
) -> tuple[list[float], list[float]]:
    """Seconds of each request to the two addresses, in turns."""
    taken: tuple[list[float], list[float]] = ([], [])
    for talk in range(5):
        messages: list[dict[str, str]] = []
        for turn in range(TURNS):
            messages.append({"role": "user", "content": f"{turn}: {TEXT}"})
            for seconds, url in zip(taken, urls, strict=True):
                began = time.perf_counter()
                await _ask(http, url, f"{name}-{talk}", messages)
                seconds.append(time.perf_counter() - began)
            messages.append(MESSAGE)
    return taken


async def _rate(http: httpx2.AsyncClient, url: str) -> float:
    async def client(number: int) -> None:
        messages: list[dict[str, str]] = []
        for turn in range(TURNS):
            messages.append({"role": "user", "content": f"{turn}: {TEXT}"})
            await _ask(http, url, f"client-{number}", messages)
            messages.append(MESSAGE)

    began = time.perf_counter()
    async with asyncio.TaskGroup() as group:
        for number in range(CLIENTS):
            group.create_task(client(number))
    return CLIENTS * TURNS / (time.perf_counter() - began)


async def _ask(
    http: httpx2.AsyncClient, url: str, name: str, messages: list[dict[str, str]]
) -> None:
    headers = {"authorization": "Bearer key", "x-remanence-conversation": name}
    response = await http.post(url, json={"model": "m", "messages": messages}, headers=headers)
    response.raise_for_status()
    memory = response.headers.get("x-remanence-memory", "on")
    if memory != "on":
        raise RuntimeError(f"the proxy sent a request on without memory: {memory}")


@asynccontextmanager
async def _process(*arguments: str) -> AsyncIterator[str]:
    """Run Python with the arguments; yield the URL that it prints first."""
    process = await asyncio.create_subprocess_exec(
        sys.executable, *arguments, stdout=PIPE, stderr=DEVNULL
    )
    try:
        assert process.stdout is not None
        yield (await process.stdout.readline()).split()[0].decode()
    finally:
        process.terminate()
        await process.wait()


async def _provide() -> None:
    """Answer every request on a free port, whose URL is printed."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while True:
                head = await reader.readuntil(b"\r\n\r\n")
                length = head.lower().split(b"content-length:")[1].split(b"\r\n")[0]
                await reader.readexactly(int(length))
                writer.write(HEAD % len(ANSWER) + ANSWER)
                await writer.drain()
        except (asyncio.IncompleteReadError, ConnectionError):
            writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    print(f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}", flush=True)
    await server.serve_forever()


if __name__ == "__main__":
    asyncio.run(_provide())
