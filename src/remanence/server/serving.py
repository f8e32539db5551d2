"""Running the application on a port of this machine."""

import socket
from collections.abc import Callable
from typing import Final

import uvicorn
from fastapi import FastAPI

HOST: Final = "127.0.0.1"
"""There are no accounts yet, so nobody else may come in."""

SHUTDOWN_SECONDS: Final = 5


async def serve(app: FastAPI, *, port: int, started: Callable[[str], None]) -> None:
    """Answer until the process is asked to end; *started* is told the URL.

    Raises:
        OSError: the port is taken.
    """
    listening = _listen(port)
    started(f"http://{HOST}:{listening.getsockname()[1]}")
    config = uvicorn.Config(
        app,
        lifespan="off",
        log_level="warning",
        server_header=False,
        timeout_graceful_shutdown=SHUTDOWN_SECONDS,
    )
    await uvicorn.Server(config).serve(sockets=[listening])


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
