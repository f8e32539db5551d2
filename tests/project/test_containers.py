"""The files for containers, which cannot be run here, agree with the code."""

import dataclasses
import json
import re
import tomllib
from collections.abc import Callable
from pathlib import Path
from subprocess import CompletedProcess

import pytest

from remanence.settings import Settings

ROOT = Path(__file__).parents[2]
COMPOSE = (ROOT / "compose.yaml").read_text(encoding="utf-8")
DOCKERFILE = (ROOT / "Dockerfile").read_text(encoding="utf-8")
COMMANDS: list[list[str]] = [
    json.loads(found)
    for found in re.findall(r"^(?: +command:|CMD) (\[.*\])$", COMPOSE + DOCKERFILE, re.MULTILINE)
]


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_commands_and_their_options_exist(
    cli: Callable[..., CompletedProcess[str]], command: list[str]
) -> None:
    shown = cli(command[0], "--help")

    assert shown.returncode == 0, shown.stderr
    for option in command[1:]:
        assert not option.startswith("--") or re.search(rf"{option}\b", shown.stdout)


def test_each_service_has_a_command() -> None:
    assert [command[0] for command in COMMANDS] == ["migrate", "serve", "worker", "serve"]


def test_the_variables_are_settings() -> None:
    fields = {f"REMANENCE_{field.name.upper()}" for field in dataclasses.fields(Settings)}
    named = set(re.findall(r"\b(REMANENCE_\w+)(?::|=)", COMPOSE + DOCKERFILE))

    assert named
    assert named <= fields


def test_the_extras_that_are_installed_exist() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    (extras,) = re.findall(r'"\.\[(.*)\]"', DOCKERFILE)

    assert set(extras.split(",")) <= set(project["optional-dependencies"])


def test_files_that_the_image_copies_exist_and_are_not_ignored() -> None:
    kept = re.findall(
        r"^!(.+)$", (ROOT / ".dockerignore").read_text(encoding="utf-8"), re.MULTILINE
    )
    copied = [
        name
        for line in re.findall(r"^COPY (?!--from)(.+) \./\S*$", DOCKERFILE, re.MULTILINE)
        for name in line.split()
    ]

    assert copied
    assert set(copied) <= set(kept)
    assert all((ROOT / name).exists() for name in copied)


def test_the_image_runs_as_a_user_without_rights_and_its_health_is_probed_where_it_listens() -> (
    None
):
    assert re.search(r"^USER remanence$", DOCKERFILE, re.MULTILINE)
    assert "http://127.0.0.1:8765/healthz" in DOCKERFILE
    assert '"127.0.0.1:8765:8765"' in COMPOSE
    assert '"--health-port", "8765"' in COMPOSE
