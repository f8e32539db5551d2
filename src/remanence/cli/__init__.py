"""The command line."""

import os
import sys
from collections.abc import Sequence
from io import TextIOWrapper

FAILED = 1


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command and return its exit code: 0, 1 (failed), 2 (wrong use) or 130 (Ctrl-C)."""
    from remanence.errors import RemanenceError

    _open_streams()
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            # Escape characters that the encoding lacks, instead of failing.
            stream.reconfigure(errors="backslashreplace")
    try:
        code = _run(arguments)
        sys.stdout.flush()
    except BrokenPipeError:
        # The reader has closed the pipe: flushing at exit would fail again.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return FAILED
    except (RemanenceError, OSError) as error:
        from remanence.cli.failures import explain

        explain(error)
        return FAILED
    return code


def _open_streams() -> None:
    """Open the null device in place of standard streams that were closed at the start."""
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, mode, encoding="utf-8"))  # noqa: PTH123, SIM115 - it stays open


def _run(arguments: Sequence[str] | None) -> int:
    from remanence.cli.app import app

    try:
        app(args=arguments, prog_name="remanence")
    except SystemExit as end:
        return end.code if isinstance(end.code, int) else int(end.code is not None)
    return 0
