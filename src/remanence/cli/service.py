"""The first line and the log of `serve` and `worker`, and the signals that end them."""

import asyncio
import errno
import logging
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from io import TextIOWrapper
from logging.handlers import WatchedFileHandler
from pathlib import Path
from types import FrameType
from typing import Annotated, Final, Literal, TypeAlias

import typer

from remanence.cli import discard_output, output
from remanence.telemetry import logger
from remanence.telemetry.logs import JSONFormatter, RequestNames, TextFormatter, audit_logger

LogFormat: TypeAlias = Annotated[
    Literal["text", "json"], typer.Option(help="The format of the log on stderr.")
]

_TEXT: Final = "%(asctime)s %(levelname)s [%(request)s] %(message)s"


class _PrivateFileHandler(WatchedFileHandler):
    """Creates its file with mode 0600, also after a rotation."""

    def _open(self) -> TextIOWrapper:
        Path(self.baseFilename).touch(mode=0o600)
        return super()._open()


def log_audit(file: Path) -> None:
    """Write the audit log to a file that only its owner can read, instead of the process log.

    The file may be rotated while the process runs.
    """
    audit_logger.addHandler(_PrivateFileHandler(file, encoding="utf-8"))
    audit_logger.setLevel(logging.INFO)
    audit_logger.propagate = False


def log_service(form: LogFormat) -> None:
    """Log this package's records, and warnings of libraries, with time and request id.

    The warnings of a connection pool for each attempt to connect are for --debug: the store logs an
    outage.
    """
    root, ours = logging.getLogger(), logging.getLogger("remanence")
    for handler in list(root.handlers):
        if type(handler) is logging.StreamHandler:  # from --debug
            root.removeHandler(handler)
    handler = logging.StreamHandler()
    handler.addFilter(RequestNames())
    handler.setFormatter(JSONFormatter() if form == "json" else TextFormatter(_TEXT))
    root.addHandler(handler)
    if ours.level == logging.NOTSET:
        ours.setLevel(logging.INFO)
        handler.addFilter(lambda record: record.name != "psycopg.pool")


def announce(text: str) -> None:
    """Print a line for people; a service also runs without, such as with a closed stdout."""
    try:
        output.line(text)
        sys.stdout.flush()
    except OSError as error:
        if error.errno != errno.EBADF:
            raise
        discard_output()


@contextmanager
def ending_on_signals() -> Iterator[asyncio.Event]:
    """Yield an event that SIGINT, SIGTERM and SIGHUP set, instead of ending the process.

    A SIGHUP that is ignored, as under nohup, stays so.
    """
    ending, loop = asyncio.Event(), asyncio.get_running_loop()

    def end(_number: int, _frame: FrameType | None) -> None:
        loop.call_soon_threadsafe(begin_to_end)

    def begin_to_end() -> None:
        if not ending.is_set():
            logger.info("shutting down: steps and requests in progress have some seconds left")
        ending.set()

    numbers = {signal.SIGINT, signal.SIGTERM}
    if hasattr(signal, "SIGHUP") and signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN:
        numbers.add(signal.SIGHUP)  # the terminal was closed
    before = {number: signal.signal(number, end) for number in numbers}
    try:
        yield ending
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
