"""Ends the PostgreSQL server of a folder when the process that started this one is gone.

That process holds the other end of stdin, which the system closes however it ends.
"""

import os
import shutil
import signal
import sys
import time
from contextlib import suppress
from pathlib import Path

WAIT_SECONDS = 60


def end_server(folder: Path) -> None:
    """End the server at once, if it runs, and delete its files."""
    with suppress(OSError, ValueError):  # no such file or process: it has ended
        pid = int((folder / "data" / "postmaster.pid").read_text().split()[0])
        os.kill(pid, signal.SIGQUIT)
        deadline = time.monotonic() + WAIT_SECONDS
        while time.monotonic() < deadline:
            os.kill(pid, 0)  # raises when it is gone
            time.sleep(0.05)
    shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    sys.stdin.read()
    end_server(Path(sys.argv[1]))
