"""Making notes fit: what tells the least goes first."""

from collections.abc import Sequence

from remanence.observing.literals import find_literals
from remanence.observing.notes import render_notes
from remanence.protocols import CountTokens
from remanence.types import Note, NoteFormat


def trimmed(
    notes: Sequence[Note],
    *,
    limit_tokens: int,
    critical_limit_tokens: int,
    note_format: NoteFormat,
    count: CountTokens,
) -> tuple[Note, ...]:
    """The notes within *limit_tokens*, at least one of them.

    NOTE goes before IMPORTANT, and of these what has the fewest exact values for its length.
    CRITICAL notes go only where the notes have more than *critical_limit_tokens*.
    """
    kept = dict(enumerate(notes))
    tokens = count(render_notes(notes, note_format))
    for index in sorted(kept, key=lambda i: _worth(notes[i])):
        critical = notes[index].priority == "CRITICAL"
        if len(kept) == 1 or tokens <= (critical_limit_tokens if critical else limit_tokens):
            break
        del kept[index]
        tokens -= count(notes[index].text)
    return tuple(kept.values())


def _worth(note: Note) -> tuple[int, float]:
    rank = ("NOTE", "IMPORTANT", "CRITICAL").index(note.priority)
    return rank, len(find_literals(note.text)) / (1 + len(note.text))
