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


def explain(error: BaseException) -> None:
    """Print *error* in one line on stderr."""
    from remanence.cli.output import warn

    if _logger.isEnabledFor(logging.DEBUG):
        traceback.print_exception(error)
    text = str(error)
    if isinstance(error, OSError) and error.strerror and error.filename:
        text = f"{error.filename}: {error.strerror}"
    warn(f"remanence: {' '.join(text.split()) or type(error).__name__}")
