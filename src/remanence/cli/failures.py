"""What a failing command says: one line in plain words; with --debug also where it happened."""

import logging
import sys
import traceback

_logger = logging.getLogger("remanence")


def show_details() -> None:
    """Show tracebacks and log records from now on."""
    logging.basicConfig(stream=sys.stderr)
    _logger.setLevel(logging.DEBUG)


def explain(error: BaseException) -> None:
    """Print *error* in one line on stderr."""
    if _logger.isEnabledFor(logging.DEBUG):
        traceback.print_exception(error)
    text = " ".join(str(error).split()) or type(error).__name__
    print(f"remanence: {text}", file=sys.stderr)
