"""Names and docstrings are those of the field: see the style rules in CONTRIBUTING.md."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path
from typing import TypeAlias

SOURCE = Path(__file__).parents[2] / "src" / "remanence"
FREE_RELATIVES = ("What", "Whether", "Which", "Who", "How")
VERBS_IN_ED = {"embed", "feed", "need", "proceed", "shed", "speed"}


Definition: TypeAlias = ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef


def _definitions(hint: str) -> Iterator[tuple[str, Definition]]:
    """Yield the definitions of the files whose text has a match of *hint*, each with its place."""
    for path in sorted(SOURCE.rglob("*.py")):
        text = path.read_text(encoding="utf-8")
        if re.search(hint, text):
            for node in ast.walk(ast.parse(text)):
                if isinstance(node, Definition):
                    yield f"{path.relative_to(SOURCE)}:{getattr(node, 'lineno', 1)}", node


def test_no_docstring_begins_with_a_free_relative() -> None:
    found = [
        f"{place} {text.splitlines()[0]}"
        for place, node in _definitions(rf"[\"'](?:{'|'.join(FREE_RELATIVES)})")
        if (text := ast.get_docstring(node) or "").startswith(FREE_RELATIVES)
    ]

    assert found == []


def test_no_function_is_named_by_a_participle_alone() -> None:
    found = [
        f"{place} {node.name}"
        for place, node in _definitions(r"def _?[a-z]+ed\(")
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        and re.fullmatch(r"_?[a-z]+ed", node.name)
        and node.name.strip("_") not in VERBS_IN_ED
        and not any("property" in ast.unparse(each) for each in node.decorator_list)
    ]

    assert found == []
