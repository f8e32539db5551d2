"""The examples of README.md and docs/ run: the blocks of a page in order, each with its own names.

The blocks of a page with the sentence `CONTINUED` share theirs. A block after the line
`<!-- not run: reason -->` is left alone.
"""

import ast
import asyncio
import inspect
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from remanence.blocking import Memory as BlockingMemory

ROOT = Path(__file__).parents[2]
README = ROOT / "README.md"
BLOCK = re.compile(
    r"(?P<not_run><!-- not run: .+ -->\n+)?^```python\n(?P<code>.*?)^```$", re.DOTALL | re.MULTILINE
)
CONTINUED = "Python blocks of this page use names from earlier ones."
SHELL_BLOCK = re.compile(r"^```(?:sh|bash|console)\n(.*?)^```$", re.DOTALL | re.MULTILINE)


def pages() -> list[Path]:
    return [page for page in (README, *sorted(ROOT.glob("docs/**/*.md"))) if page.exists()]


def examples(page: Path) -> Iterator[str]:
    """The code of a page's blocks, each moved down to the line where it stands."""
    text = page.read_text()
    for block in BLOCK.finditer(text):
        if not block["not_run"]:
            yield "\n" * text.count("\n", 0, block.start("code")) + block["code"]


@pytest.mark.parametrize("page", pages(), ids=lambda page: str(page.relative_to(ROOT)))
def test_the_examples_of_a_page_run(
    page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    is_continued = CONTINUED in page.read_text()
    names: dict[str, Any] = {"__name__": "__main__"}  # whatever the examples define
    opened: list[BlockingMemory] = []  # as long as the process of a web app

    with asyncio.Runner() as runner:
        for example in examples(page):
            if not is_continued:
                names = {"__name__": "__main__"}
            code = compile(example, page, "exec", flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
            result = eval(code, names)
            if inspect.iscoroutine(result):
                runner.run(result)
            opened += [value for value in names.values() if isinstance(value, BlockingMemory)]
    for memory in opened:
        memory.close()


@pytest.mark.skipif(not README.exists(), reason="there is no README.md yet")
def test_the_readme_names_the_test_command_that_ci_runs() -> None:
    command = (ROOT / ".ci" / "run").read_text().splitlines()[-1]
    shell_lines = "".join(SHELL_BLOCK.findall(README.read_text())).splitlines()

    assert command in [line.removeprefix("$ ").partition(" #")[0].strip() for line in shell_lines]
