"""The list of rows is whole, and each marker names one of them."""

import re
import tomllib
from collections import defaultdict
from itertools import chain
from pathlib import Path

import pytest

ROWS = Path(__file__).with_name("rows.toml")
TESTS = Path(__file__).parents[1]
COUNTS = {"L-": 67, "L-N": 4, "L-Q": 3, "LS-": 12, "Z-": 96, "Z-P": 1, "B-": 78, "C-": 29, "X-": 30}
MARKER = re.compile(r"mark\.req\(([^)]+)\)")


def rows() -> dict[str, dict[str, str]]:
    return tomllib.loads(ROWS.read_text(encoding="utf-8"))


@pytest.mark.req("Z-P1")
def test_every_row_of_the_requirements_is_listed_once() -> None:
    expected = chain.from_iterable(
        (f"{prefix}{number:02}" for number in range(1, count + 1))
        if prefix.endswith("-")
        else (f"{prefix}{number}" for number in range(1, count + 1))
        for prefix, count in COUNTS.items()
    )

    assert sorted(rows()["title"]) == sorted(expected)


def test_what_stands_in_for_another_hosts_code_belongs_to_a_row() -> None:
    assert set(rows()["stands_in"]) <= set(rows()["title"])


def test_each_row_that_is_not_met_has_a_reason_and_each_row_has_a_preset() -> None:
    listed = rows()

    assert set(listed["not_met"]) <= set(listed["title"])
    assert all(len(reason) > 40 for reason in listed["not_met"].values())
    prefixes = {id_.partition("-")[0] + "-" for id_ in listed["title"]}
    assert set(listed["runs_under"]) - set(listed["title"]) == prefixes


@pytest.mark.parametrize("preset", ["lango", "zora", "brain"])
def test_the_tests_of_a_designs_rows_open_its_preset(preset: str) -> None:
    """A row is carried by a file that names the preset, the rules of counting or its file."""
    prefixes = {p for p, name in rows()["runs_under"].items() if name == preset}
    carried: defaultdict[str, list[str]] = defaultdict(list)
    for file in TESTS.rglob("test_*.py"):
        text = file.read_text(encoding="utf-8")
        for arguments in MARKER.findall(text):
            for row in re.findall(r'"(.+?)"', arguments):
                carried[row].append(text)

    without = {
        row
        for row in rows()["title"]
        if row.partition("-")[0] + "-" in prefixes
        and row not in rows()["runs_under"]
        and not any(preset in text.casefold() for text in carried[row])
    }
    assert without == set()


def test_every_marker_names_a_row() -> None:
    text = "\n".join(file.read_text(encoding="utf-8") for file in TESTS.rglob("test_*.py"))

    named = {row for arguments in MARKER.findall(text) for row in re.findall(r'"(.+?)"', arguments)}
    assert named <= set(rows()["title"])


def test_a_test_carries_its_rows_in_one_marker() -> None:
    stacked = re.compile(r"@pytest\.mark\.req\([^)]+\)\n(?:@.*\n)*@pytest\.mark\.req\(")
    files = [file for file in TESTS.rglob("test_*.py") if stacked.search(file.read_text("utf-8"))]

    assert files == []
