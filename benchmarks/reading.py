"""What a reader of notes alone is told of what was decided, what changed and what is open.

The conversations of `benchmarks/told` were written for this, and their points listed before any
notes were made of them. A point is told when all its key words stand in the notes of one day. That
is less than understanding it and more than naming it: `--missing` lists the others for a reader.
"""

import argparse
import asyncio
import tomllib
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import Literal, NamedTuple

from benchmarks.picking import Picking, last_first, shuffled
from benchmarks.rows import Row, show
from remanence import Memory, Message, Observer, Policy
from remanence.cli.transcripts import entries
from remanence.observing.extractive import ExtractiveObserver
from remanence.testing import FixedClock

FOLDER = Path(__file__).parent / "told"
FILES = sorted(FOLDER.glob("*.jsonl"))
TARGET = 60.0
"""Below it a decision, a change or an open point is missed too often for notes to be trusted."""
KINDS = {"D": "decided", "C": "changed", "O": "open"}


class Point(NamedTuple):
    """What a reader should learn, and the key words that must stand together; "a|b" is either."""

    conversation: str
    kind: Literal["D", "C", "O"]
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
    found = await told_by(ExtractiveObserver())
    newest = await told_by(Picking(last_first))
    chance = await told_by(Picking(shuffled))
    return [
        Row(
            what=f"points told by notes of {len(FILES)} conversations",
            measured=found.share(),
            unit="%",
            target=TARGET,
            at_least=True,
            reference=f"random sentences {chance.share():.0f}, newest {newest.share():.0f}",
            detail=", ".join(f"{name} {found.share(kind):.0f}" for kind, name in KINDS.items()),
        )
    ]


async def told_by(observer: Observer) -> Told:
    """What the notes tell that an observer makes under the default policy."""
    told: set[Point] = set()
    for path in FILES:
        days = await _days(path, observer)
        told |= {point for point in points(path.stem) if is_told(point, days)}
    return Told(points(), frozenset(told))


async def _days(path: Path, observer: Observer) -> Sequence[str]:
    """The notes of each day as one text."""
    talk = _messages(path)
    newest = talk[-1].created_at
    assert newest is not None
    days: defaultdict[str, list[str]] = defaultdict(list)
    async with Memory.open(
        "sqlite:///:memory:", policy=Policy.default(), clock=FixedClock(newest), observer=observer
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
    """What the user said on each day of a conversation as one text."""
    days: defaultdict[str, list[str]] = defaultdict(list)
    for message in _messages(path):
        if message.role == "user" and message.created_at is not None:
            days[message.created_at.date().isoformat()].append(message.text)
    return _plain(days.values())


def _plain(days: Iterable[Sequence[str]]) -> Sequence[str]:
    return [" ".join(texts).replace("’", "'").casefold() for texts in days]


@cache
def points(conversation: str = "") -> tuple[Point, ...]:
    """The points of the conversations whose names begin so."""
    table = tomllib.loads((FOLDER / "points.toml").read_text("utf-8"))["point"]
    found = (Point(**{**row, "told": tuple(row["told"])}) for row in table)
    return tuple(point for point in found if point.conversation.startswith(conversation))


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
    parser.add_argument("--missing", action="store_true", help="list the points not told")
    if parser.parse_args().missing:
        print("\n".join(_missing(asyncio.run(told_by(ExtractiveObserver())))))
    else:
        show(measure())


if __name__ == "__main__":
    main()
