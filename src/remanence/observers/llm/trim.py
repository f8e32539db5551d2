"""Trim notes to their limits; the least important lines are dropped first."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from remanence.notes import render_notes, usual_priority
from remanence.notes.literals import find_literals
from remanence.protocols import CountTokens
from remanence.types import Note, NoteFormat

LASTING_TAGS = frozenset({"Decision", "Preference", "Issue", "NextStep"})
"""Tags of decisions, preferences and open points; facts and outcomes are dropped before them."""

CERTAIN_SHARE = 0.9
"""Lower bound on the share of its own tokens that a line adds, so that notes which cannot fit need
no rendering."""

_PRIORITIES = ("NOTE", "IMPORTANT", "CRITICAL")


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """The total tokens up to which lines of each kind are kept.

    `lasting` is for decisions, preferences and open points that the model did not mark as NOTE.
    """

    ordinary: int
    lasting: int
    critical: int

    def of(self, note: Note) -> int:
        """Return the limit for a note."""
        if note.priority == "CRITICAL":
            return self.critical
        is_minor = note.priority == "NOTE" and usual_priority(note.tag) != "NOTE"
        return self.lasting if note.tag in LASTING_TAGS and not is_minor else self.ordinary


class TrimResult(NamedTuple):
    """The notes that fit and those that do not, in their order."""

    kept: tuple[Note, ...]
    dropped: tuple[Note, ...]


def trim(
    notes: Sequence[Note],
    limits: Limits,
    *,
    note_format: NoteFormat,
    count: CountTokens,
    wanted: Collection[Note] = (),
) -> TrimResult:
    """Drop notes until the rest fits the limits when rendered; keep at least one.

    The *wanted* ones are kept first, then CRITICAL ones, then decisions, preferences and open
    points, then IMPORTANT ones. Ties go to the note with the most exact values for its length.
    """

    def size(indices: Collection[int]) -> int:
        chosen = [note for index, note in enumerate(notes) if index in indices]
        return count(render_notes(chosen, note_format))

    if size(range(len(notes))) <= limits.ordinary:
        return TrimResult(tuple(notes), ())
    order = sorted(range(len(notes)), key=lambda i: (notes[i] in wanted, *_weight(notes[i])))
    kept = {order.pop()}
    tokens = size(kept)
    for index in reversed(order):
        limit = limits.of(notes[index])
        if tokens + CERTAIN_SHARE * count(notes[index].text) > limit:
            continue
        if (larger := size({*kept, index})) <= limit:
            kept, tokens = {*kept, index}, larger
    return TrimResult(
        tuple(note for index, note in enumerate(notes) if index in kept),
        tuple(note for index, note in enumerate(notes) if index not in kept),
    )


def _weight(note: Note) -> tuple[bool, bool, int, float]:
    return (
        note.priority == "CRITICAL",
        note.tag in LASTING_TAGS,
        _PRIORITIES.index(note.priority),
        len(find_literals(note.text)) / (1 + len(note.text)),
    )
