import importlib
import subprocess
import sys
import tomllib
from importlib.metadata import version
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

import remanence
from remanence.errors import needs_extra


def test_the_public_names_are_sorted() -> None:
    assert remanence.__all__ == sorted(remanence.__all__)


def test_every_public_name_can_be_imported() -> None:
    missing = [name for name in remanence.__all__ if not hasattr(remanence, name)]

    assert missing == []


def test_every_name_that_the_package_shows_is_declared_public() -> None:
    shown = {
        name
        for name in dir(remanence)
        if not name.startswith("_") and not isinstance(getattr(remanence, name), ModuleType)
    }

    assert shown - set(remanence.__all__) == set()


def test_the_version_is_that_of_the_installed_package() -> None:
    assert remanence.__version__ == version("remanence")


def test_a_newcomer_meets_at_most_25_names() -> None:
    assert len(remanence.__all__) <= 25


@pytest.mark.parametrize("suite", ["engine_contract", "store_contract"])
@pytest.mark.parametrize("package", ["pytest", "pytest_asyncio"])
def test_a_contract_suite_without_the_extra_says_what_to_install(suite: str, package: str) -> None:
    program = (
        f"import sys; sys.modules['{package}'] = None\n"
        "import remanence.testing\n"
        f"import remanence.testing.{suite}"
    )

    run = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, check=False, text=True
    )

    assert run.stderr.endswith(
        f"MissingExtra: {package!r} is not installed: add the extra 'testing' to your installation "
        "of remanence, such as by pip install '.[testing]' in a checkout\n"
    )


def pyproject() -> dict[str, Any]:
    text = (Path(__file__).parents[2] / "pyproject.toml").read_text(encoding="utf-8")
    return tomllib.loads(text)


def test_the_extra_of_the_contract_suites_installs_what_a_store_of_vectors_needs() -> None:
    extras = pyproject()["project"]["optional-dependencies"]

    assert "remanence[vectors]" in extras["testing"]


def test_the_sdist_has_no_tests_that_only_run_in_a_checkout() -> None:
    included = pyproject()["tool"]["hatch"]["build"]["targets"]["sdist"]["include"]

    assert [name for name in included if name.startswith("/tests")] == []


def test_a_missing_module_of_the_package_itself_is_not_an_extra_to_install() -> None:
    with pytest.raises(ModuleNotFoundError, match=r"remanence\.nothing"), needs_extra("client"):
        importlib.import_module("remanence.nothing")
