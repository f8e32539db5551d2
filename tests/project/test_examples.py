"""The programs in examples/ run, without a network, and print what they are there to show."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parents[2] / "examples"
SHOWN = {
    "agent_loop.py": ["LH 454 leaves from gate B42.", "[result] B42"],
    "custom_observer.py": ["Ticket #4417 is still open"],
    "two_conversations.py": ["ana: At 13:25", "bob: I do not know your flight."],
}


def test_every_example_is_run_here() -> None:
    assert {path.name for path in EXAMPLES.glob("*.py")} == SHOWN.keys()


@pytest.mark.parametrize("name", SHOWN)
def test_an_example_prints_what_it_shows(name: str, tmp_path: Path) -> None:
    bare = {"PATH": os.environ["PATH"], "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    done = subprocess.run(
        [sys.executable, EXAMPLES / name],
        cwd=tmp_path,
        env=bare,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )

    assert (done.returncode, done.stderr) == (0, "")
    for text in SHOWN[name]:
        assert text in done.stdout
    assert not list(tmp_path.iterdir())
