"""The command line."""

import os
import sys
from collections.abc import Sequence
from io import TextIOWrapper

FAILED = 1
INTERRUPTED = 128 + 2
PIPE_CLOSED = 128 + 13
"""The exit code that a shell shows for programs that SIGPIPE ends, such as git or cat."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command and return its exit code.

    It is 0, 1 (failed), 2 (wrong use), 130 (Ctrl-C) or 141 (the reader of its output has left).
    """
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
        discard_output()
        return PIPE_CLOSED
    except KeyboardInterrupt:  # while the command was loaded, before typer handles it
        return INTERRUPTED
    except (RemanenceError, OSError) as error:
        from remanence.cli.failures import explain

        explain(error)
        try:
            sys.stdout.flush()
        except OSError:
            discard_output()
        return FAILED
    return code


def discard_output() -> None:
    """Discard what stdout did not take: flushing it at exit would fail again."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _open_streams() -> None:
    """Open the null device in place of standard streams that were closed at the start.

    Writing results to it fails, as it would to the closed stdout.
    """
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            access = os.O_WRONLY if name == "stderr" else os.O_RDONLY
            setattr(sys, name, os.fdopen(os.open(os.devnull, access), mode, encoding="utf-8"))


def _run(arguments: Sequence[str] | None) -> int:
    from remanence.cli.app import app

    try:
        app(args=arguments, prog_name="remanence")
    except SystemExit as end:
        if isinstance(end.__context__, BrokenPipeError):  # to typer a failure like any other
            raise end.__context__ from None
        return end.code if isinstance(end.code, int) else int(end.code is not None)
    return 0
