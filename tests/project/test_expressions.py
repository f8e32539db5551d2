"""A regular expression fits on a line; a longer one is made of parts that have names."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

SOURCE = Path(__file__).parents[2] / "src" / "remanence"
LINE_LENGTH = 100
"""That of the formatter, which leaves a string that is longer as it is."""
RAW_STRING = re.compile(r"""\b(?:r|rf|fr)"(?!"")""")
"""The beginning of a pattern, in a call or a table, and of no docstring."""


def test_no_regular_expression_is_longer_than_a_line() -> None:
    found = [
        f"{path.relative_to(SOURCE)}:{pattern.lineno}"
        for path, text in _sources()
        if "re.compile(" in text
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.Call) and ast.unparse(node.func) == "re.compile"
        for pattern in node.args[:1]
        if pattern.lineno != pattern.end_lineno
    ]

    assert found == []


def test_no_raw_string_is_on_a_line_that_is_too_long() -> None:
    found = [
        f"{path.relative_to(SOURCE)}:{number}"
        for path, text in _sources()
        for number, line in enumerate(text.splitlines(), 1)
        if len(line) > LINE_LENGTH and RAW_STRING.search(line)
    ]

    assert found == []


def _sources() -> Iterator[tuple[Path, str]]:
    for path in sorted(SOURCE.rglob("*.py")):
        yield path, path.read_text(encoding="utf-8")
