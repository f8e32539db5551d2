"""Output of commands: text for people, JSON for scripts, progress on stderr.

Texts are printed without interpreting markup, and without control characters.
"""

import dataclasses
import json
import os
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, date, datetime
from pathlib import Path
from typing import NamedTuple, TypeVar

from rich.console import Console
from rich.markup import escape
from rich.progress import Progress
from rich.table import Table
from rich.text import Text

from remanence.files import FILE_MODE
from remanence.types import Segment

T = TypeVar("T")

SHOWN_NOTE_LINES = 40

TEXT_WIDTH = 40
"""The minimum width of a column of long text."""

CELL_WIDTH = 120
TERMINAL_CELL_WIDTH = 60
"""The maximum width of other columns, such as of ids, in a file and on a terminal."""

_CONTROLS = (*range(32), *range(127, 160), *range(0x202A, 0x202F), *range(0x2066, 0x206A))
"""Control characters of ASCII and Latin-1, and of bidirectional text."""
_WITHOUT_CONTROLS = {code: None for code in _CONTROLS if chr(code) not in "\n\t"}
_IN_JSON = {code: f"\\u{code:04x}" for code in _WITHOUT_CONTROLS}


def printable(text: str) -> str:
    """Return a text without characters that control a terminal or disguise other text."""
    return text.translate(_WITHOUT_CONTROLS)


def console(*, width: int | None = None, stderr: bool = False) -> Console:
    """Return a console that does not interpret markup."""
    return Console(highlight=False, markup=False, emoji=False, width=width, stderr=stderr)


def line(text: str = "", *, style: str | None = None) -> None:
    """Print a paragraph, wrapped at the width of the terminal if there is one."""
    terminal = console()
    terminal.print(Text(printable(text)), style=style, soft_wrap=not terminal.is_terminal)


def heading(text: str) -> None:
    """Print a heading after a blank line."""
    line()
    line(text, style="bold")


def table(rows: Iterable[T], columns: Mapping[str, Callable[[T], object]]) -> None:
    """Print a table of rows; *columns* has a function for the value of each column.

    A column is numeric if its name ends in `#`, and long text if it ends in `~`. Other very long
    values, such as ids, are truncated; `--json` has them in full.
    """
    terminal = console()
    widest_cell = TERMINAL_CELL_WIDTH if terminal.is_terminal else CELL_WIDTH
    shown = Table(box=None, header_style="bold", padding=(0, 1, 0, 0), show_edge=False)
    cells = [
        [
            Text(text if name.endswith("~") else shorten(text, widest_cell))
            for name, text in (
                (name, printable(cell(value(row)))) for name, value in columns.items()
            )
        ]
        for row in rows
    ]
    needed = 0
    for place, column in enumerate(columns):
        is_text, name = column.endswith("~") and terminal.is_terminal, column.rstrip("#~")
        widest = max((row[place].cell_len for row in cells), default=0)
        needed += max(min(widest, TEXT_WIDTH) if is_text else widest, len(name)) + 1
        shown.add_column(
            name,
            justify="right" if column.endswith("#") else "left",
            no_wrap=not is_text,
            overflow="fold",
        )
    for row in cells:
        shown.add_row(*row)
    # Numbers and ids of usual length are never truncated: a narrow terminal wraps the line instead.
    wide = console(width=max(needed, terminal.width))
    if terminal.is_terminal:
        wide.print(shown)
        return
    with wide.capture() as captured:
        wide.print(shown)
    for text in captured.get().removesuffix("\n").split("\n"):
        print(text.rstrip())  # one long cell would pad each line to its length


def list_segments(segments: Sequence[Segment]) -> None:
    """Print a table of segments, if there are any."""
    if not segments:
        return
    heading("Live segments")
    table(
        segments,
        {
            "id": lambda segment: segment.id,
            "generation#": lambda segment: segment.generation,
            "messages#": lambda segment: f"{segment.first_seq}..{segment.last_seq}",
            "source tokens#": lambda segment: segment.source_tokens,
            "tokens#": lambda segment: segment.tokens,
            "notes#": lambda segment: len(segment.notes),
            "lost#": lambda segment: len(segment.lost),
            "dropped#": lambda segment: len(segment.dropped),
        },
    )


