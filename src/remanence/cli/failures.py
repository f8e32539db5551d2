"""Errors of a command: one line on stderr, and a traceback with --debug."""

import errno
import logging
import sys
import traceback

_OF_WRITING = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO, errno.EBADF})
"""Errors of writing; those of files name the file."""

_logger = logging.getLogger("remanence")


def set_up_logs(*, details: bool) -> None:
    """Log to stderr, with tracebacks, if *details* is set; commands print their own errors."""
    if details:
        logging.basicConfig(stream=sys.stderr)
        _logger.setLevel(logging.DEBUG)
    elif not _logger.handlers:
        _logger.addHandler(logging.NullHandler())
        logging.getLogger("psycopg.pool").addHandler(logging.NullHandler())


def explain(error: BaseException) -> None:
    """Print *error* in one line on stderr."""
    from remanence.cli.output import warn

    if _logger.isEnabledFor(logging.DEBUG):
        traceback.print_exception(error)
    text = str(error)
    if isinstance(error, OSError) and error.strerror:
        place = error.filename or ("the standard output" if error.errno in _OF_WRITING else None)
        text = f"{place}: {error.strerror}" if place else text
    warn(f"remanence: {' '.join(text.split()) or type(error).__name__}")
