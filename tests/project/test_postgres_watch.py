"""The PostgreSQL server of a test run ends with it."""

import sys
import time
from contextlib import ExitStack
from pathlib import Path
from subprocess import PIPE, Popen

from tests.postgres import WAIT_SECONDS

ROOT = Path(__file__).parents[2]
KILLED = """
import os, signal, sys
from pathlib import Path
from tests.postgres import ended_with_this_process

with ended_with_this_process(Path(sys.argv[1])):
    os.kill(os.getpid(), signal.SIGKILL)
"""

# Like a real server it minds SIGQUIT, which a shell may have told its background jobs to ignore.
SERVER = """
import signal, time

signal.signal(signal.SIGQUIT, signal.SIG_DFL)
print("runs", flush=True)
time.sleep(600)
"""


def test_a_server_ends_with_a_test_run_that_was_killed(tmp_path: Path) -> None:
    folder = tmp_path / "server"
    (folder / "data").mkdir(parents=True)
    with Popen([sys.executable, "-c", SERVER], stdout=PIPE) as server, ExitStack() as stack:
        stack.callback(server.kill)
        assert server.stdout
        assert server.stdout.readline()
        (folder / "data" / "postmaster.pid").write_text(f"{server.pid}\n")

        with Popen([sys.executable, "-c", KILLED, folder], cwd=ROOT) as run:
            pass

        assert run.returncode == -9
        assert server.wait(WAIT_SECONDS) == -3  # SIGQUIT: the signal of an immediate shutdown
    deadline = time.monotonic() + WAIT_SECONDS
    while folder.exists() and time.monotonic() < deadline:
        time.sleep(0.01)
    assert not folder.exists()
