import ast
import re
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
MAX_BYTES = 1_000_000


@pytest.fixture(scope="module")
def files() -> list[Path]:
    """What is in the repository, or would be after `git add --all`."""
    if not (ROOT / ".git").exists():
        pytest.skip("needs a git checkout")
    listing = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        capture_output=True,
        check=True,
        cwd=ROOT,
        text=True,
    )
    return sorted(
        ROOT / name for name in set(listing.stdout.split("\0")) if (ROOT / name).is_file()
    )


def lines_matching(pattern: str, files: list[Path]) -> list[str]:
    """`path:line` of each match; bytes that are no UTF-8 cannot match."""
    return [
        f"{path.relative_to(ROOT)}:{number}"
        for path in files
        for number, line in enumerate(path.read_text(errors="replace").splitlines(), start=1)
        if re.search(pattern, line)
    ]


def test_no_file_names_a_path_of_the_machine_it_was_written_on(files: list[Path]) -> None:
    pattern = rf"(^|[^A-Za-z0-9_])/({'wo' + 'rk'}|{'fa' + 'rm'})/|/{'bash' + '_jobs'}"

    assert lines_matching(pattern, files) == []


def test_no_file_names_the_host_of_a_package_registry(files: list[Path]) -> None:
    hosts = ["py" + "pi.org", "python" + "hosted.org", "npm" + "js.", "deb." + "debian"]

    assert lines_matching("|".join(map(re.escape, hosts)), files) == []


def test_no_lock_file_is_kept(files: list[Path]) -> None:
    names = {"package-lock.json", "pnpm-lock.yaml"}

    assert [path for path in files if path.suffix == ".lock" or path.name in names] == []


def test_no_file_is_larger_than_a_megabyte(files: list[Path]) -> None:
    assert [path for path in files if path.stat().st_size > MAX_BYTES] == []


def test_only_the_clock_reads_the_wall_clock(files: list[Path]) -> None:
    source = [path for path in files if path.suffix == ".py" and path.name != "clock.py"]

    assert lines_matching(r"\b(datetime|date)\.(now|utcnow|today)\(", source) == []


def test_no_test_patches_what_it_tests(files: list[Path]) -> None:
    source = [path for path in files if path.suffix == ".py"]
    tools = ["unittest" + r"\.mock", "from unittest " + "import mock", "monkeypatch" + r"\.setattr"]

    assert lines_matching("|".join(tools), source) == []


def private_names(path: Path) -> list[str]:
    """Return the names with a leading underscore that a file takes from elsewhere."""
    text = path.read_text(encoding="utf-8")
    if not re.search(r"\._[a-z]|import .*\b_[a-z]", text):
        return []
    tree = ast.parse(text)
    imported = {
        alias.name
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
        if re.match("_[a-z]", alias.name)
    }
    reached = {
        node.attr
        for node in ast.walk(tree)
        if isinstance(node, ast.Attribute)
        and re.match("_[a-z]", node.attr)
        and ast.unparse(node.value) not in {"self", "cls"}
    }
    names = imported | reached - {"_exit", "_replace"}  # public, of `os` and of named tuples
    return [f"{path.name}: {name}" for name in sorted(names)]


def test_no_test_uses_a_private_name(files: list[Path]) -> None:
    tests = [path for path in files if path.suffix == ".py" and ROOT / "tests" in path.parents]

    assert [name for path in tests for name in private_names(path)] == []
