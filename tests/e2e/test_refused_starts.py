"""Commands that cannot start say why, and leave no new database behind."""

import subprocess
import sys
from pathlib import Path
from subprocess import CompletedProcess

import pytest

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
