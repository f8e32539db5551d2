"""What a reader of notes alone is told of decisions, changes, facts, values and open points.

The conversations of `benchmarks/told` were written for this, and their points listed before any
notes were made of them. Those of `tuning` were looked at while rules were made. To the short ones of
`untuned` and the long ones of `fresh` no rule was fitted, nor may one be, so they say what to
expect of other conversations. A point is told when all its key words stand in the notes of one day.
That is less than understanding it and more than naming it: `--missing` lists the others for a reader.
"""

import argparse
import asyncio
import tomllib
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Literal, NamedTuple, TypeAlias

from benchmarks.picking import Picking, last_first, shuffled
from benchmarks.rows import Row, show
from remanence import Memory, Message, Observer, Policy
from remanence.cli.transcripts import entries
from remanence.observers.extractive import ExtractiveObserver
from remanence.testing import FixedClock

FOLDER = Path(__file__).parent / "told"
TARGET = 80.0
"""Below it a decision, a change or an open point is missed too often for notes to be trusted."""
Set: TypeAlias = Literal["tuning", "untuned", "fresh"]
SETS: Mapping[Set, str] = {
    "tuning": "used for tuning",
    "untuned": "short, no rule was fitted to",
    "fresh": "no rule was fitted to",
}
Room: TypeAlias = Literal["at a fifth", "default policy"]
ROOMS: Mapping[Room, Policy] = {
    "at a fifth": Policy.default(min_note_tokens=0),
    "default policy": Policy.default(),
}
"""How long the notes may be; those of a short conversation are longer by default."""
WINDOWS = (4_000, 8_000)
"""Tokens of small contexts, whose policies have no other setting."""
KINDS = {
    "D": "decided",
    "C": "changed",
    "O": "open",
    "P": "facts of people",
    "V": "values",
    "E": "errors and refusals",
}


class Point(NamedTuple):
    """What a reader should learn, and the key words that must stand together; "a|b" is either."""

    conversation: str
    kind: Literal["D", "C", "O", "P", "V", "E"]
    about: str
    told: Sequence[str]


class Told(NamedTuple):
    """The points of all conversations, and those that the notes tell."""

    points: Sequence[Point]
    told: frozenset[Point]

    def share(self, kind: str = "") -> float:
        """The percentage of the points of a kind, or of all, that are told."""
        asked = [point for point in self.points if point.kind.startswith(kind)]
        return 100 * sum(point in self.told for point in asked) / len(asked)


def measure() -> list[Row]:
    """The share of points that the embedded observer's notes tell, and those of baselines."""
    return asyncio.run(_measured())


async def _measured() -> list[Row]:
    rows = [await _row(name, room) for name in SETS for room in ROOMS]
    return [*rows, *[await _row_of_window(name, window) for name in SETS for window in WINDOWS]]


async def _row_of_window(name: Set, window: int) -> Row:
    """The share of points whose key words stand in a small context: its notes and raw messages."""
    shown = {path.stem: await _context(path, window) for path in files(name)}
    told = [is_told(point, [shown[point.conversation]]) for point in points(name)]
    return Row(
        what=f"points of {len(shown)} conversations, {SETS[name]}, in contexts of {window:,} tokens",
        measured=100 * sum(told) / len(told),
        unit="%",
        detail=f"{len(told)} points",
    )


async def _context(path: Path, window: int) -> str:
    """The last context of a conversation whose messages are observed as they come, as one text."""
    talk = _messages(path)
    newest = talk[-1].created_at
    assert newest is not None
    policy, clock = Policy.default(max_context_tokens=window), FixedClock(newest)
    async with Memory.open("sqlite:///:memory:", policy=policy, clock=clock) as memory:
        chat = memory.conversation(path.stem)
        for message in talk:
            await chat.append(message)
            await chat.flush()
        context = await chat.context(system="You are helpful.")
    said = [message.full_text for message in context.messages]
    return _plain([[*(block.text for block in context.system), *said]])[0]


