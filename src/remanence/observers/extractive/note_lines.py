"""Turns chosen passages into notes: a line joins clauses of one speaker in one stretch."""

import re
from collections import Counter
from collections.abc import Generator, Iterator, Sequence
from dataclasses import replace
from datetime import datetime
from itertools import pairwise, zip_longest

from remanence.dates import iso_date
from remanence.notes import one_line
from remanence.observers.extractive.passage import Passage
from remanence.types import Note, Priority, Tag

_RANK: tuple[Priority, ...] = ("NOTE", "IMPORTANT", "CRITICAL")
_MAX_WORDS = 28
_GAP_SECONDS = 2 * 3600
_NIGHT_SECONDS = 600
_AT_ONCE = 10
_APART: frozenset[Tag] = frozenset({"Decision", "Outcome"})
_JOINT = re.compile(r"([,;:，；：]|[-–—])\s*$")


def stretches(found: Sequence[Passage]) -> tuple[int, ...]:
    """Number the stretch of talk of each passage; a long pause or a new day begins another."""
    numbers: list[int] = []
    previous = None
    number = 0
    for p in found:
        if previous and p.at and _is_apart(previous, p.at):
            number += 1
        previous = p.at or previous
        numbers.append(number)
    return tuple(numbers)


def _is_apart(before: datetime, at: datetime) -> bool:
    pause = (at - before).total_seconds()
    return pause > _GAP_SECONDS or (pause > _NIGHT_SECONDS and at.date() != before.date())


class Lines:
    """Builds notes from chosen passages and caches them by group of passages."""

    def __init__(self, found: Sequence[Passage], numbers: Sequence[int]) -> None:
        self._found = found
        self._numbers = numbers
        self._made: dict[tuple[int, ...], list[Note]] = {}

    def notes(self, chosen: Sequence[int]) -> Generator[None, None, tuple[Note, ...]]:
        """Return notes of the passages with these indices, by stretch and speaker.

        Yields in between. A solution comes after the other speaker's problem, even if its
        speaker was first in the stretch.
        """
        groups: dict[tuple[int, int], dict[str, list[int]]] = {}
        solved, in_trouble = 0, ""
        for index in chosen:
            p, stretch = self._found[index], self._numbers[index]
            if p.cue.tag == "Issue":
                in_trouble = p.speaker
            elif p.cue.tag == "Outcome" and in_trouble not in ("", p.speaker):
                solved, in_trouble = solved + 1, ""
            groups.setdefault((stretch, solved), {}).setdefault(p.speaker, []).append(index)
        notes: list[Note] = []
        for group in (group for speakers in groups.values() for group in speakers.values()):
            key = tuple(group)
            if key not in self._made:
                self._made[key] = yield from _lines([self._found[index] for index in group])
            notes.extend(self._made[key])
        return tuple(notes)


def _lines(mine: Sequence[Passage]) -> Generator[None, None, list[Note]]:
    lines: list[list[Passage]] = []
    size = 0
    for number, p in enumerate(_lead_once(mine)):
        length = sum(not w.dropped for w in p.words) + len(p.context)
        if not lines or size + length > _MAX_WORDS or not _belong(lines[-1], p):
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


def _lead_once(mine: Sequence[Passage]) -> Iterator[Passage]:
    """Yield the passages with the lead of a list before its first item only.

    A passage announced by the clause before it needs no lead either.
    """
    led, before = None, None
    for p, after in zip_longest(mine, mine[1:]):
        may_lead = after is not None and after.context and not p.context and after.seq == p.seq
        if may_lead and not p.announces(after) and set(after.context) <= set(p.words):
            continue
        is_led = (p.seq, p.context) == led or (before is not None and before.announces(p))
        yield replace(p, context=()) if p.context and is_led else p
        led, before = ((p.seq, p.context) if p.context else led), p


def _belong(line: Sequence[Passage], p: Passage) -> bool:
    """Return whether a passage may join a line; corrections and CRITICAL ones stay alone."""
    last = line[-1]
    if p.supersedes or last.supersedes or "CRITICAL" in (p.cue.priority, last.cue.priority):
        return False
    if p.is_outcome != last.is_outcome:
        return False
    if p.is_outcome:
        return True
    if p.cue.tag != last.cue.tag and (p.cue.stands or last.cue.stands):
        return False
    if p.context and p.seq == last.seq:  # it opens a list
        return p.cue.tag == last.cue.tag
    return p.cue.tag == last.cue.tag or _APART.isdisjoint((p.cue.tag, last.cue.tag))


def _note(line: Sequence[Passage]) -> Note:
    dates = [d for p in line for d in p.dates]
    tag = _tag(line)
    return Note(
        text=one_line(_join(line)),
        first_seq=min(p.first_seq for p in line),
        last_seq=line[-1].seq,
        observed_at=line[0].at,
        referenced_at=iso_date(dates[0]) if dates else None,
        priority=max((p.cue.priority for p in line if p.cue.tag == tag), key=_RANK.index)
        if any(p.cue.tag == tag for p in line)
        else "NOTE",
        tag=tag,
        speaker=line[0].speaker,
        supersedes=line[0].supersedes,
    )


def _join(line: Sequence[Passage]) -> str:
    """Join passages with semicolons, clauses of one sentence with their own punctuation."""
    text = line[0].text
    for before, p in pairwise(line):
        between = "; "
        if p.continues(before) and not p.context and not p.supersedes:
            ending = _JOINT.search(before.source)
            between = f"{ending[1]} " if ending else " "
        text += between + p.text
    return text


def _tag(line: Sequence[Passage]) -> Tag:
    """Return the tag that all passages share, or Fact: a partial issue is not an Issue."""
    counts = Counter(p.cue.tag for p in line)
    tag, most = counts.most_common(1)[0]
    return tag if most == len(line) else "Fact"
