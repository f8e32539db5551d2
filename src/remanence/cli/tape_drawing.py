"""The tape of a conversation with its three cursors, drawn with characters."""

from collections.abc import Iterator
from dataclasses import dataclass

from remanence.types import MemoryState


@dataclass(frozen=True, slots=True, kw_only=True)
class Zone:
    """A range of messages on the tape, and its symbols."""

    first_seq: int
    last_seq: int
    fill: str
    ascii_fill: str
    label: str


def zones(state: MemoryState) -> tuple[Zone, ...]:
    """Return the ranges between the cursors, without empty ones."""
    bounds = (0, state.reflected_seq, state.active_seq, state.observed_seq, state.last_seq)
    looks = (
        ("█", "#", "reflections in the prompt"),
        ("▓", "=", "observations in the prompt"),
        ("▒", "-", "observed, kept ready"),
        ("░", ".", "not yet observed"),
    )
    return tuple(
        Zone(first_seq=start + 1, last_seq=end, fill=fill, ascii_fill=ascii_fill, label=label)
        for start, end, (fill, ascii_fill, label) in zip(bounds, bounds[1:], looks, strict=False)
        if end > start
    )


def draw_tape(state: MemoryState, *, width: int, plain: bool) -> tuple[str, ...]:
    """Draw lines of at most *width* columns; with *plain*, in ASCII only."""
    if not state.last_seq:
        return ("the tape is empty",)
    columns = max(10, width - 4)
    return (
        _bar(state, columns, plain=plain),
        *_cursor_lines(state, columns, plain=plain),
        "",
        *_legend(state, plain=plain),
    )


def _bar(state: MemoryState, columns: int, *, plain: bool) -> str:
    cells = "".join(
        (zone.ascii_fill if plain else zone.fill)
        * (_column(state, zone.last_seq, columns) - _column(state, zone.first_seq - 1, columns))
        for zone in zones(state)
    )
    return f"[{cells}]"


def _column(state: MemoryState, seq: int, columns: int) -> int:
    """Return the number of columns for the messages up to *seq*."""
    return round(columns * seq / state.last_seq)


def _cursor_lines(state: MemoryState, columns: int, *, plain: bool) -> Iterator[str]:
    """Yield a line for each position of cursors, with a pointer to it from below."""
    places: dict[int, list[str]] = {}
    for name in ("reflected", "active", "observed", "last"):
        places.setdefault(getattr(state, f"{name}_seq"), []).append(name)
    for seq, names in places.items():
        label = f"{', '.join(names)} {seq}"
        column = _column(state, seq, columns)
        pointer = "^" if plain else "▲"
        if column + len(label) + 2 <= columns:
            yield f"{' ' * column}{pointer} {label}"
        else:
            yield f"{label:>{max(0, column - 1)}} {pointer}"


def _legend(state: MemoryState, *, plain: bool) -> Iterator[str]:
    for zone in zones(state):
        fill = zone.ascii_fill if plain else zone.fill
        yield f"{fill * 2} {zone.label}: messages {zone.first_seq}..{zone.last_seq}"
    raw = state.last_seq - state.tail_seq + 1
    yield f"raw tail: {raw} messages from {state.tail_seq} on, {state.tail_tokens:,} tokens"
