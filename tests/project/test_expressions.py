"""A regular expression fits on a line; a longer one is made of parts that have names."""

import ast
from pathlib import Path

SOURCE = Path(__file__).parents[2] / "src" / "remanence"


def test_no_regular_expression_is_longer_than_a_line() -> None:
    found = [
        f"{path.relative_to(SOURCE)}:{pattern.lineno}"
        for path in sorted(SOURCE.rglob("*.py"))
        if "re.compile(" in (text := path.read_text(encoding="utf-8"))
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.Call) and ast.unparse(node.func) == "re.compile"
        for pattern in node.args[:1]
        if pattern.lineno != pattern.end_lineno
    ]

    assert found == []
