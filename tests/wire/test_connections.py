"""Connections to providers stay open between calls, and are closed with the memory."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

import pytest
from tests.wire.dialects import Anthropic, OpenAI, Reply
from tests.wire.reach import MODELS, PATHS
from tests.wire.talking import conversing

from remanence import Chat, Memory, Message, Policy


class KeepingServer:
    """Answers every request, and closes no connection by itself."""

    def __init__(self, provider: str) -> None:
        self._dialect = Anthropic() if provider == "anthropic" else OpenAI()
        self._provider = provider
        self.spec = ""
        self.connections = 0
        self.requests = 0
        self.closed = asyncio.Event()

    @asynccontextmanager
    async def running(self) -> AsyncIterator["KeepingServer"]:
        server = await asyncio.start_server(self._connected, "127.0.0.1", 0)
        port = server.sockets[0].getsockname()[1]
        model, path = MODELS[self._provider], PATHS[self._provider]
        self.spec = f"{self._provider}:{model}@http://127.0.0.1:{port}{path}"
        async with server:
            yield self

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        with suppress(asyncio.IncompleteReadError, ConnectionError):
            while True:
                writer.write(await self._answer(reader))
        writer.close()
        self.closed.set()

    async def _answer(self, reader: asyncio.StreamReader) -> bytes:
        head = (await reader.readuntil(b"\r\n\r\n")).decode().lower()
        length = int(head.partition("content-length: ")[2].partition("\r\n")[0])
        body = json.loads(await reader.readexactly(length))
        self.requests += 1
        answer = json.dumps(self._dialect.response(body, Reply())).encode()
        described = f"content-type: application/json\r\ncontent-length: {len(answer)}"
        return f"HTTP/1.1 200 OK\r\n{described}\r\n\r\n".encode() + answer


@pytest.mark.parametrize("provider", ["anthropic", "openai"])
async def test_the_turns_of_chats_share_a_connection_that_the_memory_closes(provider: str) -> None:
    async with KeepingServer(provider).running() as server, asyncio.timeout(60):
        async with conversing() as conversation:
            for text in ("Which gate?", "And when?"):
                await Chat(conversation, model=server.spec).send(text)
            assert not server.closed.is_set()
        await server.closed.wait()

    assert (server.requests, server.connections) == (2, 1)


@pytest.mark.parametrize("provider", ["anthropic", "openai"])
async def test_the_notes_of_a_memory_share_a_connection(provider: str) -> None:
    async with KeepingServer(provider).running() as server, asyncio.timeout(60):
        async with Memory.open(
            "sqlite:///:memory:", policy=Policy.default(keep_last=0), observer=server.spec
        ) as memory:
            for name in ("a", "b"):
                chat = memory.conversation(name)
                await chat.append(Message.user("I sail on Friday."), Message.assistant("Noted."))
                await chat.flush(everything=True)
        await server.closed.wait()

    assert server.requests >= 2
    assert server.connections == 1
