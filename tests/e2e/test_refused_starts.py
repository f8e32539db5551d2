"""Commands that cannot start say why, and leave no new database behind."""

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from subprocess import CompletedProcess

import pytest

from remanence.server.run import listen

Cli = Callable[..., CompletedProcess[str]]

# Each test of `serve` starts a process, whose log would stay in that of the tests.
pytestmark = pytest.mark.timeout(60)


def serve(directory: Path, *options: str) -> CompletedProcess[str]:
    command = (sys.executable, "-m", "remanence", "serve", "--db", "sqlite:///memory.db")
    return subprocess.run(
        [*command, *options], cwd=directory, capture_output=True, text=True, timeout=50, check=False
    )


def test_an_audit_log_that_cannot_be_written_names_the_option_and_a_remedy(tmp_path: Path) -> None:
    run = serve(tmp_path, "--port", "0", "--audit-log", "nowhere/audit.jsonl")

    assert run.returncode == 1
    assert run.stderr.startswith("remanence: --audit-log 'nowhere/audit.jsonl' cannot be written")
    assert "existing, writable directory" in run.stderr
    assert list(tmp_path.iterdir()) == []


def test_a_server_whose_port_is_in_use_leaves_no_database(tmp_path: Path) -> None:
    with listen("127.0.0.1", 0) as taken:
        port = taken.getsockname()[1]
        run = serve(tmp_path, "--port", str(port))

    assert run.returncode == 1
    assert f"127.0.0.1:{port}" in run.stderr
    assert "Address already in use: choose another with --port" in run.stderr
    assert list(tmp_path.iterdir()) == []


def test_a_server_with_an_impossible_upstream_leaves_no_database(tmp_path: Path) -> None:
    run = serve(tmp_path, "--port", "0", "--openai-url", "ftp://example.com")

    assert run.returncode == 1
    assert "--openai-url='ftp://example.com' is impossible" in run.stderr
    assert list(tmp_path.iterdir()) == []


def test_an_import_of_a_malformed_file_leaves_no_database(cli: Cli, tmp_path: Path) -> None:
    file = tmp_path / "bad.jsonl"
    file.write_text("not JSON\n")
    run = cli("import", file, "--db", "sqlite:///memory.db")

    assert run.returncode == 1
    assert list(tmp_path.iterdir()) == [file]


def test_a_key_with_an_unknown_scope_leaves_no_database(cli: Cli, tmp_path: Path) -> None:
    run = cli("keys", "create", "app", "--scope", "all", "--db", "sqlite:///memory.db")

    assert run.returncode == 1
    assert "known are read, write, erase, metrics" in run.stderr
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("command", [("inspect",), ("migrate",), ("delete", "a", "--yes")])
def test_a_command_on_a_log_without_its_database_keeps_the_log(
    cli: Cli, command: tuple[str, ...], tmp_path: Path
) -> None:
    log = tmp_path / "memory.db-wal"
    log.write_bytes(b"the log of a killed process")
    run = cli(*command, "--db", "sqlite:///memory.db")

    assert run.returncode == 1
    assert "put the database file back beside its log, or move the log away" in run.stderr
    assert str(log) in run.stderr
    assert list(tmp_path.iterdir()) == [log]
