"""Output of commands: text for people, JSON for scripts, progress on stderr."""

import dataclasses
import json
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import date
from pathlib import Path

from rich.console import Console
from rich.progress import Progress
from rich.table import Table
from rich.text import Text

from remanence.cli.tape_drawing import draw_tape
from remanence.types import MemoryState, Segment

TEXT_WIDTH = 40
"""The minimum width of a column of long text."""


class Printer:
    """Prints to stdout, without interpreting markup in texts."""

    def __init__(self) -> None:
        self._console = Console(highlight=False, markup=False, emoji=False)

    def line(self, text: str = "", *, style: str | None = None) -> None:
        """Print a paragraph, wrapped at the width of the terminal."""
        self._console.print(Text(text), style=style)

    def heading(self, text: str) -> None:
        """Print a heading after a blank line."""
        self._console.print()
        self._console.print(Text(text), style="bold")

    def table(self, columns: Sequence[str], rows: Sequence[Sequence[object]]) -> None:
        """Print a table; a column is numeric if its name ends in `#`, long text if in `~`."""
        table = Table(box=None, header_style="bold", padding=(0, 1, 0, 0), show_edge=False)
        cells = [[Text(_cell(value)) for value in row] for row in rows]
        needed = 0
        for place, column in enumerate(columns):
            is_text, heading = column.endswith("~"), column.rstrip("#~")
            widest = max((row[place].cell_len for row in cells), default=0)
            width = min(widest, TEXT_WIDTH) if is_text else widest
            needed += max(width, len(heading)) + 1
            table.add_column(
                heading,
                justify="right" if column.endswith("#") else "left",
                no_wrap=not is_text,
                overflow="fold",
            )
        for row in cells:
            table.add_row(*row)
        # Figures and ids are never cut or broken: a narrow terminal wraps the line instead.
        console = self._console
        if needed > console.width:
            console = Console(highlight=False, markup=False, emoji=False, width=needed)
        console.print(table)

    def tape(self, state: MemoryState) -> None:
        """Draw a conversation's tape with its cursors."""
        plain = not self._console.encoding.lower().startswith("utf")
        for line in draw_tape(state, width=self._console.width, plain=plain):
            self._console.print(Text(line), no_wrap=True, crop=True)

    def segments(self, segments: Sequence[Segment]) -> None:
        """Print a table of segments, if there are any."""
        if not segments:
            return
        self.heading("Live segments")
        self.table(
            (
                *("id", "generation#", "messages#", "source tokens#", "tokens#"),
                *("notes#", "lost#", "dropped#"),
            ),
            [
                (
                    segment.id,
                    segment.generation,
                    f"{segment.first_seq}..{segment.last_seq}",
                    segment.source_tokens,
                    segment.tokens,
                    len(segment.notes),
                    len(segment.lost),
                    len(segment.dropped),
                )
                for segment in segments
            ],
        )


def warn(text: str) -> None:
    """Print one line to stderr."""
    print(text, file=sys.stderr)


def confirm(question: str) -> bool:
    """Ask on stderr, and return whether the next line of stdin is "yes"."""
    print(f"{question} Type yes: ", end="", file=sys.stderr, flush=True)
    return sys.stdin.readline().strip().lower() == "yes"


def write_json(document: object, target: str = "-") -> None:
    """Write a JSON document to the file *target*, or to stdout for `-`.

    A dataclass becomes an object of its fields, a time ISO 8601, a path its text.
    """
    if target == "-":
        print(json.dumps(document, default=_plain, ensure_ascii=not is_unicode(), indent=2))
        return
    text = json.dumps(document, default=_plain, ensure_ascii=False, indent=1)
    Path(target).write_text(f"{text}\n", encoding="utf-8")


def is_unicode() -> bool:
    """Return whether stdout takes all characters."""
    return (sys.stdout.encoding or "").lower().startswith("utf")


@contextmanager
def progress(description: str, total: int) -> Iterator[Callable[[int], None]]:
    """Show a progress bar if stderr is a terminal; yield the function that advances it."""
    console = Console(stderr=True, highlight=False)
    with Progress(console=console, transient=True, disable=not console.is_terminal) as bar:
        task = bar.add_task(description, total=total)
        yield lambda count: bar.advance(task, count)


def shorten(text: str, length: int) -> str:
    """Return the text as one line of at most *length* characters."""
    line = " ".join(text.split())
    return line if len(line) <= length else f"{line[: length - 3]}..."


def _plain(value: object) -> object:
    if dataclasses.is_dataclass(value):
        return {field.name: getattr(value, field.name) for field in dataclasses.fields(value)}
    if isinstance(value, date):
        return value.isoformat()
    if isinstance(value, Path):
        return str(value)
    raise TypeError(f"{value!r} cannot be written as JSON")


def _cell(value: object) -> str:
    if isinstance(value, int) and not isinstance(value, bool):
        return f"{value:,}"
    return "" if value is None else str(value)
