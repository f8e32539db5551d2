"""Names and docstrings are those of the field: see the style rules in CONTRIBUTING.md."""

import ast
import re
from functools import cache
from pathlib import Path
from typing import TypeAlias

SOURCE = Path(__file__).parents[2] / "src" / "remanence"
FREE_RELATIVES = ("What", "Whether", "Which", "Who", "How")
VERBS_IN_ED = {"embed", "feed", "need", "proceed", "shed", "speed"}


Definition: TypeAlias = ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef


@cache
def _definitions() -> tuple[tuple[str, Definition], ...]:
    return tuple(
        (f"{path.relative_to(SOURCE)}:{getattr(node, 'lineno', 1)}", node)
        for path in sorted(SOURCE.rglob("*.py"))
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, Definition)
    )


def test_no_docstring_begins_with_a_free_relative() -> None:
    found = [
        f"{place} {text.splitlines()[0]}"
        for place, node in _definitions()
        if (text := ast.get_docstring(node) or "").startswith(FREE_RELATIVES)
    ]

    assert found == []


def test_no_function_is_named_by_a_participle_alone() -> None:
    found = [
        f"{place} {node.name}"
        for place, node in _definitions()
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        and re.fullmatch(r"_?[a-z]+ed", node.name)
        and node.name.strip("_") not in VERBS_IN_ED
        and not any("property" in ast.unparse(each) for each in node.decorator_list)
    ]

    assert found == []
