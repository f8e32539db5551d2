"""Turns chosen passages into notes: a line joins clauses of one speaker."""

import re
from collections.abc import Generator, Sequence
from dataclasses import replace
from datetime import date
from itertools import pairwise

from remanence.dates import iso_date
from remanence.dates.local_time import is_other_day
from remanence.notes import one_line, usual_priority
from remanence.observers.extractive.passage import Passage
from remanence.observers.extractive.selection import Build
from remanence.types import Note

_MAX_WORDS = 40
_MAX_TURNS = 4
"""Messages between those of one person that a line may join in a talk of people."""
_GAP_SECONDS = 2 * 3600
_NIGHT_SECONDS = 600
_AT_ONCE = 10
_JOINT = re.compile(r"([,;:，；：]|[-–—])\s*$")


def stretches(found: Sequence[Passage]) -> tuple[int, ...]:
    """Number the stretch of talk of each passage; a long pause or a new day begins another."""
    numbers: list[int] = []
    previous = None
    number = 0
    for p in found:
        if previous and p.at:
            pause = (p.at - previous).total_seconds()
            is_night = pause > _NIGHT_SECONDS and is_other_day(previous, p.at)
            number += pause > _GAP_SECONDS or is_night
        previous = p.at or previous
        numbers.append(number)
    return tuple(numbers)


def line_builder(found: Sequence[Passage], numbers: Sequence[int]) -> Build:
    """Return what builds notes of passages, in order, and of a talk of people by speaker.

    A note holds one day, which its "today" is. Notes are cached by group of passages.
    """
    made: dict[tuple[int, ...], list[Note]] = {}

    def build(chosen: Sequence[int]) -> Generator[None, None, tuple[Note, ...]]:
        groups: dict[tuple[int, date | None, str, int], list[int]] = {}
        turn, speaker, last = 0, "", -1
        for index in chosen:
            p, stretch = found[index], numbers[index]
            if p.speaker != speaker or any(q.is_question for q in found[last + 1 : index]):
                turn += 1  # an answer does not join what was said before its question
            speaker, last = p.speaker, index
            at = 0 if p.is_of_people else turn
            day = p.at.date() if p.at else None
            groups.setdefault((stretch, day, p.speaker, at), []).append(index)
        notes: list[Note] = []
        for group in map(tuple, groups.values()):
            if group not in made:
                made[group] = yield from _lines([found[index] for index in group])
            notes.extend(made[group])
        return tuple(notes)

    return build


def _lines(mine: Sequence[Passage]) -> Generator[None, None, list[Note]]:
    lines: list[list[Passage]] = []
    size = 0
    for number, p in enumerate(mine):
        length = sum(not w.dropped for w in p.words) + len(p.context)
        if not lines or size + length > _MAX_WORDS or not _belong(lines[-1][-1], p):
            lines.append([])
            size = 0
        lines[-1].append(p)
        size += length
        if number % _AT_ONCE == 0:
            yield
    notes: list[Note] = []
    for line in lines:
        notes.append(_note(line))
        yield
    return notes


def _belong(last: Passage, p: Passage) -> bool:
    """Return whether a passage may join the line of another.

    In a talk with an agent a line holds one message; people go on with a topic turn by turn. What
    follows a list is not read as one of its items.
    """
    turns = _MAX_TURNS if p.is_of_people else 0
    return p.continues(last) or (p.seq - last.seq <= turns and _kind(p) == _kind(last))


def _kind(p: Passage) -> tuple[object, ...]:
    label = () if p.is_outcome or p.reply_to else p.context
    return p.tag, p.is_rule, p.is_standing, p.is_outcome, p.is_quoted, label


def _note(line: Sequence[Passage]) -> Note:
    dates = [d for p in line for d in p.dates]
    first = line[0]
    tag = first.tag
    return Note(
        text=one_line(_join(line)),
        first_seq=min(p.first_seq for p in line),
        last_seq=line[-1].seq,
        observed_at=first.at,
        referenced_at=iso_date(dates[0]) if dates else None,
        priority="CRITICAL" if first.is_standing else usual_priority(tag),
        tag=tag,
        speaker=first.speaker,
    )


def _join(line: Sequence[Passage]) -> str:
    """Join passages with semicolons, clauses of one sentence with their own punctuation."""
    text = line[0].text
    for before, following in pairwise(line):
        p = following
        if p.context == before.context:
            p = replace(p, context=())
        between = "; "
        if p.continues(before) and not p.context:
            ending = _JOINT.search(before.source)
            between = f"{ending[1]} " if ending else " "
        text += between + p.text
    return text