async def _row(name: Set, room: Room) -> Row:
    found = await told_by(ExtractiveObserver(), name, room)
    newest = await told_by(Picking(last_first), name, room)
    chance = await told_by(Picking(shuffled), name, room)
    asked = {point.kind for point in found.points}
    kinds = ", ".join(f"{KINDS[kind]} {found.share(kind):.0f}" for kind in KINDS if kind in asked)
    return Row(
        what=f"points told by notes of {len(files(name))} conversations, {SETS[name]}, {room}",
        measured=found.share(),
        unit="%",
        target=TARGET,
        at_least=True,
        reference=f"random sentences {chance.share():.0f}, newest {newest.share():.0f}",
        detail=f"{len(found.points)} points: {kinds}",
    )


async def told_by(observer: Observer, name: Set, room: Room = "at a fifth") -> Told:
    """What the notes of a set tell that an observer makes."""
    told: set[Point] = set()
    for path in files(name):
        days = await _days(path, observer, ROOMS[room])
        told |= {
            point
            for point in points(name)
            if point.conversation == path.stem and is_told(point, days)
        }
    return Told(points(name), frozenset(told))


def files(name: Set) -> Sequence[Path]:
    """The conversations of a set."""
    return sorted((FOLDER / name).glob("*.jsonl"))


async def _days(path: Path, observer: Observer, policy: Policy) -> Sequence[str]:
    """The notes of each day as one text."""
    talk = _messages(path)
    newest = talk[-1].created_at
    assert newest is not None
    days: defaultdict[str, list[str]] = defaultdict(list)
    async with Memory.open(
        "sqlite:///:memory:", policy=policy, clock=FixedClock(newest), observer=observer
    ) as memory:
        chat = memory.conversation(path.stem)
        await chat.append(*talk)
        await chat.flush(everything=True)
        for segment in await chat.observations():
            for note in segment.notes:
                assert note.observed_at is not None
                days[note.observed_at.date().isoformat()].append(note.text)
    return _plain(days.values())


def _messages(path: Path) -> Sequence[Message]:
    with path.open("rb") as file:
        return [entry.message for entry in entries(file, name=path.name)]


def day_texts(path: Path) -> Sequence[str]:
    """What was said on each day of a conversation as one text."""
    days: defaultdict[str, list[str]] = defaultdict(list)
    for message in _messages(path):
        if message.created_at is not None:
            days[message.created_at.date().isoformat()].append(message.full_text)
    return _plain(days.values())


def _plain(days: Iterable[Sequence[str]]) -> Sequence[str]:
    return [" ".join(texts).replace("’", "'").casefold() for texts in days]


@cache
def points(name: Set) -> tuple[Point, ...]:
    """The points of the conversations of a set."""
    table = tomllib.loads((FOLDER / name / "points.toml").read_text("utf-8"))["point"]
    return tuple(Point(**{**row, "told": tuple(row["told"])}) for row in table)


def is_told(point: Point, days: Sequence[str]) -> bool:
    """Whether all key words of a point stand in the text of one day."""

    def stands(piece: str, day: str) -> bool:
        return any(form.casefold() in day for form in piece.split("|"))

    return any(all(stands(piece, day) for piece in point.told) for day in days)


def _missing(found: Told) -> Iterator[str]:
    for point in found.points:
        if point not in found.told:
            yield f"{point.conversation} {KINDS[point.kind]}: {point.about} ({', '.join(point.told)})"


def main() -> None:
    """Print the figures, or with `--missing` the points that the notes do not tell."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--missing", action="store_true", help="list the points not told of those used for tuning"
    )
    if parser.parse_args().missing:
        print("\n".join(_missing(asyncio.run(told_by(ExtractiveObserver(), "tuning")))))
    else:
        show(measure())


if __name__ == "__main__":
    main()
