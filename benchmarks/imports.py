"""How long a fresh interpreter takes for an import, and the command line for its help."""

import argparse
import os
import resource
import statistics
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from benchmarks.rows import Row, show

PYTHON = sys.executable
COMMAND = Path(sys.executable).with_name("remanence")
ENVIRONMENT = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}
"""With that variable, each interpreter would compile the package anew."""


def measure(*, count: int = 10) -> list[Row]:
    """Medians over *count* fresh interpreters; `python -c pass` is the floor of each."""
    floor, busy = median((PYTHON, "-c", "pass"), count)
    commands: tuple[tuple[str, tuple[str, ...], float | None], ...] = (
        ("import remanence", (PYTHON, "-c", "import remanence"), 150.0),
        ("from remanence import Memory", (PYTHON, "-c", "from remanence import Memory"), None),
        ("remanence --help", (str(COMMAND), "--help"), 300.0),
    )
    rows = [Row(what="python -c pass", measured=floor, unit="ms", detail=f"{busy:.0f} ms of CPU")]
    for what, command, target in commands:
        taken, processor = median(command, count)
        detail = f"{taken - floor:.0f} ms over the bare interpreter; {processor:.0f} ms of CPU"
        rows.append(Row(what=what, measured=taken, unit="ms", target=target, detail=detail))
    return rows


class Taken(NamedTuple):
    """Milliseconds that a process took, and those that it kept a processor busy."""

    wall: float
    processor: float


def median(command: Sequence[str], count: int) -> Taken:
    """The medians of *count* runs, after one that fills the caches."""
    _run(command)
    runs = [_run(command) for _ in range(count)]
    return Taken(*(statistics.median(values) for values in zip(*runs, strict=True)))


def _run(command: Sequence[str]) -> Taken:
    began, busy = time.perf_counter(), _busy()
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, env=ENVIRONMENT)
    return Taken((time.perf_counter() - began) * 1_000, (_busy() - busy) * 1_000)


def _busy() -> float:
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def main() -> None:
    """Print the figures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=10, help="fresh interpreters of each kind")
    show(measure(count=parser.parse_args().count))


if __name__ == "__main__":
    main()
