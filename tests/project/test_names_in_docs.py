"""Files, folders and names of the package that the docs mention exist."""

import re
from contextlib import suppress
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import get_args

import pytest

from remanence.engine.steps import StepName

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "src" / "remanence"
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").glob("**/*.md"))]
BASES = [ROOT, SOURCE, ROOT / "benchmarks"]
NAMES = {path.name for path in SOURCE.rglob("*")}
FENCED = re.compile(r"^```.*?^```", re.DOTALL | re.MULTILINE)
PATH = re.compile(r"(?:[\w-]+/)+(?:[\w.-]+)?|[\w-]+\.py")
MODULE = re.compile(r"remanence(?:\.\w+)+")
SETTINGS_FILES = {"remanence.json", "remanence.toml"}
TELEMETRY = {
    *re.findall(
        r'"(remanence\.[\w.]+)"',
        "".join(file.read_text(encoding="utf-8") for file in SOURCE.glob("telemetry/*.py")),
    ),
    *(f"remanence.{step}" for step in get_args(StepName)),
}


def code_in(page: Path, shape: re.Pattern[str]) -> list[str]:
    """Return the inline code of a page that has a shape."""
    text = FENCED.sub("", page.read_text(encoding="utf-8"))
    return [code for code in re.findall(r"`([^`\n]+)`", text) if shape.fullmatch(code)]


def is_file(name: str, page: Path) -> bool:
    """Return True if a path exists; a single name may be anywhere in the package."""
    shown = name.removesuffix("/")
    if "/" not in shown and shown in NAMES:
        return True
    if "NNNN" in shown:
        shown = shown.rpartition("/")[0]
    return any((base / shown).exists() for base in [*BASES, page.parent])


def exists(name: str) -> bool:
    """Return True if a dotted name is a module, or an attribute of one."""
    module, _, attribute = name.rpartition(".")
    with suppress(ModuleNotFoundError):  # the parent is no package
        if find_spec(name):
            return True
    with suppress(ModuleNotFoundError):
        return hasattr(import_module(module), attribute)
    return False


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_files_and_folders_that_a_page_names_exist(page: Path) -> None:
    assert [name for name in code_in(page, PATH) if not is_file(name, page)] == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_names_of_the_package_that_a_page_shows_exist(page: Path) -> None:
    names = set(code_in(page, MODULE)) - SETTINGS_FILES - TELEMETRY

    assert [name for name in sorted(names) if not exists(name)] == []
