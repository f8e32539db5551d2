"""Log records with the id of their request, as text or JSON."""

import json
import logging
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from datetime import UTC, datetime

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
        return json.dumps(fields, ensure_ascii=False)
