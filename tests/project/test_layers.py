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
