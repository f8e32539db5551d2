"""Errors of a command: one line on stderr, and a traceback with --debug."""

import logging
import sys
import traceback

_logger = logging.getLogger("remanence")


def set_up_logs(*, details: bool) -> None:
    """Log to stderr, with tracebacks, if *details* is set; commands print their own errors."""
    if details:
        logging.basicConfig(stream=sys.stderr)
        _logger.setLevel(logging.DEBUG)
    elif not _logger.handlers:
        _logger.addHandler(logging.NullHandler())


def log_service() -> None:
    """Log a server's work to stderr, with time, level and request id."""
    from remanence.telemetry import RequestNames

    handler = logging.StreamHandler()
    handler.addFilter(RequestNames())
    handler.setFormatter(logging.Formatter("%(asctime)s %(levelname)s [%(request)s] %(message)s"))
    _logger.addHandler(handler)
    _logger.propagate = False
    if _logger.level == logging.NOTSET:
        _logger.setLevel(logging.INFO)


def explain(error: BaseException) -> None:
    """Print *error* in one line on stderr."""
    if _logger.isEnabledFor(logging.DEBUG):
        traceback.print_exception(error)
    text = str(error)
    if isinstance(error, OSError) and error.strerror and error.filename:
        text = f"{error.filename}: {error.strerror}"
    print(f"remanence: {' '.join(text.split()) or type(error).__name__}", file=sys.stderr)
