"""An error of a command names the option or argument, its value and the remedy, and changes nothing."""

import json
from collections.abc import Callable
from pathlib import Path
from subprocess import CompletedProcess

import pytest

Cli = Callable[..., CompletedProcess[str]]

DATABASE = "sqlite:///memory.db"

PATHS: dict[str, tuple[tuple[str, ...], str]] = {
    "export": (("export", "trip", "--to", ""), "'--to': '' is not a path: name one"),
    "import notes": (("import-notes", "trip", "--from", ""), "'--from': '' is not a path"),
    "no folder": (
        ("import-notes", "trip", "--from", "none"),
        "'--from': there is no directory 'none': name that of an export",
    ),
    "file as folder": (("import-notes", "trip", "--from", "file"), "no directory 'file': name"),
    "backup": (("backup", ""), "'file': '' is not a path: name one"),
    "backup to a URL": (("backup", DATABASE), "memory.db is the URL of a database: name the new"),
    "replay": (("replay", ""), "'file': '' is not a path: name one"),
    "import": (("import", "none"), "'file': there is no file 'none': name one, or - for stdin"),
    "folder": (("import", "folder"), "'file': 'folder' is a directory: name a file in it"),
    "under a file": (("explain", "file/x"), "'file': there is no file 'file/x': name one"),
    "result": (("replay", "file", "--json", ""), "'--json': '' is not a path: name one"),
    "folder as result": (
        ("replay", "file", "--json", "folder"),
        "'--json': 'folder' already exists: name a new file, or remove it",
    ),
    "result in no folder": (
        ("replay", "file", "--json", "none/x"),
        "'--json': the directory of 'none/x' does not exist: create it first",
    ),
    "audit log": (("serve", "--audit-log", ""), "'--audit-log': '' is not a path: name one"),
}


@pytest.fixture
def folder(cli: Cli, tmp_path: Path) -> Path:
    """A working directory with a memory of one conversation, `trip` of ana."""
    lines = [
        {"role": "user", "content": "I live in Berlin."},
        {"role": "assistant", "content": "Ok."},
    ]
    tmp_path.joinpath("file").write_text("".join(f"{json.dumps(line)}\n" for line in lines))
    tmp_path.joinpath("folder").mkdir()
    run = cli("import", "file", "--conversation", "trip", "--user", "ana", "--db", DATABASE)
    assert run.returncode == 0, run.stderr
    return tmp_path


def names(folder: Path) -> list[str]:
    return sorted(str(path) for path in folder.rglob("*") if "memory.db" not in path.name)


@pytest.mark.parametrize("case", PATHS)
def test_a_wrong_path_is_refused_by_its_option_before_anything_is_written(
    cli: Cli, folder: Path, case: str
) -> None:
    arguments, text = PATHS[case]
    before = names(folder)

    run = cli(*arguments)

    assert run.returncode == 2, run.stdout
    assert text in run.stderr
    assert names(folder) == before


@pytest.mark.parametrize(
    ("url", "text"),
    [
        ("", "store '' is not a URL: write"),
        ("memory.db", "store 'memory.db' is not a URL: write 'sqlite:///memory.db'"),
        ("mysql://host/db", "store 'mysql://host/db' has an unknown scheme"),
        ("postgresql://u:secret@h/db", "'postgresql://u:***@h/db' is not a SQLite database"),
    ],
)
def test_a_backup_names_what_is_wrong_with_the_url(
    cli: Cli, folder: Path, url: str, text: str
) -> None:
    run = cli("backup", "copy.db", "--db", url)

    assert run.returncode == 1
    assert text in run.stderr
    assert not (folder / "copy.db").exists()
