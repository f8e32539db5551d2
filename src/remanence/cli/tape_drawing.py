"""The tape of a conversation with its three cursors, drawn with characters."""

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from itertools import groupby, pairwise
from operator import itemgetter
from typing import Final, NamedTuple

from remanence.cli import output
from remanence.cli.output import quantity
from remanence.types import MemoryState, Segment

SHOWN_RANGES: Final = 5


class _Zone(NamedTuple):
    symbol: str
    ascii_symbol: str
    meaning: str


_ZONES: Final = (
    _Zone("█", "#", "reflections in the prompt"),
    _Zone("▓", "=", "observations in the prompt"),
    _Zone("▒", "-", "observed, kept ready"),
    _Zone("░", ".", "not yet observed"),
)
"""The ranges between two cursors."""

_GIVEN_UP: Final = _Zone("╳", "x", "given up, in no note")


def print_tape(state: MemoryState, segments: Sequence[Segment]) -> None:
    """Print a drawing of a conversation's tape with its cursors."""
    terminal = output.console()
    plain = not terminal.encoding.lower().startswith("utf")
    for text in draw_tape(state, segments, width=terminal.width, plain=plain):
        output.line(text)


def draw_tape(
    state: MemoryState, segments: Sequence[Segment], *, width: int, plain: bool
) -> tuple[str, ...]:
    """Draw a bar of at most *width* columns with a legend; with *plain*, in ASCII."""
    if not state.last_seq:
        return ("the tape is empty",)
    columns = max(10, width - 4)
    bar = ""
    ranges: dict[_Zone, list[str]] = {zone: [] for zone in (*_ZONES, _GIVEN_UP)}
    for first, last, zone in _runs(state, segments):
        fill = zone.ascii_symbol if plain else zone.symbol
        bar += fill * (_column(state, last, columns) - _column(state, first - 1, columns))
        ranges[zone].append(f"{first}" if first == last else f"{first}..{last}")
    legend = [
        f"{(zone.ascii_symbol if plain else zone.symbol) * 2} {zone.meaning}: {_listing(found)}"
        for zone, found in ranges.items()
        if found
    ]
    raw = state.last_seq - state.tail_seq + 1
    legend.append(
        f"raw tail: {quantity(raw, 'message')} from {state.tail_seq} on, "
        f"{quantity(state.tail_tokens, 'token')}"
    )
    return (f"[{bar}]", *_cursor_lines(state, columns, "^" if plain else "▲"), "", *legend)


def _runs(state: MemoryState, segments: Sequence[Segment]) -> Iterator[tuple[int, int, _Zone]]:
    """Yield the first and last message and the zone of each part of the tape, in order."""
    cursors = (state.reflected_seq, state.active_seq, state.observed_seq, state.last_seq)
    failed = [stretch for segment in segments for stretch in segment.failed]
    lost = [stretch for stretch in failed if stretch.first_seq <= state.last_seq]

    def zone_of(last: int) -> _Zone:
        is_lost = any(stretch.first_seq <= last <= stretch.last_seq for stretch in lost)
        return _GIVEN_UP if is_lost else _ZONES[bisect_left(cursors, last)]

    edges = {0, *cursors}
    for stretch in lost:
        edges |= {stretch.first_seq - 1, min(stretch.last_seq, state.last_seq)}
    parts = [(first + 1, last, zone_of(last)) for first, last in pairwise(sorted(edges))]
    for zone, run in groupby(parts, key=itemgetter(2)):
        same = tuple(run)
        yield same[0][0], same[-1][1], zone


def _listing(ranges: Sequence[str]) -> str:
    """Return the messages of a zone, such as `messages 1..4, 9`, with the first ranges only."""
    noun = "message" if len(ranges) == 1 and ranges[0].isdecimal() else "messages"
    rest = len(ranges) - SHOWN_RANGES
    more = f" and {quantity(rest, 'more range')}" if rest > 0 else ""
    return f"{noun} {', '.join(ranges[:SHOWN_RANGES])}{more}"


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
