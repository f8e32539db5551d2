"""Log lines of `serve` and `worker`."""

import json
import logging
import subprocess
import sys
from typing import get_args

import pytest

from remanence.cli.service import LogFormat
from remanence.telemetry.logs import JSONFormatter, TextFormatter

FORGED = "gpt\n2026-05-05 ERROR [-] forged\r\x85\u2028\x1b[31m\u202e"


def record(caught: pytest.ExceptionInfo[Exception] | None = None) -> logging.LogRecord:
    cause = None if caught is None else (caught.type, caught.value, caught.tb)
    return logging.LogRecord("remanence", logging.INFO, "", 1, "call of %s", (FORGED,), cause)


@pytest.mark.parametrize("formatter", [TextFormatter("INFO %(message)s"), JSONFormatter()])
def test_text_from_outside_neither_begins_a_line_nor_controls_a_terminal(
    formatter: logging.Formatter,
) -> None:
    line = formatter.format(record())

    assert line.isprintable()
    assert r"gpt\u000a2026" in line.replace(r"\n", r"\u000a")


def test_a_traceback_keeps_its_lines_and_none_passes_for_a_record() -> None:
    with pytest.raises(ValueError, match="forged") as caught:
        raise ValueError(FORGED)

    logged = record(caught)
    logging.Formatter().format(logged)  # by a handler before it
    text = TextFormatter("INFO %(message)s").format(logged)
    first, *others = text.split("\n")

    assert first.startswith("INFO call of gpt")
    assert others[0] == "  Traceback (most recent call last):"
    assert all(line.startswith("  ") and line.isprintable() for line in others)


def test_a_line_of_json_has_the_text_as_it_was() -> None:
    assert json.loads(JSONFormatter().format(record()))["message"] == f"call of {FORGED}"


@pytest.mark.parametrize("form", get_args(get_args(LogFormat)[0]))
def test_a_record_of_the_service_is_one_line_on_stderr(form: str) -> None:
    code = (
        "from remanence.cli.service import log_service; from remanence.telemetry import logger; "
        f"log_service({form!r}); logger.info('call of %s', {FORGED!r})"
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    assert len(ran.stderr.splitlines()) == 1


@pytest.mark.parametrize(
    ("options", "lines"), [("details=False", []), ("details=True", ["attempt", "attempt"])]
)
def test_only_with_debug_a_command_or_the_service_prints_each_attempt_to_connect(
    options: str, lines: list[str]
) -> None:
    code = (
        "import logging; from remanence.cli.failures import set_up_logs; "
        "from remanence.cli.service import log_service; pool = logging.getLogger('psycopg.pool'); "
        f"set_up_logs({options}); pool.warning('attempt'); log_service('text'); "
        "pool.warning('attempt'); logging.getLogger('psycopg').warning('another')"
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    printed = [line.replace(":", " ").split()[-1] for line in ran.stderr.splitlines()]
    assert printed == [*lines, "another"]
