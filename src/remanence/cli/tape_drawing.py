"""The tape of a conversation with its three cursors, drawn with characters."""

from collections.abc import Iterator

from remanence.cli import output
from remanence.cli.output import quantity
from remanence.types import MemoryState

_ZONES = (
    ("█", "#", "reflections in the prompt"),
    ("▓", "=", "observations in the prompt"),
    ("▒", "-", "observed, kept ready"),
    ("░", ".", "not yet observed"),
)
"""Symbol, ASCII symbol and meaning of each range between two cursors."""


def print_tape(state: MemoryState) -> None:
    """Print a drawing of a conversation's tape with its cursors."""
    terminal = output.console()
    plain = not terminal.encoding.lower().startswith("utf")
    for text in draw_tape(state, width=terminal.width, plain=plain):
        output.line(text)


def draw_tape(state: MemoryState, *, width: int, plain: bool) -> tuple[str, ...]:
    """Draw a bar of at most *width* columns with a legend; with *plain*, in ASCII."""
    if not state.last_seq:
        return ("the tape is empty",)
    columns = max(10, width - 4)
    bounds = (0, state.reflected_seq, state.active_seq, state.observed_seq, state.last_seq)
    bar, legend = "", []
    for start, end, (symbol, ascii_symbol, meaning) in zip(
        bounds, bounds[1:], _ZONES, strict=False
    ):
        fill = ascii_symbol if plain else symbol
        bar += fill * (_column(state, end, columns) - _column(state, start, columns))
        if end > start:
            legend.append(f"{fill * 2} {meaning}: messages {start + 1}..{end}")
    raw = state.last_seq - state.tail_seq + 1
    legend.append(
        f"raw tail: {quantity(raw, 'message')} from {state.tail_seq} on, "
        f"{quantity(state.tail_tokens, 'token')}"
    )
    return (f"[{bar}]", *_cursor_lines(state, columns, "^" if plain else "▲"), "", *legend)


def _column(state: MemoryState, seq: int, columns: int) -> int:
    """Return the number of columns for the messages up to *seq*."""
    return round(columns * seq / state.last_seq)


def _cursor_lines(state: MemoryState, columns: int, pointer: str) -> Iterator[str]:
    """Yield a line for each cursor position, with a pointer from below."""
    places: dict[int, list[str]] = {}
    for name in ("reflected", "active", "observed", "last"):
        places.setdefault(getattr(state, f"{name}_seq"), []).append(name)
    for seq, names in places.items():
        label = f"{', '.join(names)} {seq}"
        column = _column(state, seq, columns)
        if column + len(label) + 2 <= columns:
            yield f"{' ' * column}{pointer} {label}"
        else:
            yield f"{label:>{max(0, column - 1)}} {pointer}"
