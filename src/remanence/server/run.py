"""Serving the application on a port of this machine."""

import asyncio
import contextlib
import ipaddress
import socket
from collections.abc import Callable, Iterator
from typing import Final

import uvicorn
from fastapi import FastAPI

from remanence.server.connections import PatientProtocol

HOST: Final = "127.0.0.1"
"""The server has no accounts, so by default only this machine can connect."""

REQUEST_SECONDS: Final = 5
"""Timeout for requests in progress at shutdown; turns end at once."""


async def serve(
    app: FastAPI,
    *,
    port: int,
    started: Callable[[str], None],
    ending: asyncio.Event,
    host: str = HOST,
    protocol: type[PatientProtocol] = PatientProtocol,
) -> None:
    """Serve until *ending* is set; *started* is called with the URL.

    Raises:
        OSError: the port is in use, or *host* is not an address of this machine.
    """
    listening = _listen(host, port)
    shown = f"[{host}]" if ":" in host else host
    started(f"http://{shown}:{listening.getsockname()[1]}")
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
    """Does not handle signals: the memory must be closed after the last request."""

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


async def _stop(server: uvicorn.Server, ending: asyncio.Event) -> None:
    await ending.wait()
    server.should_exit = True


def is_loopback(host: str) -> bool:
    """Return whether only this machine can reach *host*, an address or a name."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _listen(host: str, port: int) -> socket.socket:
    try:
        family, kind, _, _, address = socket.getaddrinfo(
            host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
    except OSError as error:
        raise OSError(
            error.errno, f"{error.strerror}: choose an address of this machine with --host", host
        ) from error
    listening = socket.socket(family, kind)
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listening.bind(address)
    except OSError as error:
        listening.close()
        raise OSError(
            error.errno,
            f"{error.strerror}: choose another with --port, or an address with --host",
            f"{host}:{port}",
        ) from error
    listening.listen()
    return listening
