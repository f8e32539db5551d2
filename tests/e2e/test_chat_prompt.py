"""The prompt of `remanence chat` in a terminal."""

import contextlib
import os
import pty
import subprocess
import sys
from pathlib import Path

import pytest
from tests.slow import slow_except

READ = "from remanence.cli.chat_command import _lines; print(repr(next(_lines(interactive=True))))"


@pytest.mark.parametrize(
    ("typed", "read"),
    [
        pytest.param(b"x" * 6_000 + b"END\r", repr("x" * 6_000 + "END"), id="a long line"),
        pytest.param(b"\x1b[200~one\rtwo\x1b[201~\r", repr("one\ntwo"), id="pasted lines"),
        pytest.param(b"seat\x1b[Ds\r", repr("seast"), id="an arrow key"),
    ],
)
def test_a_message_at_the_prompt_is_read_whole(typed: bytes, read: str) -> None:
    pytest.importorskip("readline")
    terminal, end = pty.openpty()
    environment = {**os.environ, "TERM": "xterm", "INPUTRC": "/dev/null"}
    with subprocess.Popen(
        (sys.executable, "-c", READ),
        stdin=end,
        stdout=end,
        stderr=end,
        env=environment,
        start_new_session=True,
    ):
        os.close(end)
        shown = b""
        while b"> " not in shown:
            shown += os.read(terminal, 4_096)
        sent = 0
        while read.encode() not in shown:
            sent += os.write(terminal, typed[sent : sent + 500]) if sent < len(typed) else 0
            try:
                shown += os.read(terminal, 65_536)
            except OSError:  # the process has ended
                break
    os.close(terminal)

    assert read in shown.decode()


def test_the_end_of_input_ends_the_line_of_the_prompt() -> None:
    terminal, end = pty.openpty()
    read = "from remanence.cli.chat_command import _lines; list(_lines(interactive=True))"
    with subprocess.Popen(
        (sys.executable, "-c", read), stdin=end, stdout=end, stderr=end, start_new_session=True
    ):
        os.close(end)
        shown = b""
        while b"> " not in shown:
            shown += os.read(terminal, 4_096)
        os.write(terminal, b"\x04")
        with contextlib.suppress(OSError):  # the process has ended
            while more := os.read(terminal, 4_096):
                shown += more
    os.close(terminal)

    assert shown.endswith(b"\r\n")


@pytest.mark.parametrize("named", slow_except([True, False], [False]))
def test_a_chat_without_a_user_says_that_other_conversations_will_not_know_of_it(
    tmp_path: Path, *, named: bool
) -> None:
    terminal, end = pty.openpty()
    command = [sys.executable, "-m", "remanence", "chat", "--model", "ollama:llama3.2"]
    options = ["--user", "ana"] if named else []
    with subprocess.Popen(
        [*command, "--db", "sqlite:///memory.db", *options],
        cwd=tmp_path,
        stdin=end,
        stdout=end,
        stderr=end,
        start_new_session=True,
    ):
        os.close(end)
        shown = b""
        while b"> " not in shown:
            shown += os.read(terminal, 4_096)
        os.write(terminal, b"\x04")
        with contextlib.suppress(OSError):  # the process has ended
            while os.read(terminal, 4_096):
                pass
    os.close(terminal)

    assert ("--user NAME" in " ".join(shown.decode().split())) is not named
