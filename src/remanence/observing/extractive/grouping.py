"""From chosen passages to notes: clauses of one speaker about one stretch are one line."""

from collections.abc import Sequence

from remanence.observing.extractive.dating import iso_date
from remanence.observing.extractive.passages import Passage
from remanence.observing.notes import one_line
from remanence.types import Note

_MAX_WORDS = 28
_GAP_SECONDS = 4 * 3600


def blocks(found: Sequence[Passage]) -> tuple[int, ...]:
    """For each passage the number of its stretch of talk: a long pause begins another."""
    numbers: list[int] = []
    previous = None
    number = 0
    for p in found:
        if previous and p.at and (p.at - previous).total_seconds() > _GAP_SECONDS:
            number += 1
        previous = p.at or previous
        numbers.append(number)
    return tuple(numbers)


def notes(chosen: Sequence[Passage], numbers: Sequence[int]) -> tuple[Note, ...]:
    """Notes of chosen passages, which are in order of the tape."""
    made: list[Note] = []
    by_block: dict[int, dict[str, list[Passage]]] = {}
    for p, number in zip(chosen, numbers, strict=True):
        by_block.setdefault(number, {}).setdefault(p.speaker, []).append(p)
    for speakers in by_block.values():
        for mine in speakers.values():
            made.extend(_lines(mine))
    return tuple(made)


def _lines(mine: Sequence[Passage]) -> list[Note]:
    lines: list[Note] = []
    line: list[Passage] = []
    size = 0
    for p in mine:
        length = sum(not w.dropped for w in p.words) + len(p.context)
        if line and size + length > _MAX_WORDS:
            lines.append(_note(line))
            line, size = [], 0
        line.append(p)
        size += length
    if line:
        lines.append(_note(line))
    return lines


def _note(line: Sequence[Passage]) -> Note:
    dates = [d for p in line for d in p.dates]
    return Note(
        text=one_line("; ".join(p.text for p in line)),
        first_seq=min(p.first_seq for p in line),
        last_seq=line[-1].seq,
        observed_at=line[0].at,
        referenced_at=iso_date(dates[0]) if dates else None,
        speaker=line[0].speaker,
    )
