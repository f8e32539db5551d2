"""Run the tests that carry `req` markers, and print each row with its tests and their result."""

import sys
import tomllib
from collections import defaultdict
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import NamedTuple

import pytest
from rich.console import Console
from rich.table import Table

ROWS = Path(__file__).parents[1] / "tests" / "requirements" / "rows.toml"
SHOWN_TESTS = 3
STYLES = {
    "failed": "red",
    "not run": "red",
    "passed": "green",
    "skipped": "yellow",
    "no test": "red",
}
"""Results from the worst on; a row that nothing carries is the last."""


class Row(NamedTuple):
    """A row of the requirements, and what stands in for another host's code."""

    id: str
    title: str
    stands_in: str


class Requirements:
    """A pytest plugin: keeps the tests with `req` markers and what became of each."""

    def __init__(self) -> None:
        self.tests: defaultdict[str, list[str]] = defaultdict(list)
        self.outcomes: dict[str, str] = {}

    def pytest_collection_finish(self, session: pytest.Session) -> None:
        for item in session.items:
            for mark in item.iter_markers("req"):
                for row in mark.args:
                    self.tests[row].append(item.nodeid)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed:
            self.outcomes[report.nodeid] = "failed"
        elif report.when == "call" or report.skipped:
            self.outcomes.setdefault(report.nodeid, report.outcome)

    def result(self, row: str) -> str:
        """What became of a row: its worst result, where skipped tests count only alone."""
        outcomes = {self.outcomes.get(test, "not run") for test in self.tests.get(row, ())}
        return next((name for name in STYLES if name in outcomes), "no test")


def read_rows() -> tuple[Row, ...]:
    """The rows in their order."""
    data = tomllib.loads(ROWS.read_text(encoding="utf-8"))
    stands_in = data["stands_in"]
    return tuple(Row(id_, title, stands_in.get(id_, "")) for id_, title in data["title"].items())


def table(rows: Iterable[Row], found: Requirements) -> Table:
    """Row, title, tests, result."""
    shown = Table("row", "what", "tests", "result", title="Requirements")
    for row in rows:
        result = found.result(row.id)
        what = f"{row.title}\n[dim]stands in: {row.stands_in}[/dim]" if row.stands_in else row.title
        shown.add_row(
            row.id, what, _names(found.tests.get(row.id, ())), f"[{STYLES[result]}]{result}[/]"
        )
    return shown


def _names(tests: Iterable[str]) -> str:
    """The tests of a row; parameters of one test are one line."""
    names = list(dict.fromkeys(test.partition("[")[0].replace("tests/", "", 1) for test in tests))
    more = len(names) - SHOWN_TESTS
    return "\n".join([*names[:SHOWN_TESTS], *([f"and {more} more"] if more > 0 else [])])


def main(arguments: list[str]) -> int:
    """0 if every row has a test and all of them pass."""
    found = Requirements()
    # The tests that were collected are seen in this process alone.
    alone = ("-p", "no:xdist")
    options = [*alone, "-q", "-m", "req and not slow and not live", "--no-header", *arguments]
    code = pytest.main(options, plugins=[found])
    if code == pytest.ExitCode.USAGE_ERROR:
        return int(code)
    rows = read_rows()
    console = Console(width=None if sys.stdout.isatty() else 160)
    console.print(table(rows, found))
    counts: Mapping[str, int] = {
        name: sum(found.result(row.id) == name for row in rows) for name in STYLES
    }
    console.print(", ".join(f"{count} {name}" for name, count in counts.items()))
    unknown = sorted(set(found.tests) - {row.id for row in rows})
    if unknown:
        console.print(f"[red]markers of no row: {', '.join(unknown)}[/red]")
    return 0 if counts["passed"] == len(rows) and not unknown and code == 0 else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
