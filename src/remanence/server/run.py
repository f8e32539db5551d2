"""Serving the application on a port of this machine."""

import asyncio
import contextlib
import ipaddress
import socket
from collections.abc import Callable, Iterator
from typing import ClassVar, Final, cast

import h11
import uvicorn
from fastapi import FastAPI
from uvicorn.protocols.http.h11_impl import H11Protocol

from remanence.server.open_files import max_connections, raise_limit
from remanence.telemetry import logger

REQUEST_SECONDS: Final = 5
"""Timeout for requests in progress at shutdown, which normally end by themselves before it."""

HEAD_SECONDS: Final = 20.0
"""Timeout for the head of a request; uvicorn itself has none."""

ACCEPTS: Final = 16
"""Connections that are accepted before the loop tells the protocol of them."""

_REPORT_SECONDS: Final = 10.0
_FULL: Final = (
    b"HTTP/1.1 503 Service Unavailable\r\nretry-after: 1\r\nconnection: close\r\n"
    b"content-length: 0\r\n\r\n"
)


class PatientProtocol(H11Protocol):
    """HTTP/1.1 that closes connections whose next request head does not arrive in time.

    Where there are too many connections for the limit of open files, it also closes one without a
    request for each new one, and refuses new ones if all have a request.
    """

    head_seconds: float = HEAD_SECONDS
    _waiting: asyncio.TimerHandle | None = None
    _next_report: ClassVar[float] = 0.0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        super().connection_made(cast("asyncio.Transport", transport))  # as asyncio makes it
        if len(self.connections) > (most := max_connections()):
            self._make_room(most)
        self._wait_for_head()

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        self._wait_for_head()

    def connection_lost(self, exc: Exception | None) -> None:
        if self._waiting is not None:
            self._waiting.cancel()
        super().connection_lost(exc)

    def _make_room(self, most: int) -> None:
        others = (each for each in self.connections if isinstance(each, PatientProtocol))
        idle = next((each for each in others if each is not self and each._is_idle()), None)
        if idle is not None:
            idle.transport.close()
        else:
            self.transport.write(_FULL)
            self.transport.close()
        if self.loop.time() >= self._next_report:
            PatientProtocol._next_report = self.loop.time() + _REPORT_SECONDS
            logger.warning(
                "more than %d connections, all that the limit of open files leaves for clients: "
                "idle ones are closed, or new ones refused; raise the limit (ulimit -n)",
                most,
            )

    def _is_idle(self) -> bool:
        return self.conn.their_state is h11.IDLE and not self.transport.is_closing()

    def _wait_for_head(self) -> None:
        """Start the timer at the first byte of a head; idle connections have another timeout."""
        if self.conn.their_state is h11.IDLE:
            if self._waiting is None:
                self._waiting = self.loop.call_later(self.head_seconds, self.transport.close)
        elif self._waiting is not None:
            self._waiting.cancel()
            self._waiting = None


async def serve(
    app: FastAPI,
    listening: socket.socket,
    *,
    started: Callable[[str], None],
    ending: asyncio.Event,
    protocol: type[PatientProtocol] = PatientProtocol,
) -> None:
    """Serve on a socket of `listen` until *ending* is set; *started* is called with the URL."""
    raise_limit()
    host, port = listening.getsockname()[:2]
    started(f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}")
    config = uvicorn.Config(
        app,
        http=protocol,
        ws="none",  # no route speaks WebSocket
        lifespan="off",
        log_config=None,  # errors go to the program's own handlers
        backlog=ACCEPTS,
        log_level="error",  # a response says what its client did wrong
        server_header=False,
        timeout_graceful_shutdown=REQUEST_SECONDS,
    )
    server = _Server(config)
    async with asyncio.TaskGroup() as group:
        stopping = group.create_task(_stop(server, ending), name="remanence-stopping")
        await server.serve(sockets=[listening])
        stopping.cancel()


class _Server(uvicorn.Server):
    """A server that leaves signals alone, as the memory must be closed after the last request."""

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        for listening in sockets or ():
            listening.listen()  # as many may wait as before, however few are accepted at once

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


def listen(host: str, port: int) -> socket.socket:
    """Return a socket whose connections wait until `serve` accepts them; port 0 picks a free one.

    Raises:
        OSError: the port is in use, or *host* is not an address of this machine.
    """
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(
            host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
    except OSError as error:
        raise OSError(
            error.errno, f"{error.strerror}: choose an address of this machine with --host", host
        ) from error
    # asyncio sets TCP_NODELAY only on sockets that name their protocol.
    listening = socket.socket(family, kind, protocol)
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
