"""Log records with the id of their request, as text or JSON."""

import json
import logging
import re
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from datetime import UTC, datetime
from typing import Any, Final

_CONTROL: Final = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069]")
"""Characters that begin a line, control a terminal or change the direction of text."""

audit_logger = logging.getLogger("remanence.audit")
_request: ContextVar[str] = ContextVar("remanence_request", default="-")


@contextmanager
def request_id(name: str) -> Iterator[None]:
    """Add the id of a request to the log records of the block (`RequestNames`)."""
    token = _request.set(name)
    try:
        yield
    finally:
        _request.reset(token)


def current_request() -> str:
    """Return the id of the current request, or `-`."""
    return _request.get()


class RequestNames(logging.Filter):
    """Adds the id of the current request to each log record, as `request`."""

    def filter(self, record: logging.LogRecord) -> bool:
        record.request = current_request()
        return True


class TextFormatter(logging.Formatter):
    """Formats a record as one line, with a traceback on indented lines; text cannot forge a line."""

    def format(self, record: logging.LogRecord) -> str:
        text, record.exc_text = record.exc_text, None  # another handler's traceback
        try:
            return super().format(record)
        finally:
            record.exc_text = text

    def formatMessage(self, record: logging.LogRecord) -> str:  # noqa: N802 - the name in logging
        return _escape(super().formatMessage(record))

    def formatException(self, ei: Any) -> str:  # noqa: N802 - as logging calls it
        return "\n".join(f"  {_escape(line)}" for line in super().formatException(ei).split("\n"))


class JSONFormatter(logging.Formatter):
    """Formats a record as one line of JSON."""

    def format(self, record: logging.LogRecord) -> str:
        fields = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname,
            "logger": record.name,
            "request": getattr(record, "request", "-"),
            "message": record.getMessage(),
        }
        if record.exc_info:
            fields["exception"] = self.formatException(record.exc_info)
        return _escape(json.dumps(fields, ensure_ascii=False))


def _escape(text: str) -> str:
    """Escape control characters, as JSON does."""
    return _CONTROL.sub(lambda match: f"\\u{ord(match[0]):04x}", text)
