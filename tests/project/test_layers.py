import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
LINT_IMPORTS = (
    "import sys; from importlinter.cli import lint_imports; sys.exit(lint_imports(no_cache=True))"
)


@pytest.mark.req("L-59")
def test_every_module_imports_only_from_the_layers_below_it() -> None:
    run = subprocess.run(
        [sys.executable, "-c", LINT_IMPORTS], capture_output=True, check=False, cwd=ROOT, text=True
    )

    assert run.returncode == 0, run.stdout + run.stderr


def test_a_layer_is_optional_only_while_it_does_not_exist() -> None:
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text())
    contracts = settings["tool"]["importlinter"]["contracts"]
    layers = next(contract["layers"] for contract in contracts if contract["type"] == "layers")
    package = ROOT / "src" / "remanence"

    optional = re.findall(r"\((\w+)\)", " ".join(layers))
    existing = [name for name in optional if package.joinpath(f"{name}.py").exists()]
    existing += [name for name in optional if package.joinpath(name, "__init__.py").exists()]

    assert existing == [], "take these out of their parentheses in [tool.importlinter]"


def test_one_module_starts_every_task_that_outlives_a_call() -> None:
    package = ROOT / "src" / "remanence"
    starts = re.compile(r"asyncio\.(?:create_task|ensure_future)|loop\.create_task")
    modules = [file for file in package.rglob("*.py") if "testing" not in file.parts]

    found = [file.name for file in modules if starts.search(file.read_text(encoding="utf-8"))]

    assert found == ["background.py"]