def list_notes(segments: Sequence[Segment], *, older: str) -> None:
    """Print the newest lines of the notes, and how to see *older* ones."""
    lines = [line for segment in segments for line in segment.text.splitlines()]
    if not lines:
        return
    left_out = len(lines) - SHOWN_NOTE_LINES
    heading("Notes" if left_out <= 0 else f"Notes (the newest {SHOWN_NOTE_LINES} lines)")
    for text in lines[-SHOWN_NOTE_LINES:]:
        line(text)
    if left_out > 0:
        line(f"{left_out:,} older lines: {older}")


def warn(text: str) -> None:
    """Print one line to stderr."""
    print(printable(text), file=sys.stderr)


def confirm(question: str) -> bool:
    """Ask on stderr, and return whether the next line of stdin is "yes"."""
    print(f"{printable(question)} Type yes: ", end="", file=sys.stderr, flush=True)
    answer = sys.stdin.readline()
    if not (sys.stdin.isatty() and answer.endswith("\n")):
        print(file=sys.stderr)  # nobody pressed Enter in this terminal
    return answer.strip().lower() == "yes"


def write_json(document: object, target: str = "-") -> None:
    """Write a JSON document to the new file *target*, or to stdout for `-`.

    A device, such as `/dev/null`, exists already. Only its owner can read a new file, as texts of messages may be in it. Dataclasses become
    objects of their fields, times ISO 8601, paths strings.
    """
    if target == "-":
        print_json(document, indent=2)
        return
    text = json.dumps(document, default=_plain, ensure_ascii=False, indent=1)
    try:
        is_device = Path(target).exists() and not Path(target).is_file()
        new = 0 if is_device else os.O_CREAT | os.O_EXCL  # which follows no link
        descriptor = os.open(target, os.O_WRONLY | new, FILE_MODE)
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            file.write(f"{text}\n")
    except OSError as error:
        error.filename = target  # an error of writing does not name the file
        raise


def print_json(document: object, *, indent: int | None = None) -> None:
    """Print a JSON document with control characters escaped, by default in one line."""
    is_unicode = (sys.stdout.encoding or "").lower().startswith("utf")
    text = json.dumps(document, default=_plain, ensure_ascii=not is_unicode, indent=indent)
    print(escape_controls(text))


def escape_controls(json_text: str) -> str:
    """Return a JSON text with the characters escaped that `printable` removes."""
    return json_text.translate(_IN_JSON)


class Bar(NamedTuple):
    """A progress bar: `advance` adds to it, `describe` changes its text."""

    advance: Callable[[int], None]
    describe: Callable[[str], None]


@contextmanager
def progress(description: str, total: int | None) -> Iterator[Bar]:
    """Show a progress bar if stderr is a terminal; without *total*, an indeterminate one."""
    terminal = Console(stderr=True, highlight=False)
    with Progress(console=terminal, transient=True, disable=not terminal.is_terminal) as bar:
        task = bar.add_task(escape(printable(description)), total=total)
        yield Bar(
            lambda count: bar.advance(task, count),
            lambda text: bar.update(task, description=text),
        )


def quantity(number: int, noun: str) -> str:
    """Return a number with its noun, such as `1 message` or `1,200 messages`."""
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"


def shorten(text: str, length: int) -> str:
    """Return the text as one line of at most *length* characters."""
    words = " ".join(text.split())
    return words if len(words) <= length else f"{words[: length - 3]}..."


def cell(value: object) -> str:
    """Return a value for people, such as `1,200` or a time in UTC; empty for None."""
    match value:
        case None:
            return ""
        case datetime():
            return f"{value.astimezone(UTC):%Y-%m-%d %H:%M}"
        case int() if not isinstance(value, bool):
            return f"{value:,}"
        case _:
            return str(value)


def _plain(value: object) -> object:
    if dataclasses.is_dataclass(value):
        return {field.name: getattr(value, field.name) for field in dataclasses.fields(value)}
    if isinstance(value, date):
        return value.isoformat()
    if isinstance(value, Path):
        return str(value)
    raise TypeError(f"{value!r} cannot be written as JSON")
