"""HTTP requests: a span and a log line for each."""

import logging
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Final

from opentelemetry import trace
from opentelemetry.propagate import extract
from opentelemetry.trace import SpanKind, StatusCode

from remanence.telemetry import logger
from remanence.telemetry.logs import request_id
from remanence.telemetry.spans import current_span

_METHODS: Final = frozenset({"DELETE", "GET", "HEAD", "OPTIONS", "PATCH", "POST", "PUT"})

_MAX_SHOWN: Final = 1_000
"""Characters of a method and a path in the log."""


@dataclass(slots=True)
class Request:
    """A request being handled: its id, and what is known of its response.

    `route` is the path template, empty if no route matched; `status` 0 means that the client
    disconnected before a response.
    """

    id: str
    method: str
    path: str
    headers: Mapping[str, str]
    route: str = ""
    status: int = 0

    @property
    def known_method(self) -> str:
        """The method, or `_OTHER` if it is not a standard one."""
        return self.method if self.method in _METHODS else "_OTHER"

    @property
    def attributes(self) -> dict[str, str | int]:
        """The attributes of its span, without path and query, which may name a user."""
        attributes: dict[str, str | int] = {
            "http.request.method": self.known_method,
            "remanence.request.id": self.id,
        }
        if self.route:
            attributes["http.route"] = self.route
        if self.status:
            attributes["http.response.status_code"] = self.status
        return attributes


@contextmanager
def handle(request: Request) -> Iterator[None]:
    """Trace a request as part of its client's trace, and log it at the end.

    Log records in the block have its id.
    """
    started = time.perf_counter()
    is_traced = trace.get_current_span().get_span_context().is_valid  # by the host program
    context = None if is_traced else extract(request.headers)
    with (
        request_id(request.id),
        current_span(request.known_method, context=context, kind=SpanKind.SERVER) as span,
    ):
        try:
            yield
        except Exception:
            request.status = (
                request.status or 500
            )  # Starlette's outermost middleware responds with 500
            raise
        finally:
            span.update_name(f"{request.known_method} {request.route}".rstrip())
            span.set_attributes(request.attributes)
            if request.status >= 500:
                span.set_status(StatusCode.ERROR)
            _log(request, time.perf_counter() - started)


def _log(request: Request, seconds: float) -> None:
    level = logging.ERROR if request.status >= 500 else logging.INFO
    if request.status == 503:  # temporary or intended, such as from /readyz
        level = logging.WARNING
    answer = str(request.status) if request.status else "left by the client"
    shown = f"{request.method} {ascii(request.path)[1:-1]}"
    if len(shown) > _MAX_SHOWN:
        shown = f"{shown[:_MAX_SHOWN]}..."
    logger.log(level, "%s: %s in %.0f ms", shown, answer, seconds * 1_000)
