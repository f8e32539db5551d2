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
    "not met": "yellow",
    "not run": "red",
    "passed": "green",
    "skipped": "yellow",
    "no test": "red",
}
"""Results from the worst on; a row that nothing carries is the last."""


class Row(NamedTuple):
    """A row of the requirements: the preset it runs under, what stands in, and why it is not met."""

    id: str
    title: str
    preset: str
    stands_in: str
    not_met: str


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
    stands_in, not_met, presets = data["stands_in"], data["not_met"], data["runs_under"]
    return tuple(
        Row(
            id=id_,
            title=title,
            preset=presets.get(id_) or presets[id_.partition("-")[0] + "-"],
            stands_in=stands_in.get(id_, ""),
            not_met=not_met.get(id_, ""),
        )
        for id_, title in data["title"].items()
    )


def table(rows: Iterable[Row], found: Requirements) -> Table:
    """Row, title, tests, result."""
    shown = Table("row", "what", "preset", "tests", "result", title="Requirements")
    for row in rows:
        result = _result(row, found)
        notes = [
            f"[dim]{name}: {text}[/dim]"
            for name, text in (("stands in", row.stands_in), ("not met", row.not_met))
            if text
        ]
        shown.add_row(
            row.id,
            "\n".join([row.title, *notes]),
            row.preset,
            _names(found.tests.get(row.id, ())),
            f"[{STYLES[result]}]{result}[/]",
        )
    return shown


def _result(row: Row, found: Requirements) -> str:
    """The result of a row's tests; of one that is not met they show what there is instead."""
    result = found.result(row.id)
    return "not met" if row.not_met and result == "passed" else result


def _names(tests: Iterable[str]) -> str:
    """The tests of a row; parameters of one test are one line."""
    names = list(dict.fromkeys(test.partition("[")[0].replace("tests/", "", 1) for test in tests))
    more = len(names) - SHOWN_TESTS
    return "\n".join([*names[:SHOWN_TESTS], *([f"and {more} more"] if more > 0 else [])])


def main(arguments: list[str]) -> int:
    """0 if every row has a test and all of them pass; rows that are not met are named."""
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
        name: sum(_result(row, found) == name for row in rows) for name in STYLES
    }
    console.print(", ".join(f"{count} {name}" for name, count in counts.items()))
    unknown = sorted(set(found.tests) - {row.id for row in rows})
    if unknown:
        console.print(f"[red]markers of no row: {', '.join(unknown)}[/red]")
    held = counts["passed"] + counts["not met"] == len(rows)
    return 0 if held and not unknown and code == 0 else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
