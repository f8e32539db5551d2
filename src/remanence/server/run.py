"""Serving the application on a port of this machine."""

import asyncio
import contextlib
import ipaddress
import socket
import sys
from collections.abc import Callable, Collection, Iterable, Iterator
from functools import partial
from typing import Final, cast

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

SEND_SECONDS: Final = 60.0
"""Timeout for data that a client does not acknowledge or read, on Linux; uvicorn itself has none."""

IDLE_SECONDS: Final = 0.2
"""Time that a new connection has for its first request where another one waits for its place."""

_PAUSE_SECONDS: Final = 0.02
_RETRY_SECONDS: Final = 1.0
_REPORT_SECONDS: Final = 10.0
_FULL: Final = (
    "%d connections, all that the limit of open files leaves for clients: idle ones are closed, and new "
    "ones wait; raise the limit (ulimit -n)"
)


class PatientProtocol(H11Protocol):
    """HTTP/1.1 that closes connections whose next request head does not arrive in time."""

    head_seconds: float = HEAD_SECONDS
    _waiting: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        super().connection_made(cast("asyncio.Transport", transport))  # as asyncio makes it
        self._wait_for_head()

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        self._wait_for_head()

    def connection_lost(self, exc: Exception | None) -> None:
        if self._waiting is not None:
            self._waiting.cancel()
        super().connection_lost(exc)

    def is_idle(self) -> bool:
        """Return whether it had an answer and no next request, or some time for its first one."""
        if self.conn.their_state is not h11.IDLE or self.transport.is_closing():
            return False
        waiting = self._waiting
        return (
            waiting is None or self.loop.time() > waiting.when() - self.head_seconds + IDLE_SECONDS
        )

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
        log_level="error",  # a response says what its client did wrong
        server_header=False,
        timeout_graceful_shutdown=REQUEST_SECONDS,
    )
    server = _Server(config)
    make_protocol = partial(protocol, config, server.server_state, app_state={})
    async with asyncio.TaskGroup() as group:
        accepting = group.create_task(
            _accept(listening, make_protocol, server.server_state.connections),
            name="remanence-accepting",
        )
        stopping = group.create_task(_stop(server, accepting, ending), name="remanence-stopping")
        await server.serve(sockets=[])
        stopping.cancel()


async def _accept(
    listening: socket.socket,
    make_protocol: Callable[[], PatientProtocol],
    connections: Collection[object],
) -> None:
    """Accept connections while there are files for them; further ones wait in the socket's queue."""
    loop, next_report = asyncio.get_running_loop(), 0.0
    with listening:
        while True:
            if len(connections) >= (most := max_connections()):
                if loop.time() >= next_report:
                    next_report = loop.time() + _REPORT_SECONDS
                    logger.warning(_FULL, most)
                await asyncio.sleep(0 if _close_idle(connections) else _PAUSE_SECONDS)
                continue
            try:
                connection, _ = await loop.sock_accept(listening)
            except ConnectionError:  # the client has left
                await asyncio.sleep(0)
                continue
            except OSError as error:  # the process has no file
                logger.warning("a connection could not be accepted: %s", error.strerror)
                await asyncio.sleep(_RETRY_SECONDS)
                continue
            try:
                await loop.connect_accepted_socket(make_protocol, connection)
            except OSError:  # macOS sets no option of a connection that its client has reset
                connection.close()


def _close_idle(connections: Iterable[object]) -> bool:
    """Close a connection without a request; false if there is none."""
    protocols = (each for each in connections if isinstance(each, PatientProtocol))
    idle = next((each for each in protocols if each.is_idle()), None)
    if idle is not None:
        idle.transport.close()
    return idle is not None


class _Server(uvicorn.Server):
    """A server that leaves signals alone, as the memory must be closed after the last request."""

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


async def _stop(
    server: uvicorn.Server, accepting: asyncio.Task[None], ending: asyncio.Event
) -> None:
    await ending.wait()
    accepting.cancel()
    server.should_exit = True


def is_loopback(host: str) -> bool:
    """Return whether only this machine can reach *host*, an address or a name."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def listen(host: str, port: int, *, send_seconds: float = SEND_SECONDS) -> socket.socket:
    """Return a socket whose connections wait until `serve` accepts them; port 0 picks a free one.

    A connection whose client takes no data for *send_seconds* is closed, such as an event stream of a
    machine that was switched off.

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
    if sys.platform == "linux":  # where connections inherit it
        listening.setsockopt(
            socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, round(send_seconds * 1_000)
        )
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
    listening.setblocking(False)  # noqa: FBT003 - positional only
    return listening
