"""An error of a command names the option or argument, its value and the remedy, and changes nothing."""

import json
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from subprocess import PIPE, CompletedProcess

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
    "backup to stdout": (("backup", "-"), "'file': '-' is not a file: a copy cannot be written"),
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

VALUES: dict[str, tuple[tuple[str, ...], int, str]] = {
    "zero": (("inspect", "--limit", "0"), 2, "'--limit': '0' should be greater than or equal to 1"),
    "negative": (("messages", "trip", "--after", "-1"), 2, "'--after': '-1' should be greater"),
    "too many": (("inspect", "--limit", "99999999999"), 2, "'99999999999' should be less than"),
    "text": (
        ("recall", "trip", "x", "--limit", "x"),
        2,
        "'--limit': 'x' should be a valid integer",
    ),
    "fraction": (("worker", "--concurrency", "1.5"), 2, "'--concurrency': '1.5' should be a valid"),
    "too great": (("explain", "file", "--ratio", "2"), 2, "'--ratio': '2' should be less than"),
    "no choice": (("recall", "trip", "x", "--kind", "y"), 2, "'--kind': 'y' is not one of 'note'"),
    "no time": (("usage", "--since", "then"), 2, "'--since': 'then' is not a time: write"),
    "no words": (("recall", "trip", ""), 2, "'query': '' has no words: write some to look for"),
    "no words of a user": (("search", "", "--user=ana"), 2, "'query': '' has no words: write"),
    "blank": (("facts", "ana", "--search", " "), 2, "'--search': ' ' has no words: write some"),
    "query with ids": (
        ("forget", "trip", "--query", "Berlin", "--message", "m"),
        2,
        "--query only lists matches: leave out --message and --fact",
    ),
    "scope": (("keys", "create", "x", "--scope", "y"), 1, "--scope='y' is impossible: known are"),
    "failed read": (
        ("explain", "/proc/self/mem"),
        1,
        "'/proc/self/mem' cannot be read (Input/output error): name a file of messages",
    ),
    "worker on a file": (("worker",), 1, "a worker needs a PostgreSQL database, but the URL is"),
    "no daily notes": (("consolidate",), 1, "daily_directory is not set, so there are no daily"),
    "empty tenant": (("inspect", "trip", "--tenant", ""), 1, "tenant '' is not a name: use plain"),
    "host": (("serve", "--host", ""), 1, "--host '' is open to other machines"),
    "allowed host": (("serve", "--allowed-host", "a/b"), 1, "--allowed-host='a/b' is impossible"),
    "origin": (("serve", "--allowed-origin", "x"), 1, "--allowed-origin='x' is impossible: use"),
    "upstream": (("serve", "--openai-url", "x"), 1, "--openai-url='x' is impossible: use a URL"),
    "webhook": (("serve", "--webhook", "x"), 1, "--webhook='x' is impossible: use a URL that"),
    "copy that is lost": (
        ("copy", DATABASE, "sqlite:///:memory:"),
        2,
        "target 'sqlite:///:memory:' would end with the command: name a file",
    ),
    "copy on itself": (("copy", DATABASE, DATABASE), 1, "target of the copy is not empty: name"),
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


@pytest.mark.parametrize("case", VALUES)
def test_a_wrong_value_is_refused_in_a_line_with_its_option_and_the_remedy(
    cli: Cli, folder: Path, case: str
) -> None:
    arguments, code, text = VALUES[case]
    before = names(folder)

    run = cli(*arguments)

    error = run.stderr.splitlines()[-1]
    assert run.returncode == code, run.stdout
    assert text in error
    assert error.startswith(("Error: ", "remanence: "))
    assert names(folder) == before


def test_an_import_from_stdin_names_stdin(
    cli: Cli, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    tmp_path.joinpath("nothing").touch()
    with tmp_path.joinpath("nothing").open() as stdin:
        monkeypatch.setitem(vars(sys), "stdin", stdin)
        run = cli("import", "-", "--conversation", "trip")

    assert "stdin is empty: write one message as JSON on each line" in run.stderr


PROGRAM = """
import asyncio, pathlib
from remanence.cli.transcripts import open_lines

async def read():
    with open_lines(pathlib.Path("-")) as lines:
        for line in lines:
            print("read", flush=True)

asyncio.run(read())
"""


def test_ctrl_c_ends_a_read_of_stdin_at_once() -> None:
    command = [sys.executable, "-c", PROGRAM]
    with subprocess.Popen(command, stdin=PIPE, stdout=PIPE, stderr=PIPE, text=True) as run:
        assert run.stdin is not None
        assert run.stdout is not None
        run.stdin.write("a line\n")
        run.stdin.flush()
        assert run.stdout.readline() == "read\n"
        until_asleep(run.pid)
        run.send_signal(signal.SIGINT)
        try:
            code = run.wait(5)
        finally:
            run.kill()

    assert code == -signal.SIGINT


def until_asleep(pid: int) -> None:
    """Wait until the main thread of a process waits for something."""
    end = time.monotonic() + 5
    while Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "S":
        assert time.monotonic() < end
        time.sleep(0.01)


INTERRUPTED_START = """
import sys
from remanence.cli import main

class CtrlC:
    def find_spec(self, name, *_):
        if name == "remanence.cli.app":
            raise KeyboardInterrupt

sys.meta_path.insert(0, CtrlC())
sys.exit(main(["--help"]))
"""


def test_ctrl_c_while_a_command_is_loaded_shows_no_traceback() -> None:
    command = [sys.executable, "-c", INTERRUPTED_START]
    run = subprocess.run(command, check=False, capture_output=True, text=True)

    assert (run.returncode, run.stdout, run.stderr) == (130, "", "")
