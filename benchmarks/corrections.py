"""Corrections by users: whether notes have an outdated value without its correction.

Rules may be compared by `corrections.tsv`; nothing may be fitted to `unseen_corrections.tsv`, whose
conversations are by the same hand. A line is a message; one that corrects something or accepts a
proposal names the key words of the outdated statement ("-" if there is none) and those of what holds
since: "a|b" is either, "a & b" both.
"""

import argparse
import asyncio
import csv
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from itertools import groupby
from operator import attrgetter
from pathlib import Path
from typing import NamedTuple

from benchmarks.rows import Row, show
from remanence import Message
from remanence.notes import render_notes
from remanence.observers.extractive import ExtractiveObserver
from remanence.protocols import ObserveRequest
from remanence.tokens import counter_for
from remanence.types import ConversationRef

SETS = {
    "of conversations that may be read": Path(__file__).with_name("corrections.tsv"),
    "of unseen conversations": Path(__file__).with_name("unseen_corrections.tsv"),
}
SHARES: Mapping[str, float] = {"at a fifth": 0.2, "at a third": 0.34}
"""Size of the notes beside that of their conversation."""
FIRST_AT = datetime(2026, 3, 2, 10, 0, tzinfo=UTC)


class Line(NamedTuple):
    """A message, and the key words of what it replaces and of what it lays down."""

    conversation: str
    speaker: str
    text: str
    outdated: str
    current: str


class Told(NamedTuple):
    """What notes have of a correction or an acceptance."""

    line: Line
    has_outdated: bool
    has_current: bool


def measure() -> list[Row]:
    """Shares of the corrections and acceptances that notes leave out."""
    return [
        row for whose, path in SETS.items() for size in SHARES for row in _rows(whose, path, size)
    ]


def _rows(whose: str, path: Path, size: str) -> Iterator[Row]:
    told = asyncio.run(_told(lines(path), SHARES[size]))
    corrections = [one for one in told if one.line.outdated != "-"]
    accepted = [one for one in told if one.line.outdated == "-"]
    alone = sum(one.has_outdated and not one.has_current for one in corrections)
    shown = sum(one.has_outdated for one in corrections)
    known = sum(one.has_current for one in corrections)
    yield Row(
        what=f"outdated values that stand alone, {whose}, {size}",
        measured=100 * alone / len(corrections),
        unit="%",
        target=0.0,
        detail=f"{alone} of {len(corrections)}: {shown} in notes, {known} corrections in notes",
    )
    yield Row(
        what=f"acceptances in notes with what they choose, {whose}, {size}",
        measured=100 * sum(one.has_current for one in accepted) / len(accepted),
        unit="%",
        detail=f"of {len(accepted)}",
    )


def lines(path: Path) -> list[Line]:
    """Read the messages of a file."""
    with path.open(encoding="utf-8", newline="") as file:
        return [Line(**row) for row in csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE)]


async def _told(found: Sequence[Line], share: float) -> list[Told]:
    told: list[Told] = []
    for _, talk in groupby(found, key=attrgetter("conversation")):
        said = list(talk)
        notes = (await notes_of(said, share)).casefold()
        told += [
            Told(line, _stands(line.outdated, notes), _stands(line.current, notes))
            for line in said
            if line.current != "-"
        ]
    return told


async def notes_of(said: Sequence[Line], share: float) -> str:
    """The notes of a conversation, at most a share of its size."""
    messages = [
        (Message.user if line.speaker == "user" else Message.assistant)(
            line.text, created_at=FIRST_AT + timedelta(minutes=number)
        ).replace(seq=number)
        for number, line in enumerate(said, start=1)
    ]
    count = counter_for("claude-opus-4-5").text
    draft = await ExtractiveObserver().observe(
        ObserveRequest(
            conversation=ConversationRef("default", "a"),
            messages=tuple(messages),
            known=(),
            target_tokens=int(share * sum(count(message.full_text) for message in messages)),
            count_tokens=count,
            note_format="compact",
            now=FIRST_AT,
        )
    )
    return render_notes(draft.notes, "compact")


def _stands(keys: str, notes: str) -> bool:
    return any(
        all(part.strip().casefold() in notes for part in either.split("&"))
        for either in keys.split("|")
    )


def main() -> None:
    """Print the figures, or with `--missing` the corrections that notes lack of those that may be read."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--missing", action="store_true")
    if not parser.parse_args().missing:
        show(measure())
        return
    path = SETS["of conversations that may be read"]
    for size, share in SHARES.items():
        for one in asyncio.run(_told(lines(path), share)):
            if not one.has_current:
                alone = "outdated alone" if one.has_outdated else "left out"
                print(f"{size}: {one.line.conversation}: {alone}: {one.line.text}")


if __name__ == "__main__":
    main()
