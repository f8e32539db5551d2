"""Running the application on a port of this machine."""

import asyncio
import contextlib
import signal
import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Final

import uvicorn
from fastapi import FastAPI

from remanence.server.connections import PatientProtocol

HOST: Final = "127.0.0.1"
"""There are no accounts yet, so nobody else may come in."""

REQUEST_SECONDS: Final = 5
"""How long requests in progress may take after the server began to end; turns end at once."""


@contextmanager
def ending_on_signals() -> Iterator[asyncio.Event]:
    """An event that SIGINT and SIGTERM set, in place of ending the process."""
    ending, loop = asyncio.Event(), asyncio.get_running_loop()

    def end(_number: int, _frame: FrameType | None) -> None:
        loop.call_soon_threadsafe(ending.set)

    before = {number: signal.signal(number, end) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield ending
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


async def serve(
    app: FastAPI,
    *,
    port: int,
    started: Callable[[str], None],
    ending: asyncio.Event,
    protocol: type[PatientProtocol] = PatientProtocol,
) -> None:
    """Answer until *ending* is set; *started* is told the URL.

    Raises:
        OSError: the port is taken.
    """
    listening = _listen(port)
    started(f"http://{HOST}:{listening.getsockname()[1]}")
    config = uvicorn.Config(
        app,
        http=protocol,
        lifespan="off",
        log_level="warning",
        server_header=False,
        timeout_graceful_shutdown=REQUEST_SECONDS,
    )
    server = _Server(config)
    async with asyncio.TaskGroup() as group:
        stopping = group.create_task(_stop(server, ending), name="remanence-stopping")
        await server.serve(sockets=[listening])
        stopping.cancel()


class _Server(uvicorn.Server):
    """Leaves signals alone: the memory has to be closed after the last request."""

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


async def _stop(server: uvicorn.Server, ending: asyncio.Event) -> None:
    await ending.wait()
    server.should_exit = True


def _listen(port: int) -> socket.socket:
    listening = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listening.bind((HOST, port))
    except OSError as error:
        listening.close()
        raise OSError(
            error.errno, f"{error.strerror}: choose another with --port", f"{HOST}:{port}"
        ) from error
    listening.listen()
    return listening
