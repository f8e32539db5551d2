"""How long a fresh interpreter takes for an import, and the command line for its help."""

import argparse
import statistics
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from benchmarks.rows import Row, show

PYTHON = sys.executable
COMMAND = Path(sys.executable).with_name("remanence")


def measure(*, count: int = 10) -> list[Row]:
    """Medians over *count* fresh interpreters; `python -c pass` is the floor of each."""
    floor = median((PYTHON, "-c", "pass"), count)
    commands: tuple[tuple[str, tuple[str, ...], float], ...] = (
        ("import remanence", (PYTHON, "-c", "import remanence"), 150.0),
        ("from remanence import Memory", (PYTHON, "-c", "from remanence import Memory"), 150.0),
        ("remanence --help", (str(COMMAND), "--help"), 300.0),
    )
    rows = [Row(what="python -c pass", measured=floor, unit="ms")]
    for what, command, target in commands:
        taken = median(command, count)
        detail = f"{taken - floor:.0f} ms over the bare interpreter"
        rows.append(Row(what=what, measured=taken, unit="ms", target=target, detail=detail))
    return rows


def median(command: Sequence[str], count: int) -> float:
    """Milliseconds of a run, the median of *count* after one that fills the caches."""
    _run(command)
    return statistics.median(_run(command) for _ in range(count))


def _run(command: Sequence[str]) -> float:
    began = time.perf_counter()
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    return (time.perf_counter() - began) * 1_000


def main() -> None:
    """Print the figures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=10, help="fresh interpreters of each kind")
    show(measure(count=parser.parse_args().count))


if __name__ == "__main__":
    main()
